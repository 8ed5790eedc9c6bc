#include "engine/data/data_info.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/checksum.h"
#include "engine/data/corpus.h"
#include "engine/data/dense.h"
#include "engine/data/edges.h"
#include "engine/data/input_file.h"
#include "engine/data/ratings.h"
#include "engine/data/sparse_rows.h"
#include "engine/error.h"
#include "engine/json.h"

namespace orrery {

namespace {

Json skew_of(std::vector<std::uint64_t> counts) {
  Json out = Json::object();
  if (counts.empty()) return out;
  std::sort(counts.begin(), counts.end());
  double total = 0, weighted = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    total += static_cast<double>(counts[i]);
    weighted += static_cast<double>(i + 1) * static_cast<double>(counts[i]);
  }
  const auto n = static_cast<double>(counts.size());
  const std::size_t top = (counts.size() + 99) / 100;
  double top_sum = 0;
  for (std::size_t i = counts.size() - top; i < counts.size(); ++i) top_sum += static_cast<double>(counts[i]);
  out["smallest"] = counts.front();
  out["median"] = counts[counts.size() / 2];
  out["mean"] = total / n;
  out["largest"] = counts.back();
  out["top_1_percent_share"] = total > 0 ? top_sum / total : 0.0;
  out["gini"] = total > 0 ? 2 * weighted / (n * total) - (n + 1) / n : 0.0;
  return out;
}

// Streaming moments of values; Welford's update, so that a large mean costs no digits.
class Moments {
 public:
  void add(double x) {
    ++count_;
    const double delta = x - mean_;
    mean_ += delta / static_cast<double>(count_);
    squares_ += delta * (x - mean_);
    lowest_ = std::min(lowest_, x);
    highest_ = std::max(highest_, x);
  }
  Json json() const {
    Json out = Json::object();
    if (count_ == 0) return out;
    out["lowest"] = lowest_;
    out["highest"] = highest_;
    out["mean"] = mean_;
    out["standard_deviation"] = std::sqrt(squares_ / static_cast<double>(count_));
    return out;
  }

 private:
  std::uint64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
  double lowest_ = std::numeric_limits<double>::infinity(), highest_ = -std::numeric_limits<double>::infinity();
};

double ratio(double a, double b) { return b > 0 ? a / b : 0.0; }

template <class Data>
Json frame(const std::string& path, const char* kind, const Data& data) {
  Json out;
  out["file"] = path;
  out["kind"] = kind;
  out["format"] = format_name(data.recognised.format);
  out["recognised"] = data.recognised.describe();
  out["gzip"] = data.recognised.gzip;
  return out;
}

template <class Data>
void close(Json& out, const Data& data) {
  out["checksum"] = checksum_text(data.checksum);
  out["warnings"] = data.warnings;
}

Json ratings_info(const std::string& path, const InfoOptions& options, DataFormat format) {
  RatingsOptions reading;
  reading.read = options.read;
  reading.format = format;
  RatingsData data = read_ratings(path, reading);
  std::vector<std::uint64_t> users(data.users.size(), 0), items(data.items.size(), 0);
  Moments values;
  for (std::size_t c = 0; c < data.ratings.chunks(); ++c) {
    for (const Rating& r : data.ratings.chunk(c)) {
      ++users[r.user];
      ++items[r.item];
      values.add(static_cast<double>(r.value));
    }
  }
  const std::uint64_t duplicates = count_duplicates(data.ratings);
  if (duplicates > 0) data.warnings.push_back(duplicates_warning(duplicates));
  Json out = frame(path, "ratings", data);
  out["users"] = data.users.size();
  out["items"] = data.items.size();
  out["ratings"] = data.ratings.size();
  out["density"] =
      ratio(static_cast<double>(data.ratings.size()), static_cast<double>(data.users.size()) * data.items.size());
  out["duplicates"] = duplicates;
  out["integer_ids"] = {{"users", data.users.integers()}, {"items", data.items.integers()}};
  out["values"] = values.json();
  out["ratings_of_a_user"] = skew_of(std::move(users));
  out["ratings_of_an_item"] = skew_of(std::move(items));
  close(out, data);
  return out;
}

Json labels_json(const Labels& labels, const std::vector<double>& values) {
  Moments moments;
  for (const double value : values) moments.add(value);
  Json out = moments.json();
  out["kind"] = labels.describe();
  if (labels.classes > 0) out["classes"] = labels.classes;
  return out;
}

Json sparse_info(const std::string& path, const InfoOptions& options) {
  SparseOptions reading;
  reading.read = options.read;
  const SparseData data = read_svmlight(path, reading);
  const SparseRows& rows = data.rows;
  std::vector<std::uint64_t> row_counts,
      columns(rows.column_count <= rows.entries() * 16 + 1024 ? rows.column_count : 0, 0);
  Moments values;
  for (std::uint64_t r = 0; r < rows.rows(); ++r) row_counts.push_back(rows.starts[r + 1] - rows.starts[r]);
  for (std::uint64_t e = 0; e < rows.entries(); ++e) {
    if (!columns.empty()) ++columns[rows.columns[e]];
    values.add(static_cast<double>(rows.values[e]));
  }
  Json out = frame(path, "sparse rows", data);
  out["rows"] = rows.rows();
  out["columns"] = rows.column_count;
  out["entries"] = rows.entries();
  out["density"] = ratio(static_cast<double>(rows.entries()), static_cast<double>(rows.rows()) * rows.column_count);
  out["labels"] = labels_json(data.labels, rows.labels);
  out["values"] = values.json();
  out["entries_of_a_row"] = skew_of(std::move(row_counts));
  if (!columns.empty()) out["entries_of_a_column"] = skew_of(std::move(columns));
  close(out, data);
  return out;
}

Json corpus_info(const std::string& path, const InfoOptions& options, DataFormat format) {
  CorpusOptions reading;
  reading.read = options.read;
  reading.format = format;
  reading.vocabulary_path = options.vocabulary_path;
  const CorpusData data = read_corpus(path, reading);
  const Corpus& corpus = data.corpus;
  std::vector<std::uint64_t> lengths(corpus.documents(), 0), words(corpus.word_count, 0);
  for (std::uint64_t d = 0; d < corpus.documents(); ++d) {
    for (std::uint64_t c = corpus.starts[d]; c < corpus.starts[d + 1]; ++c) {
      lengths[d] += corpus.counts[c];
      words[corpus.words[c]] += corpus.counts[c];
    }
  }
  Json out = frame(path, "corpus", data);
  out["documents"] = corpus.documents();
  out["empty_documents"] = std::count(lengths.begin(), lengths.end(), std::uint64_t{0});
  out["words"] = corpus.word_count;
  out["unused_words"] = std::count(words.begin(), words.end(), std::uint64_t{0});
  out["cells"] = corpus.cells();
  out["tokens"] = corpus.tokens;
  out["density"] =
      ratio(static_cast<double>(corpus.cells()), static_cast<double>(corpus.documents()) * corpus.word_count);
  out["tokens_of_a_document"] = skew_of(std::move(lengths));
  out["tokens_of_a_word"] = skew_of(std::move(words));
  close(out, data);
  return out;
}

Json edges_info(const std::string& path, const InfoOptions& options) {
  const EdgeData data = read_edges(path, options.read);
  std::vector<std::uint64_t> out_degrees(data.nodes.size(), 0), in_degrees(data.nodes.size(), 0);
  for (const Edge& edge : data.edges) {
    ++out_degrees[edge.source];
    ++in_degrees[edge.target];
  }
  Json out = frame(path, "graph", data);
  out["nodes"] = data.nodes.size();
  out["edges"] = data.edges.size();
  out["density"] =
      ratio(static_cast<double>(data.edges.size()), static_cast<double>(data.nodes.size()) * data.nodes.size());
  out["self_loops"] = data.self_loops;
  out["repeated_edges"] = count_repeated_edges(data.edges);
  out["nodes_without_out_edges"] = std::count(out_degrees.begin(), out_degrees.end(), std::uint64_t{0});
  out["out_degree"] = skew_of(std::move(out_degrees));
  out["in_degree"] = skew_of(std::move(in_degrees));
  close(out, data);
  return out;
}

Json dense_info(const std::string& path, const InfoOptions& options, DataFormat format) {
  DenseOptions reading;
  reading.read = options.read;
  reading.format = format;
  reading.label = options.label;
  const DenseData data = read_dense(path, reading);
  Moments values;
  std::uint64_t nonzeros = 0;
  for (const double value : data.matrix.values) {
    values.add(value);
    nonzeros += value != 0 ? 1 : 0;
  }
  Json out = frame(path, "dense table", data);
  out["rows"] = data.matrix.rows;
  out["columns"] = data.matrix.columns;
  out["density"] = ratio(static_cast<double>(nonzeros), static_cast<double>(data.matrix.values.size()));
  if (!data.column_names.empty()) out["column_names"] = data.column_names;
  if (!options.label.empty()) out["labels"] = labels_json(data.labels, data.label_values);
  out["values"] = values.json();
  close(out, data);
  return out;
}

std::string plain(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.6g", value.get<double>());
    return digits;
  }
  if (!value.is_object() && !value.is_array()) return json_text(value);
  std::string text;
  for (const auto& [key, part] : value.items()) {
    if (!text.empty()) text += ", ";
    text += value.is_object() ? key + " " + plain(part) : plain(part);
  }
  return text;
}

std::string for_people(const Json& info) {
  std::string text;
  for (const auto& [key, value] : info.items()) {
    if (key == "warnings") {
      for (const auto& warning : value) text += "warning: " + warning.get<std::string>() + "\n";
      continue;
    }
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', ' ');
    text += name + ": " + plain(value) + "\n";
  }
  return text;
}

}  // namespace

DataInfo data_info(const std::string& path, const InfoOptions& options) {
  DataFormat format{};
  if (options.format) {
    format = *options.format;
  } else {
    InputFile file(path);
    if (!file.seekable() && !file.gzip())
      throw usage_error("say the format of " + orrery::quoted(path) + ": a pipe cannot be read twice");
    format = detect_format(file).format;
  }
  refuse_option("--label", options.label, path, format, {DataFormat::csv, DataFormat::npy});
  refuse_option("--vocab", options.vocabulary_path, path, format, {DataFormat::docword, DataFormat::text});
  Json info;
  switch (format) {
    case DataFormat::ratings:
    case DataFormat::matrix_market:
      info = ratings_info(path, options, format);
      break;
    case DataFormat::svmlight:
      info = sparse_info(path, options);
      break;
    case DataFormat::docword:
    case DataFormat::text:
    case DataFormat::packed:
      info = corpus_info(path, options, format);
      break;
    case DataFormat::edges:
      info = edges_info(path, options);
      break;
    case DataFormat::csv:
    case DataFormat::npy:
      info = dense_info(path, options, format);
      break;
  }
  return {json_text(info, 2) + "\n", for_people(info)};
}

}  // namespace orrery
