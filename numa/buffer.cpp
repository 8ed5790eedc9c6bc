#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "numa/cpu_mask.h"
#include "numa/memory.h"
#include "numa/system_files.h"

namespace orrery {
namespace {

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

[[noreturn]] void cannot_allocate(std::size_t bytes, const std::string& reason) {
  throw MemoryError("cannot allocate " + std::to_string(bytes) + " bytes: " + reason);
}

std::byte* map(std::size_t asked, std::size_t length) {
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) cannot_allocate(asked, detail::system_reason(errno));
  return static_cast<std::byte*>(memory);
}

/// Maps a little more and gives the ends back, so that the stretch starts and ends on huge pages.
std::byte* map_aligned(std::size_t asked, std::size_t length) {
  std::byte* const whole = map(asked, length + Buffer::kHugePage);
  const auto address = reinterpret_cast<std::uintptr_t>(whole);
  const std::size_t before = rounded_up(address, Buffer::kHugePage) - address;
  if (before > 0) munmap(whole, before);
  munmap(whole + before + length, Buffer::kHugePage - before);
  return whole + before;
}

/// Sets the policy of untouched memory; empty if it worked.
std::string place(std::byte* memory, std::size_t length, int mode, const std::vector<unsigned>& nodes) {
  const detail::CpuMask mask = detail::mask_of(nodes);
  // The kernel looks at one bit less than it is told.
  if (mbind(memory, length, mode, mask.data(), mask.size() * detail::kMaskBits + 1, 0) == 0) return {};
  return "memory could not be placed (mbind): " + detail::system_reason(errno);
}

/// Whether there is anything to choose between, and what to say when there is and it cannot be done.
bool placement_matters(const Topology& topology) {
  return topology.domains().size() > 1 || !topology.memory_only().empty();
}

std::string obstacle(const Topology& topology) {
  if (!topology.is_this_system()) return "not placed: the topology is not this machine's (" + topology.source() + ")";
  if (!topology.can_bind_memory()) return "not placed: this machine does not let memory be bound";
  return {};
}

}  // namespace

const char* to_string(Placement placement) {
  switch (placement) {
    case Placement::local:
      return "local";
    case Placement::interleaved:
      return "interleaved";
    case Placement::replicated:
      return "replicated";
  }
  return "?";
}

Buffer Buffer::mapped(std::size_t bytes, Placement placement) {
  Buffer buffer;
  buffer.placement_ = placement;
  if (bytes == 0) return buffer;
  if (bytes > std::numeric_limits<std::size_t>::max() / 4) cannot_allocate(bytes, "more than there are addresses");
  const bool huge = bytes >= kHugePage;
  buffer.mapped_ = rounded_up(bytes, huge ? kHugePage : page_size());
  buffer.data_ = huge ? map_aligned(bytes, buffer.mapped_) : map(bytes, buffer.mapped_);
  buffer.size_ = bytes;
  // Advice only: without it everything works with small pages, so a kernel without huge pages is no reason to complain.
  if (huge) madvise(buffer.data_, buffer.mapped_, MADV_HUGEPAGE);
  return buffer;
}

Buffer Buffer::local(std::size_t bytes, unsigned domain, const Topology& topology) {
  const Domain& home = topology.domains().at(domain);
  Buffer buffer = mapped(bytes, Placement::local);
  if (buffer.empty() || !placement_matters(topology)) return buffer;
  buffer.remark_ = obstacle(topology);
  if (!buffer.remark_.empty()) return buffer;
  if (home.memory_node < 0) {
    buffer.remark_ = "not placed: domain " + std::to_string(domain) + " has no memory node";
    return buffer;
  }
  // Bound memory of a full node ends the process. Preferred memory spills over, but does so already when the node is
  // full of file cache, which binding would drop.
  const std::uint64_t room = detail::node_available_bytes("", home.memory_node).value_or(home.memory_bytes);
  const bool fits = buffer.mapped_ <= room;
  const auto node = static_cast<unsigned>(home.memory_node);
  buffer.remark_ = place(buffer.data_, buffer.mapped_, fits ? MPOL_BIND : MPOL_PREFERRED, {node});
  if (buffer.remark_.empty() && !fits) {
    buffer.remark_ = "node " + std::to_string(node) + " has room for " + std::to_string(room) + " of " +
                     std::to_string(bytes) + " bytes: the rest lies on other nodes";
  }
  return buffer;
}

Buffer Buffer::interleaved(std::size_t bytes, const Topology& topology) {
  Buffer buffer = mapped(bytes, Placement::interleaved);
  if (buffer.empty() || !placement_matters(topology)) return buffer;
  buffer.remark_ = obstacle(topology);
  if (!buffer.remark_.empty()) return buffer;
  std::vector<unsigned> nodes;
  for (const Domain& domain : topology.domains()) {
    if (domain.memory_node >= 0) nodes.push_back(static_cast<unsigned>(domain.memory_node));
  }
  buffer.remark_ = nodes.empty() ? "not placed: no domain has a memory node"
                                 : place(buffer.data_, buffer.mapped_, MPOL_INTERLEAVE, nodes);
  return buffer;
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  mapped_ = std::exchange(other.mapped_, 0);
  placement_ = other.placement_;
  remark_ = std::move(other.remark_);
  return *this;
}

Buffer::~Buffer() { release(); }

void Buffer::populate() {
  if (empty()) return;
#ifdef MADV_POPULATE_WRITE
  if (madvise(data_, mapped_, MADV_POPULATE_WRITE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS)
    cannot_allocate(size_, "pages cannot be brought in: " + detail::system_reason(errno));
#endif
  // Kernels before 5.14: a write brings a page in. It must not change what is there already.
  for (std::size_t at = 0; at < mapped_; at += page_size()) {
    auto* byte = reinterpret_cast<volatile unsigned char*>(data_ + at);
    *byte = *byte;
  }
}

void Buffer::release() noexcept {
  if (data_ != nullptr) munmap(data_, mapped_);
  data_ = nullptr;
  size_ = 0;
  mapped_ = 0;
}

Replicated::Replicated(std::size_t bytes, const Topology& topology) {
  for (const Domain& domain : topology.domains()) {
    copies_.push_back(Buffer::local(bytes, domain.id, topology));
    copies_.back().placement_ = Placement::replicated;
  }
}

void Replicated::copy_from(unsigned domain) {
  const Buffer& source = on(domain);
  for (Buffer& copy : copies_) {
    if (&copy != &source && !source.empty()) std::memcpy(copy.data(), source.data(), source.size());
  }
}

std::vector<std::string> Replicated::remarks() const {
  std::vector<std::string> result;
  for (const Buffer& copy : copies_) {
    if (!copy.remark().empty() && std::find(result.begin(), result.end(), copy.remark()) == result.end()) {
      result.push_back(copy.remark());
    }
  }
  return result;
}

}  // namespace orrery
