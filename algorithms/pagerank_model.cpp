#include "algorithms/pagerank_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "engine/data/input_file.h"
#include "engine/engine.h"
#include "engine/error.h"

namespace orrery::pagerank {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

std::string read_whole(const std::string& path) {
  InputFile file(path);
  std::string text;
  std::array<char, 1 << 16> piece;
  while (const std::size_t bytes = file.read(piece)) text.append(piece.data(), bytes);
  return text;
}

std::string exact_text(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace

void write_pagerank_model(ModelWriter& writer, const std::vector<double>& ranks, const IdMap& nodes,
                          const PageRankParams& params) {
  writer.add_array<double>("rank", ranks);
  writer.add_text("nodes", nodes.texts());
  writer.add_array<double>("constants",
                           std::array{params.damping, params.dangling == Dangling::redistribute ? 1.0 : 0.0});
}

EdgeData read_graph(const std::string& path, const std::string& format, Engine& engine) {
  if (!format.empty() && parse_format(format) != DataFormat::edges) {
    throw usage_error("--format: pagerank reads edges, not " + format);
  }
  ReadOptions options;
  options.parallel = engine.parallel_for_function();
  EdgeData data = read_edges(path, options);
  for (const std::string& warning : data.warnings) engine.warn(warning);
  return data;
}

PageRankModel::PageRankModel(const ModelReader& reader)
    : ranks_(reader.read<double>("rank")), nodes_(IdMap::from_lines(reader.read_text("nodes"))) {
  const auto constants = reader.read<double>("constants");
  if (constants.size() != 2 || ranks_.size() != nodes_.size()) {
    throw data_error(reader.path().string(), "ranks, nodes and constants do not fit together");
  }
  damping_ = constants[0];
  dangling_ = constants[1] != 0 ? Dangling::redistribute : Dangling::drop;
}

void PageRankModel::predict(const std::string& data, const std::string& format, Engine&, std::ostream& out) const {
  if (!format.empty()) throw usage_error("--format: predict reads the ids of nodes here, which have no format");
  const std::string text = read_whole(data);
  std::uint64_t line = 1;
  std::size_t line_begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (kWhiteSpace.find(text[at]) != std::string_view::npos) {
      if (text[at++] == '\n') {
        ++line;
        line_begin = at;
      }
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(kWhiteSpace, at), text.size());
    const std::string_view id = std::string_view{text}.substr(at, end - at);
    const std::uint32_t node = nodes_.find(id);
    if (node == IdMap::kUnseen) throw data_error(data, line, at - line_begin + 1, "a node of the model", id);
    out << exact_text(ranks_[node]) << '\n';
    at = end;
  }
}

Residual PageRankModel::measure(const EdgeData& data, Engine& engine) const {
  constexpr WorkerId kParts = 64;  // fixed, so that the sums are the same on any machine
  const WorkerMap map(kParts, 1, 0, engine.domains());
  const Graph graph(data.edges, data.nodes.size(), map, engine.topology(), engine.parallel_for_function());
  std::vector<double> ranks(graph.nodes(), 0);
  std::uint64_t unseen = 0;
  for (std::uint32_t v = 0; v < graph.nodes(); ++v) {
    const std::uint32_t node = nodes_.find(data.nodes.text(graph.external(v)));
    if (node == IdMap::kUnseen) {
      ++unseen;
    } else {
      ranks[v] = ranks_[node];
    }
  }
  if (unseen > 0) engine.warn(std::to_string(unseen) + " nodes are not in the model: their rank counts as 0");
  return residual(graph, ranks, damping_, dangling_, engine.parallel_for_function());
}

ValueList PageRankModel::evaluate(const std::string& data, const std::string& format, Engine& engine) const {
  const EdgeData read = read_graph(data, format, engine);
  const Residual found = measure(read, engine);
  return {{"residual", found.l1},
          {"mass", found.mass},
          {"dangling_mass", found.dangling},
          {"nodes", static_cast<std::int64_t>(read.nodes.size())},
          {"edges", static_cast<std::int64_t>(read.edges.size())}};
}

std::vector<Check> PageRankModel::verify(const Run& run, Engine& engine) const {
  std::vector<Check> checks;
  const bool positive = std::all_of(ranks_.begin(), ranks_.end(), [](double x) { return std::isfinite(x) && x >= 0; });
  checks.push_back({"ranks are finite and not negative", positive, std::to_string(ranks_.size()) + " nodes"});
  const EdgeData data = read_graph(run.data, run.format, engine);
  const bool same = data.checksum == run.data_checksum && data.nodes.size() == nodes_.size();
  checks.push_back({"training data still is what the model was trained on", same, run.data});
  if (!same) return checks;
  const Residual found = measure(data, engine);
  constexpr double kRounding = 1e-12;  // of sums of doubles that are 1 together
  if (run.value) {
    checks.push_back({"residual of the equations is the one of run.json", std::abs(found.l1 - *run.value) <= kRounding,
                      "expected " + exact_text(*run.value) + ", found " + exact_text(found.l1)});
  }
  // Summing the equations over all nodes: what is lost on dangling nodes is missing, but for the residual.
  const double lost = dangling_ == Dangling::drop ? damping_ * found.dangling / (1 - damping_) : 0;
  const double off = std::abs(found.mass + lost - 1);
  checks.push_back({dangling_ == Dangling::drop ? "mass and what dangling nodes lost are 1" : "mass is 1",
                    off <= found.l1 / (1 - damping_) + kRounding, "off by " + exact_text(off)});
  return checks;
}

}  // namespace orrery::pagerank
