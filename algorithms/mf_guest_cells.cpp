#include "algorithms/mf_guest_cells.h"

#include <algorithm>

#include "engine/wire.h"

namespace orrery::mf {
namespace {

/// A cache line of a factor row or of sides: what makes vectors of them as aligned as kernels want.
struct Line {
  alignas(64) std::byte bytes[64];
};

std::vector<Line> lines_for(std::size_t bytes) { return std::vector<Line>((bytes + sizeof(Line) - 1) / sizeof(Line)); }

/// The rows that occur in a cell, ascending.
std::vector<std::uint32_t> rows_of(const Cell& cell) {
  std::vector<std::uint32_t> rows = cell.rows;
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

template <class T>
void put_list(Bytes& out, const std::vector<T>& values) {
  put(out, std::uint64_t{values.size()});
  put_all(out, std::span<const T>(values));
}

template <class T>
void take_list(WireReader& in, std::vector<T>& values) {
  values.resize(in.take<std::uint64_t>());
  in.take_all(std::span(values));
}

/// Rows in memory of their own, from bytes and to bytes.
class Gathered {
 public:
  Gathered(std::size_t count, std::size_t stride)
      : count_(count),
        stride_(stride),
        factors_(lines_for(count * stride * 4)),
        sides_(lines_for(count * sizeof(Side))) {}
  FactorRows rows() { return {reinterpret_cast<float*>(factors_.data()), reinterpret_cast<Side*>(sides_.data())}; }
  void read(WireReader& in) {
    in.take_all(std::span(rows().factors, count_ * stride_));
    in.take_all(std::span(rows().sides, count_));
  }
  void write(Bytes& out) {
    put_all(out, std::span<const float>(rows().factors, count_ * stride_));
    put_all(out, std::span<const Side>(rows().sides, count_));
  }

 private:
  std::size_t count_, stride_;
  std::vector<Line> factors_, sides_;
};

}  // namespace

Bytes GuestCells::pack(std::size_t stripe, BlockId block, NodeId helper) {
  const Cell& cell = grid_.cell(stripe, block);
  const std::uint64_t number = stripe * grid_.blocks() + block;
  const std::vector<std::uint32_t> rows = rows_of(cell);
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    is_new = !kept_.contains({helper, number});
  }
  Bytes out;
  put(out, helper);
  put(out, number);
  put(out, std::uint64_t{rows.size()});
  put(out, std::uint8_t{is_new});
  if (is_new) {
    std::vector<std::uint32_t> renumbered;
    for (const std::uint32_t row : cell.rows) {
      renumbered.push_back(static_cast<std::uint32_t>(std::lower_bound(rows.begin(), rows.end(), row) - rows.begin()));
    }
    put(out, cell.batches);
    put_list(out, renumbered);
    put_list(out, cell.columns);
    put_list(out, cell.values);
  }
  const FactorRows home = state_.stripe(stripe);
  for (const std::uint32_t row : rows) {
    put_all(out, std::span<const float>(home.factors + row * state_.stride(), state_.stride()));
  }
  for (const std::uint32_t row : rows) put(out, home.sides[row]);
  state_.save_block(block, out);
  return out;
}

const GuestCells::Visitor& GuestCells::visitor(std::uint64_t cell, std::span<const std::byte>& packed) {
  WireReader in(packed);
  const bool is_new = in.take<std::uint8_t>() != 0;
  const std::lock_guard lock(mutex_);
  Visitor& visitor = visitors_[cell];
  if (is_new) {
    visitor.batches = in.take<std::array<std::uint32_t, kMaxBatch>>();
    take_list(in, visitor.rows);
    take_list(in, visitor.columns);
    take_list(in, visitor.values);
  }
  packed = packed.last(in.bytes_left());
  return visitor;
}

Bytes GuestCells::train(std::span<const std::byte> packed, BlockId block, const Kernels& kernels,
                        const StepRule& step) {
  WireReader head(packed);
  const auto helper = head.take<NodeId>();
  const auto number = head.take<std::uint64_t>();
  Gathered users(head.take<std::uint64_t>(), state_.stride()), items(state_.columns_in(block), state_.stride());
  packed = packed.last(head.bytes_left());
  const Visitor& cell = visitor(number, packed);
  WireReader in(packed);
  users.read(in);
  items.read(in);
  Bytes out;
  put(out, helper);
  put(out, kernels.train_cell({cell.batches.data(), cell.rows.data(), cell.columns.data(), cell.values.data()},
                              users.rows(), items.rows(), state_.stride(), step));
  users.write(out);
  items.write(out);
  return out;
}

double GuestCells::take(std::size_t stripe, BlockId block, std::span<const std::byte> wrote) {
  WireReader in(wrote);
  const auto helper = in.take<NodeId>();
  const auto squares = in.take<double>();
  {
    const std::lock_guard lock(mutex_);
    kept_.emplace(helper, stripe * grid_.blocks() + block);
  }
  const std::vector<std::uint32_t> rows = rows_of(grid_.cell(stripe, block));
  const FactorRows home = state_.stripe(stripe);
  for (const std::uint32_t row : rows) {
    in.take_all(std::span(home.factors + row * state_.stride(), state_.stride()));
  }
  for (const std::uint32_t row : rows) home.sides[row] = in.take<Side>();
  state_.load_block(block, wrote.last(in.bytes_left()));
  return squares;
}

}  // namespace orrery::mf
