#include "algorithms/labelled_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "engine/data/dense.h"
#include "engine/data/input_file.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/params.h"

namespace orrery {
namespace {

DataFormat format_of(const std::string& path, const std::string& format) {
  if (!format.empty()) return parse_format(format);
  InputFile file(path);
  return detect_format(file, {DataFormat::svmlight, DataFormat::csv, DataFormat::npy}).format;
}

SparseRows without_zeros(const DenseMatrix& matrix, std::vector<double> labels) {
  SparseRows rows;
  rows.labels = std::move(labels);
  rows.column_count = static_cast<std::uint32_t>(matrix.columns);
  for (std::uint64_t r = 0; r < matrix.rows; ++r) {
    const std::span<const double> row = matrix.row(r);
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (row[c] == 0) continue;
      rows.columns.push_back(static_cast<std::uint32_t>(c));
      rows.values.push_back(static_cast<float>(row[c]));
    }
    rows.starts.push_back(rows.columns.size());
  }
  return rows;
}

SparseData read_table(const std::string& path, DataFormat format, const std::string& label, Engine& engine) {
  if (label.empty()) throw usage_error(path + " is a table: --label says which column holds the class");
  DenseOptions options;
  options.read.parallel = engine.parallel_for_function();
  options.format = format;
  options.label = label;
  DenseData table = read_dense(path, options);
  SparseData data;
  data.rows = without_zeros(table.matrix, std::move(table.label_values));
  data.labels = table.labels;
  data.checksum = table.checksum;
  data.recognised = table.recognised;
  data.warnings = std::move(table.warnings);
  return data;
}

/// Reads one of several parts. @throws Error (usage) for --label, which they do not take
std::function<SparseData(const std::string& file)> part_reader(const std::string& format, const std::string& label,
                                                               Engine& engine) {
  if (!label.empty()) throw usage_error("--label: rows in parts are svmlight, where the class comes first");
  return [format, &engine](const std::string& file) {
    const DataFormat kind = format_of(file, format);
    if (kind == DataFormat::svmlight)
      return read_svmlight(file, {.read = {.parallel = engine.parallel_for_function()}});
    throw usage_error(file + ": expected rows in parts to be svmlight, got " + std::string{format_name(kind)});
  };
}

void judge_rows(const SparseData& data, const std::string& path, Engine& engine) {
  if (data.rows.column_count > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max())) {
    throw data_error(path, "expected at most 2147483647 columns, got " + std::to_string(data.rows.column_count));
  }
  for (const std::string& warning : data.warnings) engine.warn(warning);
}

/// Floats as integers in the same order.
std::vector<std::uint32_t> sort_keys(std::span<const float> margins, std::span<const float> signs, bool positive) {
  std::vector<std::uint32_t> keys;
  for (std::size_t i = 0; i < margins.size(); ++i) {
    if ((signs[i] > 0) != positive) continue;
    const auto bits = std::bit_cast<std::uint32_t>(margins[i] + 0.0F);  // −0 becomes 0
    keys.push_back((bits >> 31) != 0 ? ~bits : bits | 0x80000000U);
  }
  return keys;
}

void radix_sort(std::vector<std::uint32_t>& keys) {
  constexpr unsigned kBits = 11;
  std::vector<std::uint32_t> other(keys.size());
  for (unsigned shift = 0; shift < 32; shift += kBits) {
    std::array<std::size_t, (1U << kBits) + 1> begin{};
    const auto digit = [&](std::uint32_t key) { return (key >> shift) & ((1U << kBits) - 1); };
    for (const std::uint32_t key : keys) ++begin[digit(key) + 1];
    for (std::size_t d = 1; d < begin.size(); ++d) begin[d] += begin[d - 1];
    for (const std::uint32_t key : keys) other[begin[digit(key)]++] = key;
    keys.swap(other);
  }
}

double area_under_curve(std::span<const float> margins, std::span<const float> signs) {
  std::vector<std::uint32_t> positive = sort_keys(margins, signs, true), negative = sort_keys(margins, signs, false);
  if (positive.empty() || negative.empty()) return std::numeric_limits<double>::quiet_NaN();
  radix_sort(positive);
  radix_sort(negative);
  double pairs = 0;  // in halves of a pair, so that it is an integer below 2^53
  std::size_t below = 0, up_to = 0;
  for (const std::uint32_t key : positive) {
    while (below < negative.size() && negative[below] < key) ++below;
    while (up_to < negative.size() && negative[up_to] <= key) ++up_to;
    pairs += static_cast<double>(below + up_to);
  }
  return pairs / (2.0 * static_cast<double>(positive.size()) * static_cast<double>(negative.size()));
}

}  // namespace

SparseData read_labelled_rows(const std::string& path, const std::string& format, const std::string& label,
                              Engine& engine, const Collective& nodes) {
  const ReadOptions read{.parallel = engine.parallel_for_function()};
  SparseData data;
  if (is_in_parts(path)) {
    data = read_rows_in_parts(path, nodes, part_reader(format, label, engine));
  } else if (const DataFormat kind = format_of(path, format); kind == DataFormat::csv || kind == DataFormat::npy) {
    data = read_table(path, kind, label, engine);
  } else if (kind == DataFormat::svmlight) {
    refuse_option("--label", label, path, kind, {DataFormat::csv, DataFormat::npy});
    data = read_svmlight(path, {.read = read});
  } else {
    throw usage_error("--format: expected svmlight, csv or npy, got " + std::string{format_name(kind)});
  }
  judge_rows(data, path, engine);
  return data;
}

SharedRows read_share_of_labelled_rows(const std::string& path, const std::string& format, const std::string& label,
                                       Engine& engine, const Collective& nodes) {
  SharedRows shared = read_share_of_rows(path, nodes, part_reader(format, label, engine));
  judge_rows(shared.all, path, engine);
  return shared;
}

BinaryLabels binary_labels(const Labels& labels, const std::string& path) {
  if (labels.kind == LabelKind::plus_minus_one) return {-1, 1};
  if (labels.kind == LabelKind::zero_one) return {0, 1};
  throw data_error(path, "expected labels of two classes, -1/1 or 0/1; got " +
                             (labels.kind == LabelKind::real ? "other numbers" : labels.describe()) +
                             "; `softmax` takes any integers");
}

void keep_columns(SparseRows& rows, std::uint32_t count) {
  std::uint64_t kept = 0, begin = 0;
  for (std::uint64_t row = 0; row < rows.rows(); ++row) {
    const std::uint64_t end = rows.starts[row + 1];
    for (std::uint64_t i = begin; i < end; ++i) {
      if (rows.columns[i] >= count) continue;
      rows.columns[kept] = rows.columns[i];
      rows.values[kept++] = rows.values[i];
    }
    begin = end;
    rows.starts[row + 1] = kept;
  }
  rows.columns.resize(kept);
  rows.values.resize(kept);
  rows.column_count = std::min(rows.column_count, count);
}

std::vector<float> signs_of(std::span<const double> labels, BinaryLabels known, const std::string& path) {
  std::vector<float> signs(labels.size());
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] != known.negative && labels[row] != known.positive) {
      throw data_error(path, "row " + std::to_string(row + 1) + ": expected a label " + shortest_text(known.negative) +
                                 " or " + shortest_text(known.positive) + ", got " + shortest_text(labels[row]));
    }
    signs[row] = labels[row] == known.positive ? 1.0F : -1.0F;
  }
  return signs;
}

std::vector<double> classes_in(std::span<const double> labels, const std::string& path) {
  constexpr std::size_t kMostClasses = 10000;
  std::vector<double> classes(labels.begin(), labels.end());
  // Beyond 2^53 labels that differ in the file may be one number here.
  const auto is_no_class = [](double label) { return label != std::floor(label) || std::abs(label) >= 0x1p53; };
  if (const auto at = std::find_if(classes.begin(), classes.end(), is_no_class); at != classes.end()) {
    throw data_error(path, "row " + std::to_string(at - classes.begin() + 1) +
                               ": expected an integer below 2^53 as label of a class, got " + shortest_text(*at));
  }
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  if (classes.size() > kMostClasses) {
    throw data_error(path, "expected labels of at most " + std::to_string(kMostClasses) + " classes, got " +
                               std::to_string(classes.size()));
  }
  return classes;
}

std::vector<std::uint32_t> numbers_of(std::span<const double> labels, std::span<const double> classes,
                                      const std::string& path) {
  std::vector<std::uint32_t> numbers(labels.size());
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto at = std::lower_bound(classes.begin(), classes.end(), labels[row]);
    if (at == classes.end() || *at != labels[row]) {
      throw data_error(path, "row " + std::to_string(row + 1) + ": expected a label that training had, one of " +
                                 std::to_string(classes.size()) + " classes; got " + shortest_text(labels[row]));
    }
    numbers[row] = static_cast<std::uint32_t>(at - classes.begin());
  }
  return numbers;
}

BinaryScores score(std::span<const float> margins, std::span<const float> signs) {
  std::size_t right = 0;
  for (std::size_t i = 0; i < margins.size(); ++i) right += (margins[i] > 0) == (signs[i] > 0) ? 1 : 0;
  return {static_cast<double>(right) / static_cast<double>(margins.size()), area_under_curve(margins, signs)};
}

}  // namespace orrery
