// Newton's method for a penalised mean over rows,
//
//   F(w) = 1/n sum over rows of loss(row, w)  +  l1 |w|_1  +  l2/2 |w|²,
//
// as a program of the engine. What is fitted (logistic, softmax) is a RowLoss; this file is how.
//
// An iteration is one Newton step: the system H s = -gradient is solved by conjugate gradients to a modest tolerance
// (Dembo, Eisenstat and Steihaug, SIAM J. Numer. Anal. 1982), preconditioned by the Hessian of a sample of the rows or
// by the diagonal that it had at the start, scaled; then the point w + s is tried. Each product with H and each trial
// is one pass over the data, and one pass is one clock of the data-parallel schedule: a worker goes over its own rows
// with the coefficients as they stood when the clock began, and commit() adds the workers' sums along the fixed tree
// and decides what the next pass is. Units share only what none of them writes, so they may run together in any order;
// clocks need --consistency bsp, for each pass rests on the whole one before. Of several nodes each adds up the
// complete subtrees that its workers are and tells the others; then all of them do the same steps with the same sums.
//
// A trial that descends is kept (its pass has given the gradient of the next step, too). Else one pass evaluates the
// loss at many points of the line at once, from the margins of its two ends alone, and another goes to the best.
//
// With l1 > 0 a step is the minimiser of the quadratic model and the penalty together, on up to 512 coefficients: those
// that are not 0 or whose gradient is beyond the penalty, of too many the worst (proximal Newton; Yuan, Ho and Lin,
// JMLR 2012). A pass makes their block of the Hessian, coordinate descent works on that alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "algorithms/newton_step.h"
#include "algorithms/newton_sums.h"
#include "engine/block_store.h"
#include "engine/clock.h"
#include "engine/combining_tree.h"
#include "engine/training.h"
#include "engine/wire.h"

namespace orrery::newton {

struct Penalty {
  double l1 = 0;  ///< weight of sum |w|
  double l2 = 0;  ///< weight of sum w² / 2
};

/// Penalised parameters of a dense matrix, at most: with more it costs more than the products that it saves.
inline constexpr std::size_t kMostDense = 512;

inline constexpr std::uint32_t kNoPlace = ~std::uint32_t{0};

/// A sum of convex losses over rows that are dealt to workers. Passes of different workers may overlap; a pass writes
/// only what belongs to its worker and is a function of its arguments, bit for bit.
class RowLoss {
 public:
  virtual ~RowLoss() = default;
  virtual std::uint64_t rows() const = 0;
  /// Mean number of parameters that a row's loss depends on, rounded up: what a row costs.
  virtual std::uint64_t row_length() const = 0;
  virtual WorkerId workers() const = 0;
  virtual std::size_t parameters() const = 0;
  /// Parameters of a column: scores that a row has.
  virtual std::size_t scores() const = 0;
  /// The first so many parameters carry the penalty; those behind them are intercepts.
  virtual std::size_t penalised() const = 0;
  /// Losses and slopes at `weights`, added to `slopes`; keeps what the passes below need of this point, the trial.
  virtual RowSums differentiate(WorkerId worker, std::span<const float> weights, std::span<Slope> slopes) = 0;
  /// The same with first derivatives only, for many parameters: for each column, and once more for the intercepts,
  /// `pairs` holds the weights of its scores and then a sum for each, to which its derivative is added. Side by side an
  /// entry of a row brings in one line of the cache instead of two.
  virtual RowSums find_gradient(WorkerId worker, std::span<float> pairs) = 0;
  /// Adds second derivatives at the trial, of every `every`-th row, to the lower triangle of a matrix of `size` rows.
  /// place[j]: the row and column of parameter j in it, ascending with j, or kNoPlace.
  virtual void add_curvature(WorkerId worker, std::span<const std::uint32_t> place, std::uint64_t every,
                             std::size_t size, std::span<double> lower) const = 0;
  /// Adds H·direction at the trial to `product`.
  virtual void multiply(WorkerId worker, std::span<const float> direction, std::span<double> product) const = 0;
  /// The same in pairs of direction and product.
  virtual void multiply_pairs(WorkerId worker, std::span<float> pairs) const = 0;
  /// losses[k] = the loss at kept + steps[k] (trial − kept).
  virtual void search(WorkerId worker, std::span<const double> steps, std::span<double> losses) const = 0;
  /// The trial becomes the kept point. Between clocks.
  virtual void keep_trial() = 0;
};

class NewtonTrainee final : public Trainee {
 public:
  /// Adds what is to be said of `weights` beside the objective; `exact`: at the end of the training.
  using Report = std::function<void(Engine& engine, std::span<const float> weights, bool exact, Evaluation& out)>;
  /// Borrows the loss. `start`: parameters() values. `no_minimum`: the warning for data that no penalty bounds.
  NewtonTrainee(Engine& engine, RowLoss& loss, Penalty penalty, std::vector<float> start, Report report,
                std::string no_minimum);

  /// Passes of an iteration: as many as a step may need; those that it does not need are empty.
  Clock clocks_per_iteration() const { return kOtherPasses + most_products_; }
  std::span<const float> weights() const { return weights_; }

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  Bytes pack_partial(Clock clock) override;
  void commit(Clock clock, std::span<const Bytes> partials) override;
  Evaluation evaluate(Engine& engine, bool exact) override;
  std::vector<StateSection> save_state() const override;
  void load_state(const std::vector<StateSection>& sections) override;
  void keep_best() override;
  void restore_best() override;

 private:
  /// What the units of the next clock do.
  enum class Pass : std::uint8_t { first, curvature, product, trial, line, line_trial, none };
  static constexpr Clock kOtherPasses = 5;

  /// What a worker's units add up in a clock beside derivatives by the parameters.
  struct Sums {
    RowSums rows;
    std::vector<double> curvature, losses;
  };

  /// What the pass under way has come to for a worker or a subtree of them; which parts of it there are, the pass says.
  struct Share {
    RowSums rows;
    std::span<double> doubles;  ///< slopes, a product, a block of the Hessian or losses
    std::span<float> pairs;     ///< or these, of which only the sums count
  };
  /// The same from another node, with memory of its own.
  struct FarShare {
    std::vector<double> doubles;
    std::vector<float> pairs;
    Share share;
  };

  struct Best {
    std::vector<float> weights;
    double objective = 0, gradient_norm = 0;
  };

  void plan_sample();
  template <class T>
  std::span<T> derivatives(std::span<std::byte> memory) const;
  template <class T>
  std::span<T> cleared(const UnitContext& context);
  std::span<float> pairs_with(const UnitContext& context, std::span<const float> point);
  std::size_t place_of_sum(std::size_t j) const;
  bool takes_pairs() const { return sample_every_ == 0; }
  bool needs_curvature() const { return !takes_pairs() || diagonal_.empty(); }
  Share share_of(WorkerId worker);
  static void add(Share& sum, const Share& other);
  void combine_here();
  void pack(const Share& share, Bytes& out) const;
  void unpack(WireReader& in, FarShare& far) const;
  void take_sums(const Share& sums);
  void take_slopes(std::span<const double> slopes);
  void take_gradient(std::span<const float> pairs);
  void take_rows(const Share& sums);
  double objective_at_start();
  void accept();
  void start_step();
  void set_diagonal();
  void choose_block();
  void take_curvature(std::span<const double> sampled);
  void start_products();
  double forcing() const;
  void take_product(const Share& sums);
  void propose_block_step(std::span<const double> lower);
  void propose(std::span<const double> target);
  void judge_trial();
  void take_line(std::span<const double> losses);
  double penalty_of(std::span<const float> weights) const;
  double smooth_gradient(std::size_t j) const;
  double pseudo_gradient(std::size_t j) const;
  double l2_of(std::size_t j) const { return j < loss_.penalised() ? penalty_.l2 : 0.0; }

  RowLoss& loss_;
  const Penalty penalty_;
  const Report report_;
  const std::string no_minimum_;
  const double per_row_;            ///< 1 / rows
  std::uint64_t sample_every_ = 0;  ///< rows of the sampled Hessian; 0: only its diagonal is used
  Clock most_products_ = 0;

  Pass pass_ = Pass::first;
  std::uint8_t is_settled_ = 0;  ///< no descent is left that single precision could see: later iterations are empty
  std::uint8_t is_separable_ = 0;
  double objective_ = 0, first_gradient_ = 0, gradient_norm_ = 0, gradient_before_ = 0;
  std::vector<float> weights_, trial_, direction_;
  double trial_objective_ = 0, promised_ = 0;  ///< promised_: change of the objective that the slope promises
  Best best_;

  std::vector<CombiningTree> trees_;  ///< by node: what it holds of the tree
  NodeId here_ = 0;
  std::map<Subtree, Share> here_sums_;  ///< of the pass that ends: this node's largest subtrees
  std::vector<Sums> sums_;              ///< by worker
  RowSums rows_;                        ///< of all, at the trial
  /// By worker: slopes, or a product, or pairs, by parameter. In large pages: small ones would have to be cleared one
  /// by one, which in a guest takes as long as a pass.
  BlockStore derivatives_;
  std::vector<Slope> slopes_;                 ///< of the mean loss at the trial
  std::vector<double> diagonal_;              ///< the second ones as the training began, if that is all that is used
  double diagonal_size_ = 0;                  ///< the rows' own second derivatives, summed, at that point
  std::vector<double> gradient_;              ///< least subgradient at the kept point
  std::vector<std::uint32_t> place_, block_;  ///< of the matrix: place of a parameter, parameter at a place
  Preconditioner preconditioner_;
  ConjugateGradients solver_;
  Clock products_ = 0;
};

}  // namespace orrery::newton
