#include "engine/coordinate_scheduler.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "engine/assert.h"

namespace orrery {

namespace {

/// Asks for the dependence of every pair.
class PairFilter final : public DependenceFilter {
 public:
  PairFilter(const CoordinateModel& model, double most) : model_(model), most_(most) {}
  bool is_free(std::uint32_t candidate) override {
    return std::none_of(under_way_.begin(), under_way_.end(),
                        [&](std::uint32_t other) { return model_.dependence(candidate, other) >= most_; });
  }
  void take(std::uint32_t coordinate) override { under_way_.push_back(coordinate); }
  void keep(std::span<const std::uint32_t> under_way) override {
    under_way_.assign(under_way.begin(), under_way.end());
  }

 private:
  const CoordinateModel& model_;
  const double most_;
  std::vector<std::uint32_t> under_way_;
};

}  // namespace

std::unique_ptr<DependenceFilter> CoordinateModel::filter(double most_dependence) const {
  return std::make_unique<PairFilter>(*this, most_dependence);
}

SumTree::SumTree(std::uint32_t count, double weight) : weights_(count, weight) {
  ORRERY_CHECK(count >= 1 && weight >= 0);
  std::size_t nodes = count;
  do {
    nodes = (nodes + kChildren - 1) / kChildren;
    levels_.emplace_back(nodes);
    for (std::size_t node = 0; node < nodes; ++node) fill(levels_.size() - 1, node);
  } while (nodes > 1);
}

/// Adds up the children of a node.
void SumTree::fill(std::size_t level, std::size_t node) {
  const std::size_t children = level == 0 ? weights_.size() : levels_[level - 1].size();
  const std::size_t first = node * kChildren, last = std::min(children, first + kChildren);
  Node& sums = levels_[level][node];
  double sum = 0;
  std::size_t k = 0;
  for (std::size_t child = first; child < last; ++child) {
    sum += level == 0 ? weights_[child] : levels_[level - 1][child].back();
    sums[k++] = sum;
  }
  for (; k < kChildren; ++k) sums[k] = sum;
}

void SumTree::set(std::uint32_t index, double weight) {
  ORRERY_HEAVY_CHECK(index < count() && weight >= 0);
  weights_[index] = weight;
  std::size_t node = index;
  for (std::size_t level = 0; level < levels_.size(); ++level) fill(level, node /= kChildren);
}

std::uint32_t SumTree::find(double point) const {
  std::size_t at = 0;
  for (std::size_t level = levels_.size(); level-- > 0;) {
    const Node& sums = levels_[level][at];
    std::size_t child = 0;
    for (std::size_t k = 0; k + 1 < kChildren; ++k) child += point >= sums[k] ? 1 : 0;
    // Rounding may leave the point at the end, behind which there are only weights of 0.
    while (child > 0 && sums[child] == sums[child - 1]) --child;
    if (child > 0) point -= sums[child - 1];
    at = at * kChildren + child;
  }
  return static_cast<std::uint32_t>(at);
}

SampledSource::SampledSource(std::uint32_t coordinates, double epsilon, std::uint64_t seed)
    : tree_(coordinates, 1.0), epsilon_(epsilon), random_(seed, Purpose::coordinate_choice) {
  ORRERY_CHECK(epsilon > 0);
}

// A coordinate that is drawn twice counts once, so there may be fewer than `count`.
void SampledSource::draw(Clock round, std::size_t count, std::vector<std::uint32_t>& out) {
  RandomStream stream = random_.stream(round, 0);
  drawn_.clear();
  for (std::size_t k = 0; k < count; ++k) {
    const std::uint32_t coordinate = tree_.find(stream.uniform() * tree_.total());
    drawn_.push_back({tree_.weight(coordinate), coordinate});
  }
  std::sort(drawn_.begin(), drawn_.end(), [](const Drawn& a, const Drawn& b) {
    return a.weight > b.weight || (a.weight == b.weight && a.coordinate < b.coordinate);
  });
  const auto last = std::unique(drawn_.begin(), drawn_.end(),
                                [](const Drawn& a, const Drawn& b) { return a.coordinate == b.coordinate; });
  std::for_each(drawn_.begin(), last, [&](const Drawn& drawn) { out.push_back(drawn.coordinate); });
}

void SampledSource::told(std::uint32_t coordinate, double change) { tree_.set(coordinate, change * change + epsilon_); }

void SampledSource::save(Bytes& out) const {
  for (std::uint32_t k = 0; k < tree_.count(); ++k) put(out, tree_.weight(k));
}

void SampledSource::load(WireReader& in) {
  for (std::uint32_t k = 0; k < tree_.count(); ++k) tree_.set(k, in.take<double>());
}

CyclicSource::CyclicSource(std::uint32_t coordinates, bool is_shuffled, std::uint64_t seed)
    : coordinates_(coordinates), is_shuffled_(is_shuffled), random_(seed, Purpose::coordinate_choice) {
  start_pass();
}

void CyclicSource::start_pass() {
  next_ = 0;
  ++passes_;
  set_order();
}

void CyclicSource::set_order() {
  if (is_shuffled_) {
    order_ = random_.permutation(coordinates_, passes_, 0);
  } else {
    order_.resize(coordinates_);
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
  }
}

void CyclicSource::save(Bytes& out) const {
  put(out, passes_);
  put(out, std::uint64_t{next_});
}

void CyclicSource::load(WireReader& in) {
  passes_ = in.take<Clock>();
  next_ = in.take<std::uint64_t>();
  set_order();
}

void CyclicSource::draw(Clock, std::size_t count, std::vector<std::uint32_t>& out) {
  const std::size_t wanted = std::min<std::size_t>(count, coordinates_);
  if (next_ == order_.size()) start_pass();
  const std::size_t last = std::min(order_.size(), next_ + wanted);
  out.insert(out.end(), order_.begin() + static_cast<std::ptrdiff_t>(next_),
             order_.begin() + static_cast<std::ptrdiff_t>(last));
  next_ = last;
}

DynamicSource::DynamicSource(std::uint32_t coordinates) : due_(coordinates, 0), rests_(coordinates, 0) {}

void DynamicSource::draw(Clock, std::size_t count, std::vector<std::uint32_t>& out) {
  const std::size_t first = out.size();
  // At most all rests: after the longest one something is due.
  for (std::uint64_t turn = 0; turn <= (std::uint64_t{1} << kLongest); ++turn) {
    for (; next_ < due_.size(); ++next_) {
      if (due_[next_] > pass_) continue;
      if (out.size() - first == count) return;
      out.push_back(static_cast<std::uint32_t>(next_));
    }
    if (out.size() > first) return;  // a round does not go over the end of a pass
    next_ = 0;
    ++pass_;
  }
}

void DynamicSource::told(std::uint32_t coordinate, double change) {
  rests_[coordinate] = change != 0
                           ? std::uint8_t{0}
                           : std::min<std::uint8_t>(kLongest, static_cast<std::uint8_t>(rests_[coordinate] + 1));
  due_[coordinate] = pass_ + (std::uint64_t{1} << rests_[coordinate]);
}

void DynamicSource::save(Bytes& out) const {
  put_all<std::uint64_t>(out, due_);
  put_all<std::uint8_t>(out, rests_);
  put(out, pass_);
  put(out, std::uint64_t{next_});
}

void DynamicSource::load(WireReader& in) {
  in.take_all<std::uint64_t>(due_);
  in.take_all<std::uint8_t>(rests_);
  pass_ = in.take<std::uint64_t>();
  next_ = in.take<std::uint64_t>();
}

CoordinateScheduler::CoordinateScheduler(const CoordinateModel& model, PrioritySource& source,
                                         CoordinateSchedulerOptions options)
    : model_(model),
      source_(source),
      options_(options),
      filter_(model.filter(options.most_dependence)),
      place_(model.coordinates(), Place::nowhere) {
  ORRERY_CHECK(options.width >= 1 && options.most_dependence > 0);
}

void CoordinateScheduler::pick(Clock round, std::span<std::vector<std::uint32_t>> bins) {
  candidates_.swap(put_off_);
  put_off_.clear();
  for (const std::uint32_t candidate : candidates_) place_[candidate] = Place::nowhere;
  if (candidates_.size() < options_.width) source_.draw(round, options_.width - candidates_.size(), candidates_);
  filter_->expect(candidates_);
  std::vector<std::uint32_t> taken;
  costs_.clear();
  for (const std::uint32_t candidate : candidates_) {
    if (place_[candidate] != Place::nowhere) continue;
    if (!filter_->is_free(candidate)) {
      ++dropped_;
      place_[candidate] = Place::put_off;
      put_off_.push_back(candidate);
      continue;
    }
    place_[candidate] = Place::under_way;
    filter_->take(candidate);
    taken.push_back(candidate);
    costs_.push_back(model_.cost(candidate));
  }
  candidates_.clear();
  pack_longest_first(taken, costs_, bins);
  rounds_.push_back(std::move(taken));
}

void CoordinateScheduler::pulled() {
  ORRERY_CHECK(!rounds_.empty());
  for (const std::uint32_t coordinate : rounds_.front()) place_[coordinate] = Place::nowhere;
  rounds_.pop_front();
  std::vector<std::uint32_t> under_way;
  for (const auto& round : rounds_) under_way.insert(under_way.end(), round.begin(), round.end());
  filter_->keep(under_way);
}

void CoordinateScheduler::save(Bytes& out) const {
  ORRERY_CHECK(rounds_.empty());
  put(out, std::uint64_t{put_off_.size()});
  put_all<std::uint32_t>(out, put_off_);
}

void CoordinateScheduler::load(WireReader& in) {
  put_off_.resize(in.take<std::uint64_t>());
  in.take_all<std::uint32_t>(put_off_);
  for (const std::uint32_t coordinate : put_off_) place_[coordinate] = Place::put_off;
}

void pack_longest_first(std::span<const std::uint32_t> items, std::span<const std::uint64_t> costs,
                        std::span<std::vector<std::uint32_t>> bins) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  using Load = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> lightest;
  for (std::size_t b = 0; b < bins.size(); ++b) lightest.emplace(0, b);
  for (const std::size_t k : order) {
    const auto [load, bin] = lightest.top();
    lightest.pop();
    bins[bin].push_back(items[k]);
    lightest.emplace(load + costs[k], bin);
  }
}

}  // namespace orrery
