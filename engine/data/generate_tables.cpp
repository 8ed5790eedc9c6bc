// Generators of rows with labels: sparse (svmlight) and dense (CSV, .npy).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/data/generate.h"
#include "engine/data/generate_parts.h"
#include "engine/data/id_map.h"
#include "engine/data/portable_math.h"
#include "engine/npy.h"

namespace orrery {

namespace {

constexpr std::uint64_t kRowsPerPart = 512;

void check(const SparsePlan& plan) {
  require(plan.rows > 0 && plan.columns > 0, "rows and columns must be positive");
  require(plan.columns < IdMap::kUnseen, "at most 4294967294 columns");
  require(plan.entries_per_row <= plan.columns / 2 + 1, "entries of a row may be at most half of the columns");
  require(plan.nonzero_weights <= plan.columns, "there are at most as many weights as columns");
  require(plan.group > 0 && plan.columns % plan.group == 0 && plan.entries_per_row % plan.group == 0,
          "groups must divide the columns and the entries of a row");
  require(plan.correlation >= 0 && plan.correlation <= 1, "the correlation must be in [0, 1]");
  require(plan.classes != 1, "classes are 0 (regression) or at least 2");
}

struct SparseRow {
  std::vector<std::uint32_t> columns;
  std::vector<double> values;
};

// What a part of the rows adds to the oracle's figures.
struct OracleSums {
  double loss = 0;
  double correct = 0;
};

class SparseGenerator {
 public:
  explicit SparseGenerator(const SparsePlan& plan) : plan_(plan) {
    const std::uint32_t vectors = plan.classes < 3 ? 1 : plan.classes;
    for (std::uint32_t k = 0; k < vectors; ++k) {
      RandomStream random = draws_of(plan.seed, Draw::weights, k);
      std::vector<double> weights = draw_sparse_weights(plan.columns, plan.nonzero_weights, random);
      for (const double weight : weights) truth_.weights.push_back(plan.weight_scale * weight);
    }
  }

  void row(std::uint64_t r, TextBuffer& text, SparseRow& row, OracleSums& sums) const {
    RandomStream random = draws_of(plan_.seed, Draw::rows, r);
    draw_columns(random, row.columns);
    draw_values(random, row);
    label(row, random, text, sums);
    for (std::size_t i = 0; i < row.columns.size(); ++i) {
      text << ' ' << row.columns[i] + 1 << ':' << row.values[i];
    }
    text << '\n';
  }

  SparseTruth truth(const std::vector<OracleSums>& parts) {
    for (const OracleSums& part : parts) {
      truth_.oracle_loss += part.loss;
      truth_.oracle_accuracy += part.correct;
    }
    truth_.oracle_loss /= static_cast<double>(plan_.rows);
    truth_.oracle_accuracy /= static_cast<double>(plan_.rows);
    return std::move(truth_);
  }

 private:
  /// Groups of columns, each of which is one column if they are not grouped.
  void draw_columns(RandomStream& random, std::vector<std::uint32_t>& columns) const {
    columns.clear();
    while (columns.size() < plan_.entries_per_row) {
      const auto first = static_cast<std::uint32_t>(random.below(plan_.columns / plan_.group)) * plan_.group;
      const auto place = std::lower_bound(columns.begin(), columns.end(), first);
      if (place != columns.end() && *place == first) continue;
      const auto at = columns.insert(place, plan_.group, first);
      std::iota(at, at + plan_.group, first);
    }
  }

  /// What is written is what the label is computed from.
  void draw_values(RandomStream& random, SparseRow& row) const {
    row.values.clear();
    const double own = std::sqrt(1 - plan_.correlation), shared = std::sqrt(plan_.correlation);
    double of_group = 0;
    for (std::size_t i = 0; i < row.columns.size(); ++i) {
      if (shared > 0 && i % plan_.group == 0) of_group = random.normal();
      row.values.push_back(std::floor((own * random.normal() + shared * of_group) * 1e4 + 0.5) / 1e4);
    }
  }

  double score(const SparseRow& row, std::uint32_t k) const {
    const double* weights = truth_.weights.data() + static_cast<std::size_t>(k) * plan_.columns;
    double sum = 0;
    for (std::size_t i = 0; i < row.columns.size(); ++i) sum += weights[row.columns[i]] * row.values[i];
    return sum;
  }

  void label(const SparseRow& row, RandomStream& random, TextBuffer& text, OracleSums& sums) const {
    if (plan_.classes == 0) {
      const double error = plan_.noise * random.normal();
      sums.loss += error * error;
      text << score(row, 0) + error;
      return;
    }
    std::vector<double> odds(plan_.classes);
    if (plan_.classes == 2) {
      odds = {1, portable_exp(std::clamp(score(row, 0), -500.0, 500.0))};
    } else {
      for (std::uint32_t k = 0; k < plan_.classes; ++k) odds[k] = score(row, k);
      const double top = *std::max_element(odds.begin(), odds.end());
      for (double& value : odds) value = portable_exp(value - top);
    }
    choose(odds, random, text, sums);
  }

  void choose(const std::vector<double>& odds, RandomStream& random, TextBuffer& text, OracleSums& sums) const {
    const double total = sum_in_order(odds);
    double left = random.uniform() * total;
    std::size_t chosen = 0;
    while (chosen + 1 < odds.size() && left >= odds[chosen]) left -= odds[chosen++];
    sums.loss -= portable_log(odds[chosen] / total);
    sums.correct += odds[chosen] == *std::max_element(odds.begin(), odds.end()) ? 1 : 0;
    if (plan_.classes == 2) {
      text << (chosen == 1 ? 1 : -1);
    } else {
      text << chosen + 1;
    }
  }

  const SparsePlan& plan_;
  SparseTruth truth_;
};

std::size_t parts_of(std::uint64_t rows) { return static_cast<std::size_t>((rows + kRowsPerPart - 1) / kRowsPerPart); }

}  // namespace

SparseTruth write_sparse(const SparsePlan& plan, const std::filesystem::path& path, const ParallelFor& parallel) {
  check(plan);
  SparseGenerator generator(plan);
  std::vector<OracleSums> sums(parts_of(plan.rows));
  TextWriter out(path);
  write_parts(out, sums.size(), parallel, [&](std::size_t part, TextBuffer& text) {
    SparseRow row;
    const std::uint64_t end = std::min(plan.rows, (part + 1) * kRowsPerPart);
    for (std::uint64_t r = part * kRowsPerPart; r < end; ++r) generator.row(r, text, row, sums[part]);
  });
  out.commit();
  return generator.truth(sums);
}

namespace {

// A row's columns and then its label; returns the squared error of the truth.
double dense_row(const DensePlan& plan, const std::vector<double>& weights, std::uint64_t r, std::span<double> row) {
  RandomStream random = draws_of(plan.seed, Draw::rows, r);
  const double fresh = std::sqrt(1 - plan.correlation * plan.correlation);
  double value = 0, sum = 0;
  for (std::uint32_t c = 0; c < plan.columns; ++c) {
    value = c == 0 ? random.normal() : plan.correlation * value + fresh * random.normal();
    row[c] = value;
    sum += weights[c] * value;
  }
  const double error = plan.noise * random.normal();
  row[plan.columns] = sum + error;
  return error * error;
}

// Calls `use(first row of the part, values of the part, squared error)` in order.
template <class Use>
void dense_parts(const DensePlan& plan, const std::vector<double>& weights, const ParallelFor& parallel,
                 const Use& use) {
  constexpr std::size_t kWave = 32, kRows = 256;
  const std::size_t width = std::size_t{plan.columns} + 1;
  std::vector<std::vector<double>> values(kWave);
  std::vector<double> errors(kWave);
  for (std::uint64_t first = 0; first < plan.rows; first += kWave * kRows) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(kWave, (plan.rows - first + kRows - 1) / kRows));
    parallel(count, [&](std::size_t i) {
      const std::uint64_t begin = first + i * kRows, end = std::min<std::uint64_t>(plan.rows, begin + kRows);
      values[i].resize(static_cast<std::size_t>(end - begin) * width);
      errors[i] = 0;
      for (std::uint64_t r = begin; r < end; ++r) {
        errors[i] += dense_row(plan, weights, r,
                               std::span{values[i]}.subspan(static_cast<std::size_t>(r - begin) * width, width));
      }
    });
    for (std::size_t i = 0; i < count; ++i) use(values[i], errors[i]);
  }
}

}  // namespace

DenseTruth write_dense(const DensePlan& plan, const std::filesystem::path& path, const ParallelFor& parallel) {
  require(plan.rows > 0 && plan.columns > 0, "rows and columns must be positive");
  require(plan.nonzero_weights <= plan.columns, "there are at most as many weights as columns");
  require(plan.correlation > -1 && plan.correlation < 1, "the correlation lies between -1 and 1");
  DenseTruth truth;
  RandomStream random = draws_of(plan.seed, Draw::weights, 0);
  truth.weights = draw_sparse_weights(plan.columns, plan.nonzero_weights, random);
  if (path.extension() == ".npy") {
    write_npy(path, NpyType::float64, {plan.rows, std::uint64_t{plan.columns} + 1}, [&](const ByteSink& sink) {
      dense_parts(plan, truth.weights, parallel, [&](const std::vector<double>& values, double error) {
        truth.oracle_loss += error;
        sink(std::as_bytes(std::span{values}));
      });
    });
  } else {
    TextWriter out(path);
    for (std::uint32_t c = 1; c <= plan.columns; ++c) out << 'x' << c << ',';
    out << "y\n";
    dense_parts(plan, truth.weights, parallel, [&](const std::vector<double>& values, double error) {
      truth.oracle_loss += error;
      for (std::size_t i = 0; i < values.size(); ++i)
        out << values[i] << ((i + 1) % (plan.columns + 1) == 0 ? '\n' : ',');
    });
    out.commit();
  }
  truth.oracle_loss /= static_cast<double>(plan.rows);
  return truth;
}

}  // namespace orrery
