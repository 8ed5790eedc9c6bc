#include "algorithms/mf.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "algorithms/mf_als.h"
#include "algorithms/mf_data_parallel.h"
#include "algorithms/mf_holdout.h"
#include "algorithms/mf_hybrid.h"
#include "algorithms/mf_kernels.h"
#include "algorithms/mf_layout.h"
#include "algorithms/mf_model.h"
#include "algorithms/mf_sgd.h"
#include "algorithms/mf_state.h"
#include "engine/clock.h"
#include "engine/data/portable_math.h"
#include "engine/data/ratings.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/random.h"

namespace orrery {
namespace mf {
namespace {

AlgorithmInfo make_info() {
  AlgorithmInfo info;
  info.name = "mf";
  info.title = "matrix factorisation with mean, biases and factors, for ratings and recommendation";
  info.objective =
      "sum over ratings of (r - mean - b_u - b_i - w_u.h_i)^2 + sum over users and items of reg n^p |w|^2 + damping "
      "b^2, "
      "with n the ratings of the user or item and p = reg-power; ratings are first centred and scaled to about unit "
      "variance, so that reg and rate mean the same on any rating scale";
  info.method =
      "sgd: users stay with their worker, blocks of items rotate round the workers; units that run together share no "
      "user and no item, so the run equals a serial one. With schedule data, items are rows of a table that workers "
      "read "
      "and add to under any consistency, `clocks` times in an iteration. Steps shrink with the squared errors a row "
      "has "
      "seen. With --groups each group of workers rotates a replica of the items, and the groups add up what they have "
      "gained, `clocks` times in an iteration";
  info.reference =
      "Gemulla et al., KDD 2011 (stratified SGD); Yun et al., VLDB 2014 (blocks on a ring); Duchi et al., JMLR 2011 "
      "(adaptive steps); Ma et al., ICML 2015 (adding versus averaging, for schedules data and hybrid)";
  info.data = "ratings (user item rating), MatrixMarket";
  info.metric = "rmse";
  info.smaller_is_better = true;
  info.schedules = {"rotation", "data", "hybrid"};
  return info;
}

/// Everything a training holds once the data is laid out. Parts refer to each other: never moved.
struct Prepared {
  Prepared(CellGrid&& laid_out, const Topology& topology, const WorkerMap& map, std::size_t rank)
      : grid(std::move(laid_out)), state(topology, map, grid.rows(), grid.columns(), rank) {}
  CellGrid grid;
  MfState state;
  std::unique_ptr<Schedule> schedule;
  Holdout holdout;
  std::unique_ptr<MfTrainee> trainee;
};

class MatrixFactorisation final : public Algorithm {
 public:
  MatrixFactorisation() : info_(make_info()), param_set_("mf") {
    param_set_.add("rank", params_.rank, "number of factors of a user and an item", between(1, 4096))
        .add_choice("solver", params_.solver,
                    "sgd: stochastic gradient descent under rotation; als: alternating least squares, no step size",
                    {{"sgd", Solver::sgd}, {"als", Solver::als}})
        .add("reg", params_.reg,
             "weight of the L2 penalty, on ratings of unit variance; auto: 0.025 for sgd, 0.3 for als", at_least(0))
        .add("reg-power", params_.reg_power,
             "the penalty of a row grows with its number of ratings to this power: 1 is per rating, 0 is plain L2; "
             "auto: 1 "
             "for sgd, which keeps ranks above the data's own from fitting noise, 0.75 for als",
             between(0, 1))
        .add("bias-damping", params_.bias_damping,
             "penalty of a bias, in ratings: a bias learned from this many ratings is halved", at_least(0))
        .add("rate", params_.rate, "first step of stochastic gradient descent", above(0))
        .add("rate-decay", params_.rate_decay,
             "share of the step that is lost in an iteration; less on data with few ratings a user or item",
             between(0, 1))
        .add("gain", params_.gain, "how fast a row's step shrinks with the squared errors it has seen", at_least(0))
        .add("clocks", params_.clocks,
             "schedules data and hybrid of sgd: how often in an iteration workers, or groups, see what the others have "
             "added to the items; auto: 64 for data, 4 for hybrid",
             between(1, 65536))
        .add("clip", params_.clip, "cut predictions to the range of the training ratings")
        .add("keep-seen", params_.keep_seen, "keep who rated what with the model, so that recommend leaves it out");
  }

  const AlgorithmInfo& info() const override { return info_; }
  ParamSet& params() override { return param_set_; }
  StopRules default_stop() const override {
    StopRules stop;
    stop.iterations = 20;
    stop.patience = 3;
    return stop;
  }

  void check(const DataRequest& request) const override;
  bool runs_on_several_nodes(const std::string&) const override { return params_.solver == Solver::sgd; }
  void load(const DataRequest& request, Engine& engine) override;
  DataSummary data_summary() const override;
  WorkerId default_workers() const override { return static_cast<WorkerId>(rotation_shape(0).stripes); }
  MemoryEstimate memory(WorkerId workers) const override;
  Training prepare(Engine& engine, WorkerId workers, std::uint64_t seed, const std::string& schedule) override;
  void write_model(ModelWriter& writer, Engine& engine) const override;

 private:
  /// Whether the items are on a table. @throws Error (usage) for a schedule that the solver does not run by.
  bool takes_tables(const std::string& schedule) const;
  /// @throws Error (usage) for so many workers that the grid is out of proportion to the data.
  GridShape grid_shape(WorkerId workers) const;
  GridShape rotation_shape(WorkerId workers) const;
  /// Stripes of a worker, each a clock.
  std::uint64_t clocks() const;
  GridShape table_shape(WorkerId workers) const;
  GridShape hybrid_shape(WorkerId workers) const;
  std::size_t rank() const { return static_cast<std::size_t>(params_.rank); }
  void load_valid(const DataRequest& request, Engine& engine);
  CellGrid lay_out(const WorkerMap& map, Engine& engine);
  void read_share(const Axis& rows, const StripeRange& here, Engine& engine);
  void find_scaling();
  void check_als(Engine& engine) const;
  SgdRule sgd_rule() const;
  Training prepare_rotation(Engine& engine, std::uint64_t seed);
  Training prepare_tables(Engine& engine, const WorkerMap& map);
  Training prepare_hybrid(Engine& engine, const WorkerMap& map, std::uint64_t seed);
  Training prepare_als(Engine& engine);
  void initialise(MfState& state, const CellGrid& grid, std::uint64_t seed, Engine& engine) const;
  void warm_start(MfState& state, const CellGrid& grid, Engine& engine) const;

  AlgorithmInfo info_;
  MfParams params_;
  ParamSet param_set_;
  DataRequest request_;
  RatingsOutline outline_;  ///< of several nodes, which read the ratings when they know whose they keep
  RatingsData data_;
  std::optional<RatingsData> valid_;
  std::uint64_t valid_ratings_ = 0;
  std::optional<std::string> init_;
  IdMap users_, items_;
  std::uint64_t ratings_ = 0, nodes_ = 1;
  bool on_tables_ = false;  ///< sgd by schedule data
  Scaling scaling_;
  std::unique_ptr<Prepared> prepared_;
};

RatingsOptions read_options(const std::string& format, Engine& engine) {
  RatingsOptions options;
  options.read.parallel = engine.parallel_for_function();
  if (!format.empty()) options.format = parse_format(format);
  return options;
}

void warn_all(const RatingsData& data, Engine& engine) {
  for (const std::string& warning : data.warnings) engine.warn(warning);
}

void MatrixFactorisation::check(const DataRequest& request) const {
  if (!request.format.empty()) check_ratings_format(parse_format(request.format));
  if (!takes_tables(request.schedule) && request.groups == 1 && param_set_.was_set("clocks")) {
    throw usage_error("--clocks needs --schedule data or --groups with --solver sgd: elsewhere the schedule decides");
  }
  if (request.groups > 1 && params_.solver == Solver::als) {
    throw usage_error("--groups: solver als does not rotate; expected --solver sgd");
  }
  if (!request.init) return;
  const std::size_t rank_before = rank_of_model(ModelReader(*request.init));
  if (rank_before == rank()) return;
  throw usage_error("--init: the model has rank " + std::to_string(rank_before) + ", this run has rank " +
                    std::to_string(params_.rank));
}

void MatrixFactorisation::load(const DataRequest& request, Engine& engine) {
  check(request);
  nodes_ = engine.transport().nodes();
  request_ = request;
  if (nodes_ > 1) {
    outline_ = outline_ratings(request.path, read_options(request.format, engine));
    users_ = std::move(outline_.users);
    items_ = std::move(outline_.items);
    ratings_ = outline_.ratings;
  } else {
    data_ = read_ratings(request.path, read_options(request.format, engine));
    warn_all(data_, engine);
    users_ = std::move(data_.users);
    items_ = std::move(data_.items);
    ratings_ = data_.ratings.size();
  }
  init_ = request.init;
  on_tables_ = takes_tables(request.schedule);
  if (request.valid) load_valid(request, engine);
  if (rank() > std::min(users_.size(), items_.size())) {
    engine.warn("rank " + std::to_string(params_.rank) + " is above what " + std::to_string(users_.size()) +
                " users and " + std::to_string(items_.size()) + " items can determine; the penalty decides the rest");
  }
}

void MatrixFactorisation::load_valid(const DataRequest& request, Engine& engine) {
  RatingsOptions options = read_options(request.format, engine);
  options.known_users = &users_;
  options.known_items = &items_;
  valid_ = read_ratings(*request.valid, options);
  valid_ratings_ = valid_->ratings.size();
  warn_all(*valid_, engine);
  if (valid_->unseen_users + valid_->unseen_items > 0) {
    engine.warn(*request.valid + ": " + std::to_string(valid_->unseen_users) + " ratings of users and " +
                std::to_string(valid_->unseen_items) +
                " of items without a training rating are predicted from the mean and the other side's bias");
  }
}

DataSummary MatrixFactorisation::data_summary() const {
  DataSummary summary;
  summary.format = data_.recognised.describe();
  summary.checksum = data_.checksum;
  summary.shape = {{"users", std::to_string(users_.size())},        {"items", std::to_string(items_.size())},
                   {"ratings", std::to_string(ratings_)},           {"mean", shortest_text(data_.mean)},
                   {"lowest", shortest_text(double{data_.lowest})}, {"highest", shortest_text(double{data_.highest})}};
  if (valid_) summary.shape.emplace_back("valid_ratings", std::to_string(valid_ratings_));
  return summary;
}

bool MatrixFactorisation::takes_tables(const std::string& schedule) const {
  if (params_.solver == Solver::sgd) return schedule == "data";
  if (schedule == "auto" || schedule == "data") return false;
  throw usage_error("--schedule: solver " + param_set_.get("solver") + " runs by schedule data, not " + schedule);
}

GridShape MatrixFactorisation::grid_shape(WorkerId workers) const {
  if (request_.groups > 1) return hybrid_shape(workers);
  return on_tables_ ? table_shape(workers) : rotation_shape(workers);
}

std::uint64_t MatrixFactorisation::clocks() const {
  return static_cast<std::uint64_t>(params_.clocks.value_or(default_clocks(on_tables_)));
}

// A worker's users in as many shares as there are clocks; items are cut only where the grid cannot number them.
GridShape MatrixFactorisation::table_shape(WorkerId workers) const {
  const std::uint64_t stripes = std::uint64_t{workers} * clocks();
  const std::uint64_t most = std::max(std::uint64_t{1} << 16, ratings_);
  if (stripes <= most) return {stripes, (items_.size() + kMaxBlockColumns - 1) / kMaxBlockColumns};
  throw usage_error("--workers: " + std::to_string(workers) + " workers and " + std::to_string(clocks()) +
                    " clocks cut " + std::to_string(ratings_) + " ratings into " + std::to_string(stripes) +
                    " units of work in an iteration; expected at most " + std::to_string(most));
}

// Blocks for the workers of a group; a worker's users in as many shares as there are clocks.
GridShape MatrixFactorisation::hybrid_shape(WorkerId workers) const {
  GridShape shape = rotation_shape(workers);
  shape.stripes *= clocks();
  constexpr std::uint64_t kAlwaysFine = std::uint64_t{1} << 20;
  const std::uint64_t most = std::max(kAlwaysFine, ratings_), units = std::uint64_t{shape.stripes} * shape.blocks;
  if (units <= most) return shape;
  throw usage_error("--clocks: " + std::to_string(clocks()) + " clocks of " + std::to_string(workers) +
                    " workers and " + std::to_string(shape.blocks) + " blocks of items make " + std::to_string(units) +
                    " units of work in an iteration, for " + std::to_string(ratings_) + " ratings; expected at most " +
                    std::to_string(most));
}

GridShape MatrixFactorisation::rotation_shape(WorkerId workers) const {
  const GridShape shape = choose_grid(ratings_, users_.size(), items_.size(), padded_rank(rank()), workers);
  // A unit costs microseconds however few ratings it has, and every iteration plans and runs all of them.
  constexpr std::uint64_t kAlwaysFine = std::uint64_t{1} << 20;
  const std::uint64_t units = std::uint64_t{shape.stripes} * shape.blocks;
  const std::uint64_t most = std::max(kAlwaysFine, ratings_);
  if (workers == 0 || units <= most) return shape;
  throw usage_error("--workers: " + std::to_string(workers) + " workers and as many blocks of items or more make " +
                    std::to_string(units) + " units of work in an iteration, for " + std::to_string(ratings_) +
                    " ratings: planning them would take far longer than the training; expected at most " +
                    std::to_string(static_cast<std::uint64_t>(std::sqrt(static_cast<double>(most)))) + " workers");
}

MemoryEstimate MatrixFactorisation::memory(WorkerId workers) const {
  const GridShape shape = grid_shape(workers);
  const std::uint64_t rows = std::uint64_t{users_.size()} + items_.size();
  const std::uint64_t rows_here = users_.size() / nodes_ + items_.size();
  const std::uint64_t row_bytes = padded_rank(rank()) * sizeof(float) + sizeof(Side);
  MemoryEstimate estimate;
  // While cells are built the records (12 bytes) and the finished cells (6 and a batch's share) exist side by side.
  estimate.add("ratings while they are laid out", ratings_ / nodes_ + 1, sizeof(Rating))
      .add("grid of cells", ratings_ / nodes_ + 1, 10)
      .add("tables of the grid", shape.stripes * shape.blocks, 256)
      .add("ids and counts", rows, 48)
      .add("model", rows_here, row_bytes);
  if (on_tables_) {
    // A worker's updates of a clock, with keys and places in the index; at a staleness some clocks' at once.
    const std::uint64_t touched =
        std::min<std::uint64_t>(ratings_ / clocks() + 1, std::uint64_t{workers} * items_.size());
    estimate.add("columns of the units", ratings_, sizeof(std::uint16_t))
        .add("table of items", items_.size(), row_bytes)
        .add("updates of the workers", touched, 2 * row_bytes)
        .add("places of the items", touched * clocks(), sizeof(std::uint32_t));
  }
  if (request_.groups > 1) {
    // Replica, base and gains; a node may have a part of one group more than its share of them.
    const std::uint64_t here = std::min<std::uint64_t>(request_.groups, request_.groups / nodes_ + 1);
    estimate.add("replicas of the items", here * items_.size(), 3 * row_bytes)
        .add("gains of all groups", request_.groups * items_.size(), row_bytes);
  }
  if (valid_) {
    estimate.add("held-out ratings", valid_ratings_, sizeof(Rating)).add("best model so far", rows_here, row_bytes);
  }
  return estimate;
}

CellGrid MatrixFactorisation::lay_out(const WorkerMap& map, Engine& engine) {
  const GridShape shape = grid_shape(map.workers());
  const std::size_t stripes_each = shape.stripes / map.workers();
  const StripeRange here{map.first_worker(map.this_node()) * stripes_each,
                         map.first_worker(map.this_node() + 1) * stripes_each};
  const ParallelFor parallel = engine.parallel_for_function();
  const bool is_outlined = !outline_.user_counts.empty();
  AxisCounts counts = is_outlined ? AxisCounts{std::move(outline_.user_counts), std::move(outline_.item_counts)}
                                  : count_ratings(data_.ratings, users_.size(), items_.size(), parallel);
  Axis rows = deal_axis(counts.rows, shape.stripes, counts.rows.size());
  Axis columns = deal_axis(counts.columns, shape.blocks, kMaxBlockColumns);
  counts = {};
  if (is_outlined) read_share(rows, here, engine);
  CellGrid grid = CellGrid::build(std::move(data_.ratings), std::move(rows), std::move(columns), parallel, here);
  malloc_trim(0);  // the C library would keep what the layout gave back, and the peak would count it twice
  return grid;
}

// The file once more, of which the ratings of the rows that are here are kept.
void MatrixFactorisation::read_share(const Axis& rows, const StripeRange& here, Engine& engine) {
  std::vector<bool> keeps(rows.size());
  for (std::uint32_t id = 0; id < rows.size(); ++id) keeps[id] = here.holds(rows.part[id]);
  RatingsOptions options = read_options(request_.format, engine);
  options.known_users = &users_;
  options.known_items = &items_;
  data_ = read_some_ratings(request_.path, options, outline_, keeps);
  warn_all(data_, engine);
}

void MatrixFactorisation::find_scaling() {
  // Errors of a fitted model are smaller than the spread of the ratings; steps were tuned at this share of it.
  constexpr double kShareOfSpread = 0.8;
  scaling_.mean = data_.mean;
  const double tiny = 1e-12 * std::max(1.0, std::abs(scaling_.mean));
  scaling_.scale = std::sqrt(data_.variance) > tiny ? kShareOfSpread * std::sqrt(data_.variance) : 1.0;
  scaling_.lowest = data_.lowest;
  scaling_.highest = data_.highest;
  scaling_.clip = params_.clip;
}

void MatrixFactorisation::initialise(MfState& state, const CellGrid& grid, std::uint64_t seed, Engine& engine) const {
  // Keyed by the id that the reader gave, so that the start does not depend on the grid. Small, so that strong
  // directions of the data grow first and noise does not: w·h starts with a standard deviation of 0.0002.
  // Alternating least squares would take such a start for noise and shrink it to nothing.
  const double product_spread = params_.solver == Solver::als ? 0.1 : 0.0002;
  const double spread = std::sqrt(3.0 * product_spread) * std::pow(static_cast<double>(rank()), -0.25);
  const double reg = params_.reg.value_or(default_reg(params_.solver));
  const double power = params_.reg_power.value_or(default_reg_power(params_.solver));
  const Random random(seed, Purpose::initial_model);
  const auto fill = [&](const Axis& axis, bool is_row) {
    std::vector<std::uint32_t> external(axis.size());
    for (std::uint32_t id = 0; id < axis.size(); ++id) external[axis.internal[id]] = id;
    engine.parallel_for(axis.parts(), [&](std::size_t part) {
      if (is_row && !state.is_here(part)) return;
      const FactorRows rows = is_row ? state.stripe(part) : state.block(static_cast<BlockId>(part));
      for (std::size_t r = 0; r < axis.part_size(part); ++r) {
        const std::uint32_t internal = axis.begin[part] + static_cast<std::uint32_t>(r);
        RandomStream draws = random.stream(0, 2 * std::uint64_t{external[internal]} + (is_row ? 1 : 0));
        for (std::size_t d = 0; d < rank(); ++d) {
          rows.factors[r * state.stride() + d] = static_cast<float>(spread * (2.0 * draws.uniform_float() - 1.0));
        }
        const double n = axis.counts[internal];
        rows.sides[r].decay = static_cast<float>(reg * (n > 0 ? portable_exp((power - 1.0) * portable_log(n)) : 1.0));
        if (n > 0) rows.sides[r].bias_decay = static_cast<float>(params_.bias_damping / n);
      }
    });
  };
  fill(grid.rows(), true);
  fill(grid.columns(), false);
}

void MatrixFactorisation::warm_start(MfState& state, const CellGrid& grid, Engine& engine) const {
  const MfModel before{ModelReader(*init_)};
  const auto known = before.copy_into(state, grid, users_, items_, scaling_);
  engine.warn("--init: " + std::to_string(known.first) + " of " + std::to_string(users_.size()) + " users and " +
              std::to_string(known.second) + " of " + std::to_string(items_.size()) +
              " items start from the model, the others anew");
}

Training MatrixFactorisation::prepare(Engine& engine, WorkerId workers, std::uint64_t seed,
                                      const std::string& schedule) {
  on_tables_ = takes_tables(schedule);
  if (params_.solver == Solver::als) check_als(engine);
  const WorkerMap map(workers, engine.transport().nodes(), engine.transport().node(), engine.domains());
  CellGrid grid = lay_out(map, engine);
  find_scaling();
  grid.normalise(scaling_.mean, scaling_.scale, engine.parallel_for_function());
  if (const std::string warning = duplicates_warning(grid.duplicates()); !warning.empty()) engine.warn(warning);
  prepared_ = std::make_unique<Prepared>(std::move(grid), engine.topology(), map, rank());
  initialise(prepared_->state, prepared_->grid, seed, engine);
  if (init_) warm_start(prepared_->state, prepared_->grid, engine);
  if (valid_) {
    prepared_->holdout = Holdout(std::move(valid_->ratings), prepared_->grid, scaling_);
  }
  Training training = params_.solver == Solver::als ? prepare_als(engine)
                      : on_tables_                  ? prepare_tables(engine, map)
                      : request_.groups > 1         ? prepare_hybrid(engine, map, seed)
                                                    : prepare_rotation(engine, seed);
  if (params_.keep_seen) prepared_->trainee->keep_seen();
  return training;
}

void MatrixFactorisation::check_als(Engine& engine) const {
  // A half step reads what the one before wrote: with slack between clocks they would overlap.
  if (engine.clock_bound() > 0) {
    throw usage_error("solver als needs --consistency bsp: a half step must see the whole one before it");
  }
  for (const char* name : {"rate", "rate-decay", "gain"}) {
    if (param_set_.was_set(name)) engine.warn(std::string("--") + name + " has no effect with solver als");
  }
}

SgdRule MatrixFactorisation::sgd_rule() const {
  const double per_row = 2.0 * static_cast<double>(ratings_) / static_cast<double>(users_.size() + items_.size());
  return {params_.rate, decay_for(params_.rate_decay, per_row), params_.gain};
}

Training MatrixFactorisation::prepare_rotation(Engine& engine, std::uint64_t seed) {
  prepared_->schedule = std::make_unique<RotationSchedule>(static_cast<WorkerId>(prepared_->grid.stripes()),
                                                           static_cast<BlockId>(prepared_->grid.blocks()), seed);
  prepared_->trainee = std::make_unique<SgdTrainee>(prepared_->grid, prepared_->state, &prepared_->holdout, scaling_,
                                                    sgd_rule(), kernels(engine.simd()));
  Training training;
  training.schedule = prepared_->schedule.get();
  training.trainee = prepared_->trainee.get();
  training.schedule_reason =
      "ratings touch one user and one item each, so blocks of items can rotate without a conflict";
  return training;
}

Training MatrixFactorisation::prepare_tables(Engine& engine, const WorkerMap& map) {
  prepared_->schedule = std::make_unique<DataParallelSchedule>(std::vector<std::uint32_t>(map.workers(), 1));
  auto trainee =
      std::make_unique<DataParallelTrainee>(engine, map, prepared_->grid, prepared_->state, &prepared_->holdout,
                                            scaling_, sgd_rule(), kernels(engine.simd()));
  Training training;
  training.schedule = prepared_->schedule.get();
  training.trainee = trainee.get();
  training.clocks_per_iteration = trainee->clocks_per_iteration();
  training.schedule_reason = "users stay with their worker, and the items are on a table that keeps the consistency";
  prepared_->trainee = std::move(trainee);
  return training;
}

Training MatrixFactorisation::prepare_hybrid(Engine& engine, const WorkerMap& map, std::uint64_t seed) {
  prepared_->schedule = std::make_unique<HybridSchedule>(map.workers(), request_.groups,
                                                         static_cast<BlockId>(prepared_->grid.blocks()), seed);
  auto trainee = std::make_unique<HybridTrainee>(engine.topology(), map, request_.groups, engine.clock_bound(),
                                                 prepared_->grid, prepared_->state, &prepared_->holdout, scaling_,
                                                 sgd_rule(), kernels(engine.simd()));
  Training training;
  training.schedule = prepared_->schedule.get();
  training.trainee = trainee.get();
  training.clocks_per_iteration = trainee->clocks_per_iteration();
  training.schedule_reason = "as asked for: blocks of items rotate within " + std::to_string(request_.groups) +
                             " groups of workers, which add up what they have gained";
  prepared_->trainee = std::move(trainee);
  return training;
}

Training MatrixFactorisation::prepare_als(Engine& engine) {
  prepared_->schedule = std::make_unique<DataParallelSchedule>(
      std::vector<std::uint32_t>(prepared_->grid.stripes(), AlsTrainee::kSlices));
  prepared_->trainee = std::make_unique<AlsTrainee>(prepared_->grid, prepared_->state, &prepared_->holdout, scaling_,
                                                    kernels(engine.simd()));
  Training training;
  training.schedule = prepared_->schedule.get();
  training.trainee = prepared_->trainee.get();
  training.clocks_per_iteration = AlsTrainee::kClocksPerIteration;
  training.schedule_reason = "with the items fixed, users are independent of each other, and the other way round";
  return training;
}

void MatrixFactorisation::write_model(ModelWriter& writer, Engine& engine) const {
  write_mf_model(writer, prepared_->state, prepared_->grid, users_, items_, scaling_, params_,
                 prepared_->trainee->far_seen(), engine.parallel_for_function());
}

}  // namespace
}  // namespace mf

std::unique_ptr<Algorithm> make_mf() { return std::make_unique<mf::MatrixFactorisation>(); }

std::unique_ptr<Model> open_mf(const ModelReader& reader) { return std::make_unique<mf::MfModel>(reader); }

}  // namespace orrery
