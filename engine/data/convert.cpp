#include "engine/data/convert.h"

#include <algorithm>

#include "engine/data/data_writers.h"
#include "engine/data/input_file.h"
#include "engine/error.h"
#include "engine/npy.h"

namespace orrery {

namespace {

std::vector<DataFormat> targets(DataFormat from) {
  switch (from) {
    case DataFormat::ratings:
    case DataFormat::matrix_market:
      return {DataFormat::ratings, DataFormat::matrix_market};
    case DataFormat::csv:
    case DataFormat::npy:
      return {DataFormat::csv, DataFormat::npy, DataFormat::svmlight};
    case DataFormat::svmlight:
      return {DataFormat::svmlight, DataFormat::csv, DataFormat::npy, DataFormat::docword};
    case DataFormat::docword:
    case DataFormat::text:
    case DataFormat::packed:
      return {DataFormat::docword, DataFormat::svmlight};
    case DataFormat::edges:
      return {DataFormat::matrix_market};
  }
  return {};
}

class Converter {
 public:
  Converter(const std::string& input, const std::filesystem::path& output, const ConvertOptions& options,
            DataFormat from)
      : input_(input), output_(output), options_(options), from_(from) {}

  ConvertResult run() {
    switch (from_) {
      case DataFormat::ratings:
      case DataFormat::matrix_market:
        ratings();
        break;
      case DataFormat::csv:
      case DataFormat::npy:
        dense();
        break;
      case DataFormat::svmlight:
        options_.to == DataFormat::docword ? corpus() : sparse();
        break;
      case DataFormat::docword:
      case DataFormat::text:
      case DataFormat::packed:
        corpus();
        break;
      case DataFormat::edges:
        edges();
        break;
    }
    return std::move(result_);
  }

 private:
  template <class Data>
  void note(const Data& data, std::uint64_t items) {
    result_.from = data.recognised;
    result_.items = items;
    result_.warnings = data.warnings;
  }

  void lines_beside(const char* suffix, const std::vector<std::string>& lines) {
    std::filesystem::path path = output_;
    path += suffix;
    TextWriter out(path);
    for (const std::string& line : lines) out << std::string_view{line} << '\n';
    out.commit();
    result_.also_files.push_back(path);
  }

  template <class Put>
  void text(const Put& put) {
    TextWriter out(output_);
    put(out);
    out.commit();
  }

  void ratings() {
    RatingsOptions reading;
    reading.read = options_.read;
    reading.format = from_;
    reading.pairs = true;
    const RatingsData data = read_ratings(input_, reading);
    note(data, data.ratings.size());
    if (options_.to == DataFormat::ratings) return text([&](TextWriter& out) { put_ratings(out, data); });
    if (data.values < data.ratings.size()) {
      throw data_error(input_, "expected a rating in every line, got " +
                                   std::to_string(data.ratings.size() - data.values) + " lines without one");
    }
    const auto indices = [](const IdMap& ids) {
      return ids.integers() && ids.find(std::uint64_t{0}) == IdMap::kUnseen &&
             std::stoull(ids.text(ids.size() - 1)) < IdMap::kUnseen;
    };
    const bool ids = indices(data.users) && indices(data.items);
    text([&](TextWriter& out) { put_matrix_market(out, data, ids); });
    if (ids) return;
    lines_beside(".users", data.users.texts());
    lines_beside(".items", data.items.texts());
  }

  void dense() {
    DenseOptions reading;
    reading.read = options_.read;
    reading.format = from_;
    if (options_.to == DataFormat::svmlight) reading.label = options_.label;
    const DenseData data = read_dense(input_, reading);
    note(data, data.matrix.rows);
    if (options_.to == DataFormat::svmlight) {
      text([&](TextWriter& out) { put_svmlight(out, sparse_of(data)); });
    } else if (options_.to == DataFormat::npy) {
      write_npy<double>(output_, data.matrix.values, {data.matrix.rows, data.matrix.columns});
    } else {
      text([&](TextWriter& out) { put_csv(out, data.matrix, data.column_names); });
    }
  }

  static SparseRows sparse_of(const DenseData& data) {
    SparseRows rows;
    rows.labels = data.label_values;
    rows.labels.resize(static_cast<std::size_t>(data.matrix.rows), 0.0);
    for (std::uint64_t r = 0; r < data.matrix.rows; ++r) {
      const auto values = data.matrix.row(r);
      for (std::size_t c = 0; c < values.size(); ++c) {
        if (values[c] == 0) continue;
        rows.columns.push_back(static_cast<std::uint32_t>(c));
        rows.values.push_back(static_cast<float>(values[c]));
      }
      rows.starts.push_back(rows.columns.size());
    }
    return rows;
  }

  void sparse() {
    SparseOptions reading;
    reading.read = options_.read;
    const SparseData data = read_svmlight(input_, reading);
    note(data, data.rows.rows());
    if (options_.to == DataFormat::svmlight) return text([&](TextWriter& out) { put_svmlight(out, data.rows); });
    const DenseMatrix matrix = dense_of(data.rows);
    if (options_.to == DataFormat::npy) {
      write_npy<double>(output_, matrix.values, {matrix.rows, matrix.columns});
    } else {
      text([&](TextWriter& out) { put_csv(out, matrix, {}); });
    }
  }

  static DenseMatrix dense_of(const SparseRows& rows) {
    constexpr double kMostBlowUp = 100, kAlwaysFine = 1 << 20;
    DenseMatrix matrix{.rows = rows.rows(), .columns = std::uint64_t{rows.column_count} + 1, .values = {}};
    const double cells = static_cast<double>(matrix.rows) * static_cast<double>(matrix.columns);
    if (cells > kMostBlowUp * static_cast<double>(rows.entries()) + kAlwaysFine) {
      throw usage_error("a dense table of " + std::to_string(matrix.rows) + " x " + std::to_string(matrix.columns) +
                        " would hold more than 100 times the " + std::to_string(rows.entries()) + " entries");
    }
    matrix.values.assign(static_cast<std::size_t>(matrix.rows * matrix.columns), 0.0);
    for (std::uint64_t r = 0; r < rows.rows(); ++r) {
      double* row = matrix.values.data() + r * matrix.columns;
      for (std::uint64_t e = rows.starts[r]; e < rows.starts[r + 1]; ++e) {
        row[rows.columns[e]] = static_cast<double>(rows.values[e]);
      }
      row[matrix.columns - 1] = rows.labels[r];
    }
    return matrix;
  }

  void corpus() {
    CorpusOptions reading;
    reading.read = options_.read;
    reading.format = from_;
    reading.vocabulary_path = options_.vocabulary_path;
    const CorpusData data = read_corpus(input_, reading);
    note(data, data.corpus.documents());
    text([&](TextWriter& out) {
      options_.to == DataFormat::docword ? put_docword(out, data.corpus, all_documents(data.corpus))
                                         : put_svmlight(out, data.corpus);
    });
    if (data.named) lines_beside(".vocab", data.corpus.vocabulary);
  }

  void edges() {
    const EdgeData data = read_edges(input_, options_.read);
    note(data, data.edges.size());
    text([&](TextWriter& out) { put_matrix_market(out, data); });
    lines_beside(".nodes", data.nodes.texts());
  }

  const std::string& input_;
  const std::filesystem::path& output_;
  const ConvertOptions& options_;
  DataFormat from_;
  ConvertResult result_;
};

}  // namespace

std::string convert_targets(DataFormat from) {
  std::string names;
  for (const DataFormat to : targets(from)) names += (names.empty() ? "" : ", ") + std::string{format_name(to)};
  return names;
}

namespace {

// `1,2,3` may be ratings or a table: what can become the target comes first.
DataFormat source_format(const std::string& input, DataFormat to) {
  InputFile file(input);
  if (!file.seekable() && !file.gzip()) {
    throw usage_error("say the format of " + orrery::quoted(input) + ": a pipe cannot be read twice");
  }
  std::vector<DataFormat> likely;
  for (const DataFormat from : {DataFormat::npy, DataFormat::packed, DataFormat::matrix_market, DataFormat::docword,
                                DataFormat::svmlight, DataFormat::edges, DataFormat::ratings, DataFormat::csv}) {
    const auto possible = targets(from);
    if (std::find(possible.begin(), possible.end(), to) != possible.end()) likely.push_back(from);
  }
  try {
    if (!likely.empty()) return detect_format(file, likely).format;
  } catch (const Error&) {  // none of them: then say what it is, and that it cannot be converted
  }
  return detect_format(file).format;
}

}  // namespace

ConvertResult convert_data(const std::string& input, const std::filesystem::path& output,
                           const ConvertOptions& options) {
  refuse_compressed_output(output);
  const DataFormat from = options.from ? *options.from : source_format(input, options.to);
  const auto possible = targets(from);
  if (std::find(possible.begin(), possible.end(), options.to) == possible.end()) {
    throw usage_error(std::string{format_name(from)} + " cannot be converted to " +
                      std::string{format_name(options.to)} + "; possible are " + convert_targets(from));
  }
  refuse_option("--label", options.label, input, from, {DataFormat::csv, DataFormat::npy});
  if (!options.label.empty() && options.to != DataFormat::svmlight) {
    throw usage_error("--label: expected --to svmlight, got --to " + std::string{format_name(options.to)} +
                      ": the other formats keep every column");
  }
  std::vector<DataFormat> corpora{DataFormat::docword, DataFormat::text};
  if (options.to == DataFormat::docword) corpora.push_back(DataFormat::svmlight);
  refuse_option("--vocab", options.vocabulary_path, input, from, corpora);
  return Converter(input, output, options, from).run();
}

}  // namespace orrery
