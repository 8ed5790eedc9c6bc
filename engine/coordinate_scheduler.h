// Which coordinates a round of scheduled model parallelism moves (design section 4; SAP: Lee et al., NIPS 2014).
//
//   schedule   a PrioritySource names candidates, the most promising first; those that depend on one already taken, of
//              this round or of one in flight, are put off and come first in the next round, so that nobody starves
//              beside a duplicate; the rest is packed into bins of about the same cost
//   push       one unit for each bin computes what its coordinates would do, from the state that the last pull left
//   pull       Program::commit applies that in unit order, and pulled() lets the round's coordinates go
//
// What is promised: no two coordinates that are under way at the same time depend on each other by `most_dependence` or
// more; a coordinate is under way once at most; and a round is a function of (seed, clock, what was told before), so
// every node picks the same.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/message.h"
#include "engine/random.h"
#include "engine/types.h"
#include "engine/wire.h"

namespace orrery {

/// Knows the coordinates that are under way, and tells who may join them. Called by one thread at a time.
class DependenceFilter {
 public:
  virtual ~DependenceFilter() = default;
  /// These will be asked for next: their memory may be fetched ahead.
  virtual void expect(std::span<const std::uint32_t> /*candidates*/) {}
  /// Whether the candidate depends on none of those under way by the bound or more.
  virtual bool is_free(std::uint32_t candidate) = 0;
  /// A coordinate that was found free is under way now.
  virtual void take(std::uint32_t coordinate) = 0;
  /// Only these are under way any more.
  virtual void keep(std::span<const std::uint32_t> under_way) = 0;
};

/// What the scheduler asks of an algorithm. Functions of the coordinates alone, called by one thread at a time.
class CoordinateModel {
 public:
  virtual ~CoordinateModel() = default;
  virtual std::uint32_t coordinates() const = 0;
  /// How much a step of one changes the best step of the other, in [0, 1]; symmetric.
  virtual double dependence(std::uint32_t a, std::uint32_t b) const = 0;
  /// What moving it costs, > 0, in any unit.
  virtual std::uint64_t cost(std::uint32_t coordinate) const = 0;
  /// A filter by dependence(), with nothing under way; it borrows the model. This one asks for every pair. Override it
  /// where one look tells which others a candidate has anything to do with.
  virtual std::unique_ptr<DependenceFilter> filter(double most_dependence) const;
};

/// Where candidates come from.
class PrioritySource {
 public:
  virtual ~PrioritySource() = default;
  /// Appends up to `count` different coordinates, the most promising first.
  virtual void draw(Clock round, std::size_t count, std::vector<std::uint32_t>& out) = 0;
  /// A coordinate has moved by `change` (0: it stayed) in a round that was pulled.
  virtual void told(std::uint32_t /*coordinate*/, double /*change*/) {}
  /// Between rounds: all that later draws depend on, and back.
  virtual void save(Bytes& out) const = 0;
  virtual void load(WireReader& in) = 0;
};

/// Weights of which single ones change and one is drawn with a probability in proportion, both in O(log n). A node has
/// eight children, whose running sums are a line of the cache; they are recomputed from their parts on the way up, so
/// they do not drift.
class SumTree {
 public:
  /// Every weight is `weight` >= 0.
  SumTree(std::uint32_t count, double weight);
  void set(std::uint32_t index, double weight);
  std::uint32_t count() const { return static_cast<std::uint32_t>(weights_.size()); }
  double weight(std::uint32_t index) const { return weights_[index]; }
  double total() const { return levels_.back()[0].back(); }
  /// The index at which the running sum of weights passes `point`, in [0, total()).
  std::uint32_t find(double point) const;

 private:
  static constexpr std::size_t kChildren = 8;
  using Node = std::array<double, kChildren>;  ///< sums of the children up to each

  void fill(std::size_t level, std::size_t node);

  std::vector<double> weights_;
  std::vector<std::vector<Node>> levels_;  ///< from the weights up to the root
};

/// p ∝ (last change)² + epsilon; every coordinate counts as much moved until it was tried.
class SampledSource final : public PrioritySource {
 public:
  SampledSource(std::uint32_t coordinates, double epsilon, std::uint64_t seed);
  void draw(Clock round, std::size_t count, std::vector<std::uint32_t>& out) override;
  void told(std::uint32_t coordinate, double change) override;
  void save(Bytes& out) const override;
  void load(WireReader& in) override;
  const SumTree& weights() const { return tree_; }

 private:
  struct Drawn {
    double weight;
    std::uint32_t coordinate;
  };

  SumTree tree_;
  double epsilon_;
  Random random_;
  std::vector<Drawn> drawn_;
};

/// All coordinates in turn: ascending, or in an order drawn anew for every pass. A contrast.
class CyclicSource final : public PrioritySource {
 public:
  CyclicSource(std::uint32_t coordinates, bool is_shuffled, std::uint64_t seed);
  void draw(Clock round, std::size_t count, std::vector<std::uint32_t>& out) override;
  void save(Bytes& out) const override;
  void load(WireReader& in) override;

 private:
  void start_pass();
  void set_order();

  std::uint32_t coordinates_;
  bool is_shuffled_;
  Random random_;
  Clock passes_ = 0;  ///< begun
  std::size_t next_ = 0;
  std::vector<std::uint32_t> order_;
};

/// Those that moved when they were last tried, in ascending order again and again; and all others ever more rarely: one
/// that stays is tried again after 2, 4, 8, … passes. The cheap form of priority: no draw, O(1) for each coordinate and
/// pass.
class DynamicSource final : public PrioritySource {
 public:
  explicit DynamicSource(std::uint32_t coordinates);
  void draw(Clock round, std::size_t count, std::vector<std::uint32_t>& out) override;
  void told(std::uint32_t coordinate, double change) override;
  void save(Bytes& out) const override;
  void load(WireReader& in) override;

 private:
  static constexpr std::uint8_t kLongest = 5;  ///< a rest of 2^5 passes

  std::vector<std::uint64_t> due_;  ///< the pass in which a coordinate is tried next
  std::vector<std::uint8_t> rests_;
  std::uint64_t pass_ = 0;
  std::size_t next_ = 0;
};

struct CoordinateSchedulerOptions {
  std::size_t width = 1;         ///< coordinates of a round, at most
  double most_dependence = 0.1;  ///< two that depend on each other this much are never under way together
};

class CoordinateScheduler {
 public:
  /// Borrows both.
  CoordinateScheduler(const CoordinateModel& model, PrioritySource& source, CoordinateSchedulerOptions options);

  /// Fills the bins with the round's coordinates; there may be none when all that were drawn depend on what is under
  /// way. Cost: the draws, and the model's filter for each candidate.
  void pick(Clock round, std::span<std::vector<std::uint32_t>> bins);
  /// The oldest round under way is committed. Tell the source of its changes before.
  void pulled();

  /// When no round is under way: what later ones depend on, and back.
  void save(Bytes& out) const;
  void load(WireReader& in);

  /// How often a candidate was put off because it depended on another one.
  std::uint64_t dropped() const { return dropped_; }

 private:
  enum class Place : std::uint8_t { nowhere, put_off, under_way };

  const CoordinateModel& model_;
  PrioritySource& source_;
  CoordinateSchedulerOptions options_;
  std::unique_ptr<DependenceFilter> filter_;
  std::deque<std::vector<std::uint32_t>> rounds_;  ///< under way, oldest first
  std::vector<Place> place_;                       ///< by coordinate
  std::vector<std::uint32_t> put_off_, candidates_;
  std::vector<std::uint64_t> costs_;
  std::uint64_t dropped_ = 0;
};

/// Deals items to bins, the costliest first, each to the bin that has the least so far (of equal ones the first). The
/// fullest bin is at most 4/3 − 1/(3 bins) of the best possible (Graham, SIAM J. Appl. Math. 1969).
void pack_longest_first(std::span<const std::uint32_t> items, std::span<const std::uint64_t> costs,
                        std::span<std::vector<std::uint32_t>> bins);

}  // namespace orrery
