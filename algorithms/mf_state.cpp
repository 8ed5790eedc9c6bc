#include "algorithms/mf_state.h"

#include <cstring>

#include "engine/assert.h"
#include "engine/error.h"

namespace orrery::mf {
namespace {

constexpr std::size_t kCacheLine = 64;

std::size_t rounded(std::size_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

std::vector<std::size_t> bytes_of_parts(const Axis& axis, std::size_t bytes_each) {
  std::vector<std::size_t> bytes;
  for (std::size_t p = 0; p < axis.parts(); ++p) bytes.push_back(axis.part_size(p) * bytes_each);
  return bytes;
}

}  // namespace

MfState::MfState(const Topology& topology, const WorkerMap& map, const Axis& rows, const Axis& columns,
                 std::size_t rank)
    : rank_(rank),
      stride_(padded_rank(rank)),
      stripes_(rows.parts()),
      factors_(topology, bytes_of_parts(columns, padded_rank(rank) * sizeof(float))),
      sides_(topology, bytes_of_parts(columns, sizeof(Side))) {
  ORRERY_CHECK(rows.parts() % map.workers() == 0);
  const std::size_t stripes_each = rows.parts() / map.workers();
  const auto domain_of = [&](std::size_t stripe) {
    return map.domain_of(static_cast<WorkerId>(stripe / stripes_each));
  };
  const std::size_t row_bytes = stride_ * sizeof(float);
  std::vector<std::size_t> bytes(map.domains(), 0);
  std::vector<std::size_t> offsets(stripes_.size());
  for (std::size_t s = 0; s < stripes_.size(); ++s) {
    stripes_[s].count = rows.part_size(s);
    std::size_t& used = bytes[domain_of(s)];
    offsets[s] = used;
    used += rounded(stripes_[s].count * row_bytes) + rounded(stripes_[s].count * sizeof(Side));
  }
  for (DomainId d = 0; d < map.domains(); ++d) row_memory_.push_back(Buffer::local(bytes[d], d, topology));
  for (std::size_t s = 0; s < stripes_.size(); ++s) {
    std::byte* const start = row_memory_[domain_of(s)].data() + offsets[s];
    stripes_[s].rows = {reinterpret_cast<float*>(start),
                        reinterpret_cast<Side*>(start + rounded(stripes_[s].count * row_bytes))};
  }
  for (BlockId b = 0; b < columns.parts(); ++b) block_counts_.push_back(columns.part_size(b));
}

FactorRows MfState::acquire(BlockId block, DomainId domain) {
  return {reinterpret_cast<float*>(factors_.acquire(block, domain).data()),
          reinterpret_cast<Side*>(sides_.acquire(block, domain).data())};
}

FactorRows MfState::block(BlockId block) const {
  return {reinterpret_cast<float*>(factors_.view(block).data()), reinterpret_cast<Side*>(sides_.view(block).data())};
}

void MfState::for_each_array(const std::function<void(std::byte*, std::size_t)>& visit) const {
  const auto both = [&](const FactorRows& part, std::size_t count) {
    visit(reinterpret_cast<std::byte*>(part.factors), count * stride_ * sizeof(float));
    visit(reinterpret_cast<std::byte*>(part.sides), count * sizeof(Side));
  };
  for (const Stripe& stripe : stripes_) both(stripe.rows, stripe.count);
  for (BlockId b = 0; b < blocks(); ++b) both(block(b), block_counts_[b]);
}

Bytes MfState::save() const {
  std::size_t total = 0;
  for_each_array([&](std::byte*, std::size_t bytes) { total += bytes; });
  Bytes out;
  out.reserve(total);
  for_each_array([&](std::byte* from, std::size_t bytes) { out.insert(out.end(), from, from + bytes); });
  return out;
}

void MfState::load(std::span<const std::byte> bytes) {
  std::size_t total = 0;
  for_each_array([&](std::byte*, std::size_t size) { total += size; });
  if (total != bytes.size()) {
    throw Error(ErrorKind::data, "the checkpoint's parameters have " + std::to_string(bytes.size()) +
                                     " bytes, this model has " + std::to_string(total));
  }
  for_each_array([&](std::byte* to, std::size_t size) {
    if (size != 0) std::memcpy(to, bytes.data(), size);
    bytes = bytes.subspan(size);
  });
}

}  // namespace orrery::mf
