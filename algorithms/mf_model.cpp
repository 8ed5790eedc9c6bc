#include "algorithms/mf_model.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "engine/data/ratings.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/params.h"
#include "engine/reduce.h"

namespace orrery::mf {
namespace {

constexpr std::size_t kConstants = 8;

std::array<double, kConstants> constants_of(const Scaling& scaling, const MfParams& params) {
  return {scaling.mean,
          scaling.scale,
          double{scaling.lowest},
          double{scaling.highest},
          scaling.clip ? 1.0 : 0.0,
          params.reg.value_or(default_reg(params.solver)),
          params.reg_power.value_or(default_reg_power(params.solver)),
          params.bias_damping};
}

double mean_square(const std::vector<float>& values) {
  double sum = 0;
  for (const float x : values) sum += double{x} * double{x};
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

/// Where the row of an external id is.
struct Location {
  std::size_t part;
  std::size_t row;
};

Location locate(const Axis& axis, std::uint32_t id) {
  const std::size_t part = axis.part[id];
  return {part, axis.internal[id] - axis.begin[part]};
}

// Factors and biases of one side in external order and rating units; a product of two factor rows carries the scale
// once.
template <class PartOf>
void write_side(ModelWriter& writer, const char* name, const Axis& axis, std::size_t rank, std::size_t stride,
                double scale, const PartOf& part_of) {
  const auto root = static_cast<float>(std::sqrt(scale));
  std::vector<float> row(rank);
  writer.add_array(std::string(name) + "_factors", NpyType::float32, {axis.size(), rank}, [&](const ByteSink& sink) {
    for (std::uint32_t id = 0; id < axis.size(); ++id) {
      const Location at = locate(axis, id);
      const float* factors = part_of(at.part).factors + at.row * stride;
      for (std::size_t d = 0; d < rank; ++d) row[d] = factors[d] * root;
      sink(std::as_bytes(std::span<const float>{row}));
    }
  });
  std::vector<float> bias(axis.size());
  for (std::uint32_t id = 0; id < axis.size(); ++id) {
    const Location at = locate(axis, id);
    bias[id] = part_of(at.part).sides[at.row].bias * static_cast<float>(scale);
  }
  writer.add_array<float>(std::string(name) + "_bias", bias);
}

void write_seen(ModelWriter& writer, const CellGrid& grid, const FarSeen& far, const ParallelFor& parallel) {
  const Axis& rows = grid.rows();
  std::vector<std::int64_t> begin(rows.size() + 1, 0);
  for (std::uint32_t id = 0; id < rows.size(); ++id) begin[id + 1] = rows.counts[rows.internal[id]];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  writer.add_array<std::int64_t>("seen_begin", begin);
  writer.add_array<std::int32_t>("seen_items", seen_items(grid, far, begin, parallel));
}

// Enough for a line of numbers; written in one piece.
void append_number(std::string& line, double value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(value)).ptr;
  line.append(text.data(), end);
}

}  // namespace

void write_mf_model(ModelWriter& writer, const MfState& state, const CellGrid& grid, const IdMap& users,
                    const IdMap& items, const Scaling& scaling, const MfParams& params, const FarSeen& far_seen,
                    const ParallelFor& parallel) {
  write_side(writer, "user", grid.rows(), state.rank(), state.stride(), scaling.scale,
             [&](std::size_t part) { return state.stripe(part); });
  write_side(writer, "item", grid.columns(), state.rank(), state.stride(), scaling.scale,
             [&](std::size_t part) { return state.block(static_cast<BlockId>(part)); });
  writer.add_array<double>("constants", constants_of(scaling, params));
  writer.add_text("users", users.texts());
  writer.add_text("items", items.texts());
  if (params.keep_seen) write_seen(writer, grid, far_seen, parallel);
}

std::size_t rank_of_model(const ModelReader& reader) {
  const NpyShape& shape = reader.entry("user_factors").shape;
  if (shape.size() != 2 || shape[1] == 0) throw data_error(reader.path().string(), "user_factors is not a matrix");
  return shape[1];
}

MfModel::MfModel(const ModelReader& reader) {
  const auto constants = reader.read<double>("constants");
  if (constants.size() != kConstants) {
    throw data_error(reader.path().string(), "constants has " + std::to_string(constants.size()) + " values, not " +
                                                 std::to_string(kConstants));
  }
  scaling_ = {constants[0], constants[1], static_cast<float>(constants[2]), static_cast<float>(constants[3]),
              constants[4] != 0.0};
  bias_damping_ = constants[7];
  rank_ = rank_of_model(reader);
  read_side(reader, "user", users_);
  read_side(reader, "item", items_);
  factor_variance_ = mean_square(users_.factors);
  if (!reader.has("seen_begin")) return;
  seen_begin_ = reader.read<std::int64_t>("seen_begin");
  seen_items_ = reader.read<std::int32_t>("seen_items");
  const bool fits = seen_begin_.size() == users_.bias.size() + 1 && seen_begin_.front() == 0 &&
                    std::is_sorted(seen_begin_.begin(), seen_begin_.end()) &&
                    seen_begin_.back() == static_cast<std::int64_t>(seen_items_.size());
  if (!fits) throw data_error(reader.path().string(), "seen_begin does not fit users and seen_items");
}

void MfModel::read_side(const ModelReader& reader, const char* name, Side& side) const {
  side.factors = reader.read<float>(std::string(name) + "_factors");
  side.bias = reader.read<float>(std::string(name) + "_bias");
  side.ids = IdMap::from_lines(reader.read_text(std::string(name) + "s"));
  if (side.factors.size() != side.bias.size() * rank_ || side.ids.size() != side.bias.size()) {
    throw data_error(reader.path().string(), std::string(name) + "s, factors and biases are not of one length");
  }
}

double MfModel::predict(std::uint32_t user, std::uint32_t item) const {
  double value = scaling_.mean;
  if (user != IdMap::kUnseen) value += double{users_.bias[user]};
  if (item != IdMap::kUnseen) value += double{items_.bias[item]};
  if (user != IdMap::kUnseen && item != IdMap::kUnseen) {
    const float* w = users_.factors.data() + user * rank_;
    const float* h = items_.factors.data() + item * rank_;
    double dot = 0;
    for (std::size_t d = 0; d < rank_; ++d) dot += double{w[d]} * double{h[d]};
    value += dot;
  }
  return scaling_.clip ? std::clamp<double>(value, scaling_.lowest, scaling_.highest) : value;
}

namespace {

RatingsData read_against(const std::string& data, const std::string& format, Engine& engine, bool pairs,
                         const IdMap* users, const IdMap* items) {
  RatingsOptions options;
  options.read.parallel = engine.parallel_for_function();
  if (!format.empty()) options.format = parse_format(format);
  options.pairs = pairs;
  options.known_users = users;
  options.known_items = items;
  RatingsData read = read_ratings(data, options);
  for (const std::string& warning : read.warnings) engine.warn(warning);
  return read;
}

}  // namespace

void MfModel::predict(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const {
  const RatingsData read = read_against(data, format, engine, true, &users_.ids, &items_.ids);
  if (read.unseen_users + read.unseen_items > 0) {
    engine.warn(data + ": " + std::to_string(read.unseen_users) + " lines with unknown users and " +
                std::to_string(read.unseen_items) + " with unknown items are predicted from what is known");
  }
  std::vector<std::string> pieces(read.ratings.chunks());
  engine.parallel_for(pieces.size(), [&](std::size_t c) {
    for (const Rating& r : read.ratings.chunk(c)) {
      append_number(pieces[c], predict(r.user, r.item));
      pieces[c] += '\n';
    }
  });
  for (const std::string& piece : pieces) out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
}

ErrorSums MfModel::measure(const RatingsData& read, Engine& engine) const {
  std::vector<ErrorSums> sums(read.ratings.chunks());
  engine.parallel_for(sums.size(), [&](std::size_t c) {
    for (const Rating& r : read.ratings.chunk(c)) {
      const double error = double{r.value} - predict(r.user, r.item);
      sums[c].squares += error * error;
      sums[c].absolute += std::abs(error);
    }
  });
  return tree_combine(std::span<ErrorSums>{sums}, [](const ErrorSums& a, const ErrorSums& b) {
    return ErrorSums{a.squares + b.squares, a.absolute + b.absolute};
  });
}

ValueList MfModel::evaluate(const std::string& data, const std::string& format, Engine& engine) const {
  const RatingsData read = read_against(data, format, engine, false, &users_.ids, &items_.ids);
  const ErrorSums sums = measure(read, engine);
  const auto n = static_cast<double>(read.ratings.size());
  return {{"rmse", std::sqrt(sums.squares / n)},
          {"mae", sums.absolute / n},
          {"ratings", static_cast<std::int64_t>(read.ratings.size())}};
}

std::vector<double> MfModel::ridge(const std::vector<std::pair<std::uint32_t, float>>& ratings) const {
  // Unknowns x = (bias, factors), features (1, h_i). Errors have a variance near scale², factors the variance of the
  // trained users' factors: their ratio is the penalty of a Gaussian prior. (The training's own penalty would not do:
  // it relies on small steps for users with few ratings.)
  const auto size = static_cast<Eigen::Index>(rank_ + 1);
  Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(size, size);
  Eigen::VectorXd right = Eigen::VectorXd::Zero(size);
  Eigen::VectorXd feature(size);
  for (const auto& [item, rating] : ratings) {
    feature[0] = 1.0;
    for (std::size_t d = 0; d < rank_; ++d) {
      feature[static_cast<Eigen::Index>(d + 1)] = double{items_.factors[item * rank_ + d]};
    }
    gram.selfadjointView<Eigen::Lower>().rankUpdate(feature);
    right += (double{rating} - scaling_.mean - double{items_.bias[item]}) * feature;
  }
  constexpr double kLeast = 1e-9;  // fewer ratings than factors must not leave the system singular
  const double penalty = scaling_.scale * scaling_.scale / std::max(factor_variance_, kLeast);
  gram.diagonal().array() += std::max(penalty, kLeast);
  gram(0, 0) += std::max(bias_damping_, kLeast) - std::max(penalty, kLeast);
  const Eigen::VectorXd solution = gram.selfadjointView<Eigen::Lower>().ldlt().solve(right);
  return {solution.data(), solution.data() + size};
}

void MfModel::infer(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const {
  const RatingsData read = read_against(data, format, engine, false, nullptr, &items_.ids);
  if (read.unseen_items > 0) {
    engine.warn(data + ": " + std::to_string(read.unseen_items) + " ratings of unknown items were left out");
  }
  std::vector<std::vector<std::pair<std::uint32_t, float>>> of_user(read.users.size());
  for (std::size_t c = 0; c < read.ratings.chunks(); ++c) {
    for (const Rating& r : read.ratings.chunk(c)) {
      if (r.item != IdMap::kUnseen) of_user[r.user].emplace_back(r.item, r.value);
    }
  }
  constexpr std::size_t kUsersEach = 256;
  std::vector<std::string> pieces((of_user.size() + kUsersEach - 1) / kUsersEach);
  engine.parallel_for(pieces.size(), [&](std::size_t p) {
    const std::size_t end = std::min(of_user.size(), (p + 1) * kUsersEach);
    for (std::size_t u = p * kUsersEach; u < end; ++u) {
      pieces[p] += read.users.text(static_cast<std::uint32_t>(u));
      for (const double value : ridge(of_user[u])) {
        pieces[p] += ' ';
        append_number(pieces[p], value);
      }
      pieces[p] += '\n';
    }
  });
  for (const std::string& piece : pieces) out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
}

std::vector<std::pair<std::string, double>> MfModel::recommend(const std::string& user, std::size_t top) const {
  const std::uint32_t u = users_.ids.find(user);
  const auto first = u == IdMap::kUnseen || seen_begin_.empty() ? 0 : seen_begin_[u];
  const auto last = u == IdMap::kUnseen || seen_begin_.empty() ? 0 : seen_begin_[u + 1];
  std::vector<std::pair<double, std::uint32_t>> scores;
  for (std::uint32_t i = 0; i < items_.ids.size(); ++i) {
    if (std::binary_search(seen_items_.begin() + first, seen_items_.begin() + last, static_cast<std::int32_t>(i))) {
      continue;
    }
    scores.emplace_back(-predict(u, i), i);  // best first; equal ones by index
  }
  const std::size_t count = std::min(top, scores.size());
  std::partial_sort(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(count), scores.end());
  std::vector<std::pair<std::string, double>> best;
  for (std::size_t k = 0; k < count; ++k) best.emplace_back(items_.ids.text(scores[k].second), -scores[k].first);
  return best;
}

std::vector<Check> MfModel::verify(const Run& run, Engine& engine) const {
  const auto is_finite = [](const std::vector<float>& values) {
    return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
  };
  std::vector<Check> checks;
  checks.push_back(
      {"parameters are finite numbers",
       is_finite(users_.factors) && is_finite(users_.bias) && is_finite(items_.factors) && is_finite(items_.bias),
       std::to_string(users_.bias.size()) + " users, " + std::to_string(items_.bias.size()) + " items"});
  // Read as training did: with the same content come the same indices, which are those of the model.
  const RatingsData data = read_against(run.data, run.format, engine, false, nullptr, nullptr);
  const bool same_data = data.checksum == run.data_checksum && data.users.size() == users_.ids.size() &&
                         data.items.size() == items_.ids.size();
  checks.push_back({"training data still is what the model was trained on", same_data, run.data});
  if (!same_data) return checks;
  const double train = std::sqrt(measure(data, engine).squares / static_cast<double>(data.ratings.size()));
  // The mean alone leaves the spread of the ratings: 1 / 0.8 of the scale (mf.cpp); a trained model explains some of
  // it.
  const double spread = scaling_.scale / 0.8;
  checks.push_back({"training error is not above that of the mean", train <= spread * (1 + 1e-6),
                    "rmse " + shortest_text(train) + ", spread " + shortest_text(spread)});
  if (run.valid && run.value) {
    const double valid = number_in(evaluate(*run.valid, run.format, engine), "rmse");
    constexpr double kRounding = 1e-4;  // the model on disk is in rating units, training is in units of the spread
    checks.push_back({"held-out rmse is the one of run.json",
                      std::abs(valid - *run.value) <= kRounding * std::max(*run.value, 1e-3),
                      "expected " + shortest_text(*run.value) + ", found " + shortest_text(valid)});
  }
  return checks;
}

std::pair<std::size_t, std::size_t> MfModel::copy_into(MfState& state, const CellGrid& grid, const IdMap& users,
                                                       const IdMap& items, const Scaling& scaling) const {
  const auto root = static_cast<float>(std::sqrt(scaling.scale));
  const auto copy = [&](const Side& from, const IdMap& ids, const Axis& axis, bool is_row) {
    std::size_t known = 0;
    for (std::uint32_t id = 0; id < ids.size(); ++id) {
      const std::uint32_t old = from.ids.find(ids.text(id));
      if (old == IdMap::kUnseen) continue;
      ++known;
      const Location at = locate(axis, id);
      if (is_row && !state.is_here(at.part)) continue;
      const FactorRows rows = is_row ? state.stripe(at.part) : state.block(static_cast<BlockId>(at.part));
      for (std::size_t d = 0; d < rank_; ++d) {
        rows.factors[at.row * state.stride() + d] = from.factors[old * rank_ + d] / root;
      }
      rows.sides[at.row].bias = from.bias[old] / static_cast<float>(scaling.scale);
    }
    return known;
  };
  return {copy(users_, users, grid.rows(), true), copy(items_, items, grid.columns(), false)};
}

}  // namespace orrery::mf
