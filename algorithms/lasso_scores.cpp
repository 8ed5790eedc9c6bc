#include "algorithms/lasso_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/lasso_state.h"
#include "engine/clock.h"
#include "engine/wire.h"

namespace orrery::lasso {
namespace {

constexpr std::size_t kBlock = Design::kBlock;
constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr double kAlways = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-12;  // of the distance: what sums of it may lack

std::size_t block_of(std::uint32_t j) { return j / kBlock; }

/// The part [first, last) of each node, one after the other.
template <class T>
std::vector<T> joined_part(const std::vector<T>& values, std::size_t first, std::size_t last, const Collective& nodes) {
  return nodes.joined(std::vector<T>(values.begin() + static_cast<std::ptrdiff_t>(first),
                                     values.begin() + static_cast<std::ptrdiff_t>(last)));
}

}  // namespace

Scores::Scores(const Design& design, WorkerId workers)
    : design_(design),
      first_(design.deal(workers)),
      listed_(workers),
      computed_(workers, 0),
      gradient_(design.columns(), 0.0),
      key_(design.columns(), kAlways),
      norm_(design.columns(), 0.0),
      block_key_((design.columns() + kBlock - 1) / kBlock, kNever),
      block_norm_(block_key_.size(), 0.0) {
  for (std::uint32_t j = 0; j < design.columns(); ++j) {
    norm_[j] = std::sqrt(design.curvature(j));
    if (!design.is_usable(j)) continue;
    block_key_[block_of(j)] = kAlways;
    block_norm_[block_of(j)] = std::max(block_norm_[block_of(j)], norm_[j]);
  }
}

bool Scores::may_matter(std::uint32_t j, double due) const {
  if (key_[j] + norm_[j] * distance_ < due) return false;
  if (is_screened_ == 0) return true;
  const double bound = key_[j] + norm_[j] * screen_distance_;  // of the gradient where the gap was certified
  return screen_scale_ * bound + screen_radius_ * std::sqrt(norm_[j] * norm_[j] + screen_l2_) >= screen_l1_;
}

void Scores::update(WorkerId worker, const Residual& residual, std::span<const double> coefficients, double due) {
  std::vector<std::uint32_t>& listed = listed_[worker];
  listed.clear();
  for (std::size_t first = first_[worker]; first < first_[worker + 1]; first += kBlock) {
    const std::size_t block = first / kBlock;
    if (block_key_[block] + block_norm_[block] * distance_ < due) continue;
    const std::size_t last = std::min<std::size_t>(first + kBlock, design_.columns());
    double latest = kNever;
    for (std::size_t column = first; column < last; ++column) {
      const auto j = static_cast<std::uint32_t>(column);
      if (!design_.is_usable(j)) continue;
      const bool is_active = coefficients[j] != 0;
      if (is_active || may_matter(j, due)) {
        gradient_[j] = design_.gradient(j, residual);
        key_[j] = std::abs(gradient_[j]) - norm_[j] * distance_;
        ++computed_[worker];
        if (is_active || std::abs(gradient_[j]) >= due) listed.push_back(j);
      }
      latest = std::max(latest, is_active ? kAlways : key_[j]);
    }
    block_key_[block] = latest;
  }
}

std::uint64_t Scores::computed() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : computed_) sum += count;
  return sum;
}

void Scores::moved(double distance, std::span<const std::uint32_t> touched) {
  distance_ += distance * (1 + kRounding);
  for (const std::uint32_t j : touched) block_key_[block_of(j)] = kAlways;
}

void Scores::screen(double dual_scale, double gap, Penalty penalty) {
  is_screened_ = 1;
  screen_distance_ = distance_;
  screen_scale_ = std::abs(dual_scale);
  screen_radius_ = std::sqrt(2 * std::max(gap, 0.0));
  screen_l1_ = penalty.l1;
  screen_l2_ = penalty.l2;
}

Bytes Scores::pack(WorkerId first, WorkerId last) const {
  Bytes packed;
  for (WorkerId worker = first; worker < last; ++worker) {
    put(packed, std::uint64_t{listed_[worker].size()});
    put_all(packed, std::span(listed_[worker]));
    for (const std::uint32_t j : listed_[worker]) put(packed, gradient_[j]);
  }
  return packed;
}

void Scores::take(WorkerId first, WorkerId last, std::span<const std::byte> packed) {
  WireReader in(packed);
  for (WorkerId worker = first; worker < last; ++worker) {
    listed_[worker].resize(in.take<std::uint64_t>());
    in.take_all(std::span(listed_[worker]));
    for (const std::uint32_t j : listed_[worker]) gradient_[j] = in.take<double>();
  }
}

void Scores::save(std::vector<StateSection>& sections, const Collective& nodes) const {
  const WorkerMap map(workers(), nodes.nodes(), nodes.node(), 1);
  const WorkerId worker = map.first_worker(nodes.node()), end = map.first_worker(nodes.node() + 1);
  const std::size_t first = first_[worker], last = first_[end];
  const std::size_t first_block = (first + kBlock - 1) / kBlock, last_block = (last + kBlock - 1) / kBlock;
  sections.push_back(section_of<double>("gradients", joined_part(gradient_, first, last, nodes)));
  sections.push_back(section_of<double>("keys", joined_part(key_, first, last, nodes)));
  sections.push_back(section_of<double>("block-keys", joined_part(block_key_, first_block, last_block, nodes)));
  sections.push_back(section_of<std::uint64_t>("computed", joined_part(computed_, worker, end, nodes)));
  const double scalars[] = {distance_,  screen_distance_, screen_scale_,       screen_radius_,
                            screen_l1_, screen_l2_,       double(is_screened_)};
  sections.push_back(section_of<double>("scores", scalars));
}

void Scores::load(const std::vector<StateSection>& sections) {
  copy_section<double>(sections, "gradients", gradient_);
  copy_section<double>(sections, "keys", key_);
  copy_section<double>(sections, "block-keys", block_key_);
  copy_section<std::uint64_t>(sections, "computed", computed_);
  double scalars[7];
  copy_section<double>(sections, "scores", scalars);
  distance_ = scalars[0];
  screen_distance_ = scalars[1];
  screen_scale_ = scalars[2];
  screen_radius_ = scalars[3];
  screen_l1_ = scalars[4];
  screen_l2_ = scalars[5];
  is_screened_ = scalars[6] != 0 ? 1 : 0;
}

}  // namespace orrery::lasso
