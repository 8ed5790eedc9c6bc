#include "engine/data/edges.h"

#include <algorithm>

#include "engine/checksum.h"
#include "engine/data/pieces.h"
#include "engine/data/scan.h"
#include "engine/error.h"

namespace orrery {

namespace {

struct WideEdge {
  std::uint64_t source;
  std::uint64_t target;
};

struct EdgePiece : PieceStatus {
  std::vector<WideEdge> edges;
  void clear() { edges.clear(); }
};

class EdgeParser {
 public:
  EdgeParser(TextPiece piece, EdgePiece& out) : out_(out), end_(piece.end), at_(piece.begin) { out.clear(); }

  void run() {
    while (at_ < end_) {
      line_ = at_;
      at_ = skip_blanks(at_);
      if (*at_ == '#') {
        at_ = find_newline(at_);
      } else if (line_end_at(at_) == 0 && !edge()) {
        return;
      }
      const int length = line_end_at(at_);
      out_.crlf_lines += length == 2 ? 1 : 0;
      ++out_.lines;
      at_ += length;
    }
  }

 private:
  bool edge() {
    WideEdge edge{};
    if (!node("a source node (an integer below 2^64)", edge.source)) return false;
    if (!node("a target node (an integer below 2^64)", edge.target)) return false;
    if (line_end_at(at_) == 0) return fail("the end of the line after 2 columns");
    out_.edges.push_back(edge);
    ++out_.data_lines;
    return true;
  }

  bool node(const char* what, std::uint64_t& id) {
    const char* behind = nullptr;
    if (!parse_unsigned(at_, end_, ~std::uint64_t{0}, id, behind)) return fail(what);
    if (!is_blank(*behind) && line_end_at(behind) == 0) return fail(what);
    at_ = skip_blanks(behind);
    return true;
  }

  bool fail(std::string expected) {
    out_.fault = ParseFault{out_.lines, static_cast<std::uint64_t>(at_ - line_) + 1, std::move(expected),
                            std::string{word_at(at_)}};
    return false;
  }

  EdgePiece& out_;
  const char* end_;
  const char* at_;
  const char* line_ = nullptr;
};

std::vector<std::uint64_t> distinct_nodes(const std::vector<WideEdge>& edges) {
  std::vector<std::uint64_t> ids;
  ids.reserve(2 * edges.size());
  for (const WideEdge& edge : edges) {
    ids.push_back(edge.source);
    ids.push_back(edge.target);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

EdgeData read_edges(const std::string& path, const ReadOptions& options) {
  InputFile file(path);
  EdgeData data;
  data.recognised = {.format = DataFormat::edges, .gzip = file.gzip()};
  std::vector<WideEdge> wide;
  const TextSummary summary = parse_pieces<EdgePiece>(
      file, options, {}, [](TextPiece piece, EdgePiece& out) { EdgeParser(piece, out).run(); },
      [&](std::span<EdgePiece> wave, std::uint64_t) {
        for (const EdgePiece& piece : wave) wide.insert(wide.end(), piece.edges.begin(), piece.edges.end());
      });
  if (wide.empty()) {
    throw data_error(path, summary.bytes == 0 ? "expected edges, got an empty file"
                                              : "expected edges, got only comments and blank lines");
  }
  data.warnings = summary.warnings();
  std::vector<std::uint64_t> ids = distinct_nodes(wide);
  if (ids.size() >= IdMap::kUnseen) throw data_error(path, "expected at most 4294967294 different nodes");
  data.nodes = IdMap::from_integers(std::move(ids));
  data.edges.resize(wide.size());
  constexpr std::size_t kPart = std::size_t{1} << 16;
  options.parallel((wide.size() + kPart - 1) / kPart, [&](std::size_t part) {
    for (std::size_t i = part * kPart; i < std::min(wide.size(), (part + 1) * kPart); ++i) {
      data.edges[i] = {data.nodes.find(wide[i].source), data.nodes.find(wide[i].target)};
    }
  });
  for (const Edge& edge : data.edges) data.self_loops += edge.source == edge.target ? 1 : 0;
  data.checksum = checksum(std::as_bytes(std::span{wide}));
  return data;
}

std::uint64_t count_repeated_edges(const std::vector<Edge>& edges) {
  std::vector<std::uint64_t> keys(edges.size());
  std::transform(edges.begin(), edges.end(), keys.begin(),
                 [](const Edge& e) { return static_cast<std::uint64_t>(e.source) << 32 | e.target; });
  std::sort(keys.begin(), keys.end());
  return static_cast<std::uint64_t>(keys.end() - std::unique(keys.begin(), keys.end()));
}

}  // namespace orrery
