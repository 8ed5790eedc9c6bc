#include "algorithms/mf_state.h"

#include <cstring>

#include "engine/assert.h"
#include "engine/error.h"

namespace orrery::mf {
namespace {

constexpr std::size_t kLineBytes = 64;

std::size_t rounded(std::size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

std::vector<std::size_t> bytes_of_parts(const Axis& axis, std::size_t bytes_each) {
  std::vector<std::size_t> bytes;
  for (std::size_t p = 0; p < axis.parts(); ++p) bytes.push_back(axis.part_size(p) * bytes_each);
  return bytes;
}

}  // namespace

MfState::MfState(const Topology& topology, const WorkerMap& map, const Axis& rows, const Axis& columns,
                 std::size_t rank)
    : map_(map),
      rank_(rank),
      stride_(padded_rank(rank)),
      stripes_(rows.parts()),
      factors_(topology, bytes_of_parts(columns, padded_rank(rank) * sizeof(float))),
      sides_(topology, bytes_of_parts(columns, sizeof(Side))) {
  ORRERY_CHECK(rows.parts() % map.workers() == 0);
  for (std::size_t s = 0; s < stripes_.size(); ++s) stripes_[s].count = rows.part_size(s);
  for (BlockId b = 0; b < columns.parts(); ++b) block_counts_.push_back(columns.part_size(b));
  const std::size_t stripes_each = rows.parts() / map.workers();
  const auto domain_of = [&](std::size_t stripe) {
    return map.domain_of(static_cast<WorkerId>(stripe / stripes_each));
  };
  const std::size_t factor_bytes = stride_ * sizeof(float);
  std::vector<std::size_t> bytes(map.domains(), 0);
  std::vector<std::size_t> offsets(stripes_.size());
  const auto [first, last] = stripes_of(map.this_node());
  for (std::size_t s = first; s < last; ++s) {
    std::size_t& used = bytes[domain_of(s)];
    offsets[s] = used;
    used += rounded(stripes_[s].count * factor_bytes) + rounded(stripes_[s].count * sizeof(Side));
  }
  // At least a byte, so that a stripe without rows has an address too.
  for (DomainId d = 0; d < map.domains(); ++d) row_memory_.push_back(Buffer::local(bytes[d] + 1, d, topology));
  for (std::size_t s = first; s < last; ++s) {
    std::byte* const start = row_memory_[domain_of(s)].data() + offsets[s];
    stripes_[s].rows = {reinterpret_cast<float*>(start),
                        reinterpret_cast<Side*>(start + rounded(stripes_[s].count * factor_bytes))};
  }
}

std::pair<std::size_t, std::size_t> MfState::stripes_of(NodeId node) const {
  const std::size_t each = stripes_.size() / map_.workers();
  return {map_.first_worker(node) * each, map_.first_worker(node + 1) * each};
}

std::size_t MfState::row_bytes(std::size_t first_stripe, std::size_t last_stripe) const {
  std::size_t bytes = 0;
  for (std::size_t s = first_stripe; s < last_stripe; ++s) bytes += bytes_of(stripes_[s].count);
  return bytes;
}

FactorRows MfState::acquire(BlockId block, DomainId domain) {
  return {reinterpret_cast<float*>(factors_.acquire(block, domain).data()),
          reinterpret_cast<Side*>(sides_.acquire(block, domain).data())};
}

FactorRows MfState::block(BlockId block) const {
  return {reinterpret_cast<float*>(factors_.view(block).data()), reinterpret_cast<Side*>(sides_.view(block).data())};
}

void MfState::visit_rows(const FactorRows& rows, std::size_t count, const ArrayVisitor& visit) const {
  visit(reinterpret_cast<std::byte*>(rows.factors), count * stride_ * sizeof(float));
  visit(reinterpret_cast<std::byte*>(rows.sides), count * sizeof(Side));
}

void MfState::for_each_row_array(const ArrayVisitor& visit) const {
  const auto [first, last] = stripes_of(map_.this_node());
  for (std::size_t s = first; s < last; ++s) visit_rows(stripes_[s].rows, stripes_[s].count, visit);
}

namespace {

/// A visitor of arrays that fills them from bytes, which it uses up.
auto taker(std::span<const std::byte>& bytes) {
  return [&bytes](std::byte* to, std::size_t size) {
    ORRERY_CHECK(size <= bytes.size());
    if (size != 0) std::memcpy(to, bytes.data(), size);
    bytes = bytes.subspan(size);
  };
}

}  // namespace

MfState::Saved MfState::save() const {
  const auto [first, last] = stripes_of(map_.this_node());
  Saved saved;
  saved.rows.reserve(row_bytes(first, last));
  for_each_row_array(
      [&](std::byte* from, std::size_t size) { saved.rows.insert(saved.rows.end(), from, from + size); });
  for (BlockId b = 0; b < blocks(); ++b) save_block(b, saved.columns);
  return saved;
}

void MfState::load(const Saved& saved) {
  std::span<const std::byte> rows = saved.rows, columns = saved.columns;
  for_each_row_array(taker(rows));
  for (BlockId b = 0; b < blocks(); ++b) {
    load_block(b, columns.first(block_bytes(b)));
    columns = columns.subspan(block_bytes(b));
  }
}

MfState::Saved MfState::part_of(std::span<const std::byte> whole) const {
  const std::size_t rows = row_bytes(0, stripes());
  std::size_t total = rows;
  for (BlockId b = 0; b < blocks(); ++b) total += block_bytes(b);
  if (total != whole.size()) {
    throw Error(ErrorKind::data, "the checkpoint's parameters have " + std::to_string(whole.size()) +
                                     " bytes, this model has " + std::to_string(total));
  }
  const auto [first, last] = stripes_of(map_.this_node());
  const auto mine = whole.subspan(row_bytes(0, first), row_bytes(first, last)), columns = whole.subspan(rows);
  return {Bytes(mine.begin(), mine.end()), Bytes(columns.begin(), columns.end())};
}

void MfState::save_block(BlockId b, Bytes& out) const {
  visit_rows(block(b), block_counts_[b],
             [&](const std::byte* from, std::size_t size) { out.insert(out.end(), from, from + size); });
}

void MfState::load_block(BlockId b, std::span<const std::byte> bytes) {
  visit_rows(block(b), block_counts_[b], taker(bytes));
}

std::size_t MfState::block_bytes(BlockId block) const { return bytes_of(block_counts_[block]); }

void MfState::adopt_rows(NodeId node, Bytes rows) {
  Bytes& memory = adopted_.emplace_back(std::move(rows));
  const auto [first, last] = stripes_of(node);
  ORRERY_CHECK(memory.size() == row_bytes(first, last));
  std::byte* at = memory.data();
  for (std::size_t s = first; s < last; ++s) {
    const std::size_t count = stripes_[s].count;
    stripes_[s].rows = {reinterpret_cast<float*>(at), reinterpret_cast<Side*>(at + count * stride_ * sizeof(float))};
    at += bytes_of(count);
  }
}

}  // namespace orrery::mf
