#include "engine/access_learner.h"

namespace orrery {

void AccessLearner::note_clock(std::size_t touched, std::span<const std::uint32_t> missed) {
  ++clocks_;
  ++clocks_since_;
  touched_since_ += touched + missed.size();
  if (!is_on_ || touched + missed.size() == 0) return;
  const std::uint64_t before = known();
  if (!missed.empty() && known_ == nullptr) {
    const std::pmr::polymorphic_allocator<> allocator(memory_);
    known_ = plan_ == nullptr ? std::allocate_shared<AccessSlots>(allocator, table_rows_, memory_)
                              : std::allocate_shared<AccessSlots>(allocator, *plan_, memory_);
  }
  for (const std::uint32_t row : missed) known_->enter(row);
  const std::uint64_t strange = known() - before;
  const bool is_first = before == 0;
  lacked_ += is_first ? strange : missed.size() - strange;
  strange_clocks_ = !is_first && 2 * strange > touched + missed.size() ? strange_clocks_ + 1 : 0;
}

// A worker that touches most rows, often, is better off with a record of every row than with a look-up for each access
// - if they come again. It takes at most twice the memory, and where all records are walked after a clock, those in
// vain, too.
bool AccessLearner::replicates(std::uint32_t rows) const {
  const bool come_again = strange_clocks_ == 0 && counts_.adds >= 2 * std::uint64_t{rows};
  if (!come_again || 2 * std::uint64_t{rows} < table_rows_) return false;
  const auto looked_up = static_cast<double>(counts_.reads + counts_.adds - along_);
  const double walked =
      is_walked_ ? static_cast<double>((table_rows_ - rows) * std::max<std::uint64_t>(1, clocks_)) : 0;
  return looked_up * costs_.lookup > walked * costs_.walk;
}

std::shared_ptr<AccessSlots> AccessLearner::everything() const {
  auto all = std::allocate_shared<AccessSlots>(std::pmr::polymorphic_allocator<>(memory_), table_rows_, memory_);
  for (std::uint32_t row = 0; row < table_rows_; ++row) all->enter(row);
  return all;
}

std::shared_ptr<const AccessSlots> AccessLearner::extended() {
  if (known() > AccessSlots::kMost) {
    is_on_ = false;
    known_ = nullptr;
    return nullptr;
  }
  if (!pays(lacked_, known()) && is_in_vain()) return nullptr;  // known_ has its rows, and those that it lacked
  if (known_ == nullptr || lacked_ == 0) return plan_;
  ++counts_.extensions;
  return replicates(known_->size()) ? everything() : known_;
}

std::vector<std::uint32_t> AccessLearner::known_rows() const {
  const AccessSlots* const all = known_ == nullptr ? plan_.get() : known_.get();
  std::vector<std::uint32_t> rows;
  for (std::uint32_t slot = 0; slot < known(); ++slot) rows.push_back(all->row(slot));
  return rows;
}

void AccessLearner::follow(std::shared_ptr<const AccessSlots> plan) {
  if (plan != nullptr && plan != plan_) strange_clocks_ = 0;  // what was strange to another one says nothing of it
  plan_ = std::move(plan);
  lacked_ = 0;
  if (plan_ != nullptr && plan_->size() >= known()) known_ = nullptr;
}

}  // namespace orrery
