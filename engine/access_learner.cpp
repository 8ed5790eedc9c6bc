#include "engine/access_learner.h"

namespace orrery {
namespace {

// A pattern that does not come back within so many plans, each a quarter longer, is not worth more of them; but rows of
// an iteration that takes many clocks come back late, so as long as the plan may come to cover half of the table, the
// memory is small against the table's.
constexpr unsigned kPoorPlans = 12;

}  // namespace

bool AccessLearner::repeats() {
  const std::uint64_t adds = counts_.adds - adds_before_;
  adds_before_ += adds;
  poor_plans_ = plan_ != nullptr && 2 * misses_since_ > adds ? poor_plans_ + 1 : 0;
  const bool comes_back = poor_plans_ < kPoorPlans || planned() < table_rows_ / 2;
  return comes_back && planned() + missed_.size() <= AccessSlots::kMost;
}

// A worker that touches most rows, often, is better off with a record of every row than with a look-up for each access
// - if they come again. It takes at most twice the memory, and where all records are walked after a clock, those in
// vain, too.
bool AccessLearner::replicates(std::uint32_t rows) const {
  const bool come_again = poor_plans_ == 0 && counts_.adds >= 2 * std::uint64_t{rows};
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
  if (misses_since_ == 0) return plan_;
  if (!repeats()) {
    is_on_ = false;
    counts_.given_up = 1;
    return nullptr;
  }
  ++counts_.extensions;
  const std::pmr::polymorphic_allocator<> allocator(memory_);
  auto longer = plan_ == nullptr ? std::allocate_shared<AccessSlots>(allocator, table_rows_, memory_)
                                 : std::allocate_shared<AccessSlots>(allocator, *plan_, memory_);
  for (const std::uint32_t row : missed_) longer->enter(row);
  return replicates(longer->size()) ? everything() : longer;
}

std::vector<std::uint32_t> AccessLearner::known_rows() const {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t slot = 0; slot < planned(); ++slot) rows.push_back(plan_->row(slot));
  rows.insert(rows.end(), missed_.begin(), missed_.end());
  return rows;
}

void AccessLearner::follow(std::shared_ptr<const AccessSlots> plan) {
  plan_ = std::move(plan);
  missed_.clear();
  misses_since_ = 0;
}

}  // namespace orrery
