// The Lasso and the elastic net as a program of the engine: where it is (which penalty, which working set) and what the
// next round does.
//
// A round is one clock. In a round of scores every worker brings the gradients of its own columns up to date, as far as
// they may matter (lasso_scores.h); the pull that follows adds up the duality gap. If that is small enough, the penalty
// is done and the next one begins; else a working set is chosen, the active columns and those that violate the most
// (Johnson and Guestrin, ICML 2015; Massias, Gramfort and Salmon, ICML 2018), and the problem is solved on it, with
// kept products (lasso_gram.h) where columns are long against the working set, else on the residual (lasso_descent.h).
// Missing products make a round of their own, in which workers share them out. Descent on the residual has parts that
// all threads share within the pull (Program::settle), and whose bits depend on nobody's number.
//
// The next penalty's working set is what the sequential strong rule leaves (Tibshirani et al., JRSS-B 2012); the scores
// of the round after it check every column that the rule discarded.
//
// With another --scheduler than dynamic there is no working set: between two rounds of scores every coordinate is tried
// once in rounds of moves (lasso_rounds.h).
//
// Of several nodes each keeps the columns of its workers and all of the residual, which is as long as there are rows.
// Workers' gradients and products go to all nodes; each then does the same pull, with columns of others lent
// (lasso_columns.h). Those that miss travel in a clock of their own, so an iteration has two.
//
// Units write only what belongs to their worker and read what the pull before left, so any number of threads gives the
// same bits; rounds need --consistency bsp, for each rests on the whole one before it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/lasso_certificate.h"
#include "algorithms/lasso_columns.h"
#include "algorithms/lasso_descent.h"
#include "algorithms/lasso_design.h"
#include "algorithms/lasso_gram.h"
#include "algorithms/lasso_logistic.h"
#include "algorithms/lasso_path.h"
#include "algorithms/lasso_rounds.h"
#include "algorithms/lasso_scores.h"
#include "engine/clock.h"
#include "engine/collective.h"
#include "engine/training.h"

namespace orrery::lasso {

class LassoTrainee final : public Trainee {
 public:
  /// Adds held-out metrics of a point to an evaluation.
  using Report = std::function<void(const PathPoint& point, Evaluation& out)>;
  /// Which of the points is the model.
  using Choose = std::function<std::size_t(std::span<const PathPoint> points)>;
  /// Borrows design, response (whose signs, if it has any, make the family binomial) and rounds (none: working sets).
  /// `start`: standardised coefficients by column, or nothing. A design of several nodes is for none but working sets.
  LassoTrainee(Design& design, const Response& response, PathRequest request, WorkerId workers,
               std::vector<double> start, Rounds* rounds, Report report, Choose choose);

  /// The schedule of a round: coordinates are chosen where it moves them; else units take what is their worker's.
  void pick(Clock clock, std::span<std::vector<std::uint32_t>> bins);

  /// A whole round by itself, for a training that is one unit of another: no coordinates are chosen.
  void run_alone();
  /// Nothing is left to do.
  bool is_done() const { return state_.round == Round::none; }

  /// Solutions; after the exact evaluation with the state that was left, if it is none of them.
  const std::vector<PathPoint>& points() const { return points_; }
  std::vector<double> lambdas() const;
  /// The model's, and its proof; of the exact evaluation.
  std::size_t chosen() const { return chosen_; }
  const Certificate& certificate() const { return certificate_; }

  /// Rounds and, of several nodes, the clocks in which columns travel.
  Clock clocks_per_iteration() const { return is_cluster() ? 2 : 1; }

  void take_stop_rules(const StopRules& rules) override { tolerance_ = rules.tolerance.value_or(0.0); }
  void join(const Collective& nodes) override;
  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  Bytes pack_partial(Clock clock) override;
  std::size_t settle_parts(Clock clock) override;
  void settle(Clock, std::size_t part) override { descent_->run(part); }
  void commit(Clock clock, std::span<const Bytes> partials) override;
  Evaluation evaluate(Engine& engine, bool exact) override;
  std::vector<StateSection> save_state() const override;
  void load_state(const std::vector<StateSection>& sections) override;
  void keep_best() override;
  void restore_best() override;

 private:
  enum class Round : std::uint8_t { scores, products, moves, none };

  /// What a checkpoint keeps beside arrays.
  struct State {
    std::uint64_t stage = 0;
    double largest = 0;             ///< lambda; known after the first round
    double due = 0;                 ///< of the next scores
    double objective = 0, gap = 0;  ///< at the last scores
    double least_gap = 0;           ///< of this stage
    double enough = 0;              ///< for the working set, while products are made
    std::uint64_t tried = 0;        ///< coordinates, in rounds of moves since the last scores
    std::uint32_t rounds_without_gain = 0, solves = 0;
    Round round = Round::scores;
    std::uint8_t is_started = 0, is_settled = 0, ended_early = 0, avoids_products = 0, is_long_way = 0;
  };

  struct Best {
    std::vector<double> coefficients;
    std::vector<PathPoint> points;
    State state;
  };

  bool is_cluster() const { return map_.nodes() > 1; }
  bool is_for_columns(Clock clock) const { return is_cluster() && clock % 2 == 1; }
  std::vector<std::uint32_t> viewed() const;
  void take_partials(std::span<const Bytes> partials);
  void take_columns(std::span<const Bytes> partials);
  void start_residual();
  void make_products();
  void run_part(WorkerId worker, std::span<const std::uint32_t> items);
  double loss() const;
  void rebuild();
  Certificate certify_point(const PathPoint& point, const ParallelFor& parallel);
  Penalty penalty() const { return request_.penalty(stages_[state_.stage].lambda); }
  bool is_last_stage() const { return state_.stage + 1 == stages_.size(); }
  double goal() const;
  void take_scores();
  void start_path();
  std::vector<std::uint32_t> listed() const;
  GapSums sums_of(std::span<const std::uint32_t> listed, Penalty penalty) const;
  bool judge(std::span<const std::uint32_t> listed);
  void note_gap(double gap);
  bool next_stage();
  double due_of(std::uint64_t stage) const;
  void start_solving(std::vector<std::uint32_t> candidates, bool is_new_stage);
  void go_on_solving();
  void take_moves();
  void choose_working(std::vector<std::uint32_t> listed, bool is_new_stage);
  bool wants_products() const;
  void pull();
  std::size_t next_parts();
  void solve();
  void solve_products();
  void after_solve();
  PathPoint point_now() const;
  void load_best(const std::vector<StateSection>& sections);
  std::string settled_text(const PathPoint& at) const;
  PathPoint finish(Engine& engine);

  Design& design_;
  const Response& response_;
  const WorkerMap map_;
  Collective nodes_;
  const double empty_objective_;
  const PathRequest request_;
  Rounds* const rounds_;
  const Report report_;
  const Choose choose_;
  double tolerance_ = 0;

  std::unique_ptr<LogisticFit> logistic_;  ///< of classes; null: squared errors
  Scores scores_;
  Gram gram_;
  ColumnLoans loans_;
  std::unique_ptr<ResidualDescent> descent_;  ///< under way, within a pull
  bool is_pulling_ = false;
  bool awaits_columns_ = false;  ///< of the working set, in the clock that is for them
  bool is_resumed_ = false;
  std::vector<Stage> stages_;
  State state_;
  std::vector<double> coefficients_;
  Residual residual_;
  std::vector<double> residual_before_;  ///< as of the last scores
  std::vector<std::uint32_t> working_;   ///< columns, ascending; in rounds of moves those that have moved
  std::vector<PathPoint> points_;
  Certificate certificate_;
  std::size_t chosen_ = 0;
  std::optional<Best> best_;
};

}  // namespace orrery::lasso
