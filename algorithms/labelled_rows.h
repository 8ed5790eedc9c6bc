// Rows with a class each, from any format that has them, and how well margins tell two classes apart.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithms/data_parts.h"
#include "engine/collective.h"
#include "engine/data/sparse_rows.h"

namespace orrery {

class Engine;

/// Reads svmlight, or a dense table (CSV, .npy) whose column `label` holds the class; zeros of a table are left out.
/// Rows in parts (data_parts.h) are svmlight; `nodes` is who reads them. Warnings go to the engine. @throws Error
/// (data) as the readers do; (usage) for a table without --label, for --label without a table, for tables in parts, and
/// for more than 2^31 − 1 columns.
SparseData read_labelled_rows(const std::string& path, const std::string& format, const std::string& label,
                              Engine& engine, const Collective& nodes = {});

/// The same of rows in parts, of which every node keeps those that it reads.
SharedRows read_share_of_labelled_rows(const std::string& path, const std::string& format, const std::string& label,
                                       Engine& engine, const Collective& nodes);

/// Keeps the first `count` columns only: memory of what uses the rows must not grow with a column that no model knows.
void keep_columns(SparseRows& rows, std::uint32_t count);

/// The two values that a class has in files, as recorded with a model: {−1, 1} or {0, 1}.
struct BinaryLabels {
  double negative = -1, positive = 1;
};
/// @throws Error (data) for labels of another kind.
BinaryLabels binary_labels(const Labels& labels, const std::string& path);
/// −1 or 1 for every row. @throws Error (data) for a label that is neither.
std::vector<float> signs_of(std::span<const double> labels, BinaryLabels known, const std::string& path);

/// The values that stand for classes in files, ascending; they number the classes from 0. @throws Error (data) for a
/// label that is no integer, and for more than 10,000 classes.
std::vector<double> classes_in(std::span<const double> labels, const std::string& path);
/// The number of every row's class. @throws Error (data) for a label that is no class.
std::vector<std::uint32_t> numbers_of(std::span<const double> labels, std::span<const double> classes,
                                      const std::string& path);

/// How well margins (log-odds of the positive class) tell two classes apart.
struct BinaryScores {
  double accuracy = 0;
  double auc = 0;  ///< chance that a positive row has the higher margin, ties half; NaN when there is one class only
};
/// Cost: two radix sorts.
BinaryScores score(std::span<const float> margins, std::span<const float> signs);

}  // namespace orrery
