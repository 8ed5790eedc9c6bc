#include "engine/coordinate_scheduler.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "engine/assert.h"

namespace orrery {

SumTree::SumTree(std::uint32_t count, double weight) : count_(count) {
  ORRERY_CHECK(count >= 1 && weight >= 0);
  while (leaves_ < count) leaves_ *= 2;
  sums_.assign(2 * leaves_, 0.0);
  std::fill_n(sums_.begin() + static_cast<std::ptrdiff_t>(leaves_), count, weight);
  for (std::size_t k = leaves_ - 1; k >= 1; --k) sums_[k] = sums_[2 * k] + sums_[2 * k + 1];
}

void SumTree::set(std::uint32_t index, double weight) {
  ORRERY_HEAVY_CHECK(index < count_ && weight >= 0);
  std::size_t k = leaves_ + index;
  sums_[k] = weight;
  while (k > 1) {
    k /= 2;
    sums_[k] = sums_[2 * k] + sums_[2 * k + 1];
  }
}

std::uint32_t SumTree::find(double point) const {
  std::size_t k = 1;
  while (k < leaves_) {
    k *= 2;
    // Rounding may leave the point at the end of a subtree of weight 0, where there is nothing to find.
    if (point >= sums_[k] && sums_[k + 1] > 0) {
      point -= sums_[k];
      ++k;
    }
  }
  return static_cast<std::uint32_t>(k - leaves_);
}

SampledSource::SampledSource(std::uint32_t coordinates, double epsilon, std::uint64_t seed)
    : tree_(coordinates, 1.0), epsilon_(epsilon), random_(seed, Purpose::coordinate_choice) {
  ORRERY_CHECK(epsilon > 0);
}

// A coordinate that is drawn twice counts once, so there may be fewer than `count`.
void SampledSource::draw(Clock round, std::size_t count, std::vector<std::uint32_t>& out) {
  RandomStream stream = random_.stream(round, 0);
  const std::size_t first = out.size();
  for (std::size_t k = 0; k < count; ++k) out.push_back(tree_.find(stream.uniform() * tree_.total()));
  const auto begin = out.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(begin, out.end());
  out.erase(std::unique(begin, out.end()), out.end());
  std::stable_sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return tree_.weight(a) > tree_.weight(b); });
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
    : model_(model), source_(source), options_(options), place_(model.coordinates(), Place::nowhere) {
  ORRERY_CHECK(options.width >= 1 && options.most_dependence > 0);
}

bool CoordinateScheduler::is_free(std::uint32_t candidate, std::span<const std::uint32_t> taken) const {
  const auto depends = [&](std::uint32_t other) {
    return model_.dependence(candidate, other) >= options_.most_dependence;
  };
  if (std::any_of(taken.begin(), taken.end(), depends)) return false;
  return std::none_of(rounds_.begin(), rounds_.end(),
                      [&](const auto& round) { return std::any_of(round.begin(), round.end(), depends); });
}

void CoordinateScheduler::pick(Clock round, std::span<std::vector<std::uint32_t>> bins) {
  std::vector<std::uint32_t> candidates = std::exchange(put_off_, {}), taken;
  for (const std::uint32_t candidate : candidates) place_[candidate] = Place::nowhere;
  if (candidates.size() < options_.width) source_.draw(round, options_.width - candidates.size(), candidates);
  std::vector<std::uint64_t> costs;
  for (const std::uint32_t candidate : candidates) {
    if (place_[candidate] != Place::nowhere) continue;
    if (!is_free(candidate, taken)) {
      ++dropped_;
      place_[candidate] = Place::put_off;
      put_off_.push_back(candidate);
      continue;
    }
    place_[candidate] = Place::under_way;
    taken.push_back(candidate);
    costs.push_back(model_.cost(candidate));
  }
  pack_longest_first(taken, costs, bins);
  rounds_.push_back(std::move(taken));
}

void CoordinateScheduler::pulled() {
  ORRERY_CHECK(!rounds_.empty());
  for (const std::uint32_t coordinate : rounds_.front()) place_[coordinate] = Place::nowhere;
  rounds_.pop_front();
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
