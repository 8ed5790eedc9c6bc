// Memory that lies where it was asked for, in the three words of design section 8: local, interleaved, replicated; and
// the question where it really lies. Placement is a policy of the pages, set before the first touch, so it does not
// matter which thread touches them first. On one domain, on a description of another machine, or where the kernel
// refuses, the memory is ordinary and remark() says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "numa/topology.h"

namespace orrery {

/// Memory that cannot be had: bytes asked for and the system's reason.
class MemoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Placement {
  local,        ///< all pages on one domain
  interleaved,  ///< pages dealt over the domains in turn
  replicated    ///< a whole copy on each domain
};
const char* to_string(Placement placement);

/// A zeroed stretch of anonymous memory, unmapped when it dies. At 2 MiB and more it is aligned to 2 MiB and advised
/// for huge pages, so that a huge page never straddles two buffers with different homes; below, it starts on a page.
/// Pages are brought in at first touch. Each buffer costs a mapping and is rounded up to pages: meant for arrays, not
/// for rows. Moving it does not move the memory. One owner; threads may share what it holds under their own rules.
class Buffer {
 public:
  /// Below this size: page alignment, no huge pages.
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  /// Alignment that callers may rely on whatever the size.
  static constexpr std::size_t kAlignment = 64;

  Buffer() = default;
  /// On the memory of one domain. Exact (MPOL_BIND) while the node has room for it, else preferred, so that a full node
  /// spills to its neighbours instead of ending the process. Throws MemoryError, or std::out_of_range for the domain.
  static Buffer local(std::size_t bytes, unsigned domain, const Topology& topology);
  /// Dealt over the domains' nodes, memory-only nodes left out, in units of 4 KiB or of 2 MiB where huge pages are
  /// used.
  static Buffer interleaved(std::size_t bytes, const Topology& topology);

  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  /// Bytes asked for; the mapping may be longer.
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  Placement placement() const noexcept { return placement_; }
  /// Why the placement is not what was asked for; empty if it is.
  const std::string& remark() const noexcept { return remark_; }

  /// The memory as an array of T (as many as fit whole), zero at first. No T is constructed: T must be trivial to copy.
  template <class T>
  std::span<T> as() noexcept {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const noexcept {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

  /// Brings all pages in now (they are zeroed on the calling thread, about 0.1 to 0.3 s per GB) so that training pays
  /// no page faults.
  void populate();
  /// Gives the memory back now; the buffer is then empty.
  void release() noexcept;

 private:
  friend class Replicated;
  static Buffer mapped(std::size_t bytes, Placement placement);

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;
  Placement placement_ = Placement::local;
  std::string remark_;
};

/// An object in the memory of one domain; what it allocates itself lies wherever the allocating thread's memory is.
template <class T>
class LocalObject {
 public:
  template <class... Arguments>
  explicit LocalObject(unsigned domain, const Topology& topology, Arguments&&... arguments)
      : memory_(Buffer::local(sizeof(T), domain, topology)),
        object_(::new (memory_.data()) T(std::forward<Arguments>(arguments)...)) {
    static_assert(alignof(T) <= Buffer::kAlignment);
  }
  ~LocalObject() { object_->~T(); }
  LocalObject(const LocalObject&) = delete;
  LocalObject& operator=(const LocalObject&) = delete;

  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }

 private:
  Buffer memory_;
  T* object_;
};

/// One whole copy per domain. The copies start zeroed and equal; keeping them equal afterwards is the caller's work.
class Replicated {
 public:
  Replicated() = default;
  /// bytes per copy. Throws MemoryError.
  Replicated(std::size_t bytes, const Topology& topology);

  std::size_t copies() const noexcept { return copies_.size(); }
  /// Bytes of one copy.
  std::size_t size() const noexcept { return copies_.empty() ? 0 : copies_.front().size(); }
  Buffer& on(unsigned domain) { return copies_.at(domain); }
  const Buffer& on(unsigned domain) const { return copies_.at(domain); }
  template <class T>
  std::span<T> as(unsigned domain) {
    return on(domain).as<T>();
  }
  template <class T>
  std::span<const T> as(unsigned domain) const {
    return on(domain).as<T>();
  }
  /// Copies one domain's bytes over all the others. Nobody may touch any copy meanwhile.
  void copy_from(unsigned domain);
  /// Remarks of all copies, each once.
  std::vector<std::string> remarks() const;
  void release() noexcept { copies_.clear(); }

 private:
  std::vector<Buffer> copies_;
};

/// Where the pages of a stretch of memory are. All in bytes of that stretch; the parts add up to `bytes`.
struct PageReport {
  std::uint64_t bytes = 0;
  std::vector<std::pair<int, std::uint64_t>> nodes;  ///< kernel's node, bytes there; ascending, none with 0 bytes
  std::uint64_t not_present = 0;                     ///< not touched yet, or swapped out
  std::uint64_t unknown = 0;                         ///< the kernel would not say
  std::uint64_t pages_asked = 0;
  std::string reason;  ///< why there are unknown bytes, empty if there are none

  std::uint64_t on_node(int os_node) const;
  /// Share of the present bytes that lie on the node, 0 when none are present.
  double share_on(int os_node) const;
};

/// Asks the kernel (move_pages without a target) where each page is. At most max_pages pages are asked for, spread
/// evenly, each then stands for its neighbours too; 0 asks for all. About 0.1 µs a page. Never throws but for lack of
/// memory.
PageReport where_pages_are(const void* start, std::size_t bytes, std::size_t max_pages = 0);

/// What is left for this process. Two file trees and /proc are read: call it once, not in a loop.
struct AvailableMemory {
  std::uint64_t physical_bytes = 0;    ///< memory of the machine
  std::uint64_t available_bytes = 0;   ///< free or freeable without swapping (MemAvailable)
  std::uint64_t limit_bytes = 0;       ///< tightest limit of a control group or of RLIMIT_AS, 0 if there is none
  std::uint64_t limit_left_bytes = 0;  ///< what is left below that limit; meaningless if limit_bytes is 0
  std::string limited_by;              ///< "", the control group's folder, or "RLIMIT_AS"

  /// Bytes that a run may plan with: the smaller of available_bytes and limit_left_bytes.
  std::uint64_t usable() const noexcept;
};
AvailableMemory available_memory();
/// Free and freeable bytes of the domain's memory node, 0 if unknown (another machine, or no such figures).
std::uint64_t available_memory(const Topology& topology, unsigned domain);

}  // namespace orrery
