// Values to bytes and back, for payloads of messages between nodes of one kind of machine.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "engine/assert.h"
#include "engine/message.h"

namespace orrery {

template <class T>
void put_all(Bytes& out, std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::span<const std::byte> bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class T>
void put(Bytes& out, const T& value) {
  put_all(out, std::span<const T>(&value, 1));
}

/// Reads what put() wrote, in the same order. A payload that is too short is a broken invariant, not bad input.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  void take_all(std::span<T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t bytes = values.size_bytes();
    ORRERY_CHECK(bytes <= rest_.size());
    if (bytes != 0) std::memcpy(values.data(), rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
  }
  template <class T>
  T take() {
    T value{};
    take_all(std::span<T>(&value, 1));
    return value;
  }
  bool empty() const noexcept { return rest_.empty(); }
  std::size_t bytes_left() const noexcept { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace orrery
