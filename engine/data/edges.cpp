#include "engine/data/edges.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <iterator>
#include <numeric>

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
  EdgeParser(TextPiece piece, EdgePiece& out) : out_(out), end_(piece.end), at_(piece.begin) {
    out.clear();
    out.edges.reserve(static_cast<std::size_t>(std::count(piece.begin, piece.end, '\n')));  // an edge a line at most
  }

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

/// The edges of a file as its pieces gave them, in the order of the file.
using WideChunks = std::vector<std::vector<WideEdge>>;

/// For graphs whose ids are about as dense as their edges: a bit for each id up to the largest.
std::vector<std::uint64_t> distinct_by_bits(const WideChunks& chunks, std::uint64_t largest,
                                            const ParallelFor& parallel) {
  constexpr std::uint64_t kBits = 64;
  std::vector<std::uint64_t> words(largest / kBits + 1, 0);
  const auto mark = [&](std::uint64_t id) {
    const std::atomic_ref<std::uint64_t> word(words[id / kBits]);
    const std::uint64_t bit = std::uint64_t{1} << id % kBits;
    // relaxed: bits are read when the loop is over. Most are set already, and a read does not take the line away.
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
  };
  parallel(chunks.size(), [&](std::size_t c) {
    for (const WideEdge& edge : chunks[c]) {
      mark(edge.source);
      mark(edge.target);
    }
  });
  std::vector<std::uint64_t> ids;
  for (std::size_t w = 0; w < words.size(); ++w) {
    for (std::uint64_t left = words[w]; left != 0; left &= left - 1) {
      ids.push_back(w * kBits + static_cast<std::uint64_t>(std::countr_zero(left)));
    }
  }
  return ids;
}

/// For ids of any width: sorted in groups, which are then merged in pairs.
std::vector<std::uint64_t> distinct_by_sorting(const WideChunks& chunks, const ParallelFor& parallel) {
  constexpr std::size_t kMostGroups = 256;
  std::vector<std::vector<std::uint64_t>> groups(std::min(chunks.size(), kMostGroups));
  parallel(groups.size(), [&](std::size_t g) {
    std::vector<std::uint64_t>& ids = groups[g];
    for (std::size_t c = g; c < chunks.size(); c += groups.size()) {
      for (const WideEdge& edge : chunks[c]) ids.insert(ids.end(), {edge.source, edge.target});
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  });
  while (groups.size() > 1) {
    std::vector<std::vector<std::uint64_t>> merged((groups.size() + 1) / 2);
    parallel(merged.size(), [&](std::size_t m) {
      if (2 * m + 1 == groups.size()) {
        merged[m] = std::move(groups[2 * m]);
        return;
      }
      std::set_union(groups[2 * m].begin(), groups[2 * m].end(), groups[2 * m + 1].begin(), groups[2 * m + 1].end(),
                     std::back_inserter(merged[m]));
    });
    groups.swap(merged);
  }
  return std::move(groups[0]);
}

/// Ascending.
std::vector<std::uint64_t> distinct_nodes(const WideChunks& chunks, std::uint64_t edges, const ParallelFor& parallel) {
  std::vector<std::uint64_t> largest(chunks.size(), 0);
  parallel(chunks.size(), [&](std::size_t c) {
    for (const WideEdge& edge : chunks[c]) largest[c] = std::max({largest[c], edge.source, edge.target});
  });
  const std::uint64_t all = *std::max_element(largest.begin(), largest.end());
  constexpr std::uint64_t kBitsOfEdge = 64;  // 8 bytes an edge, which is half of what the edges take
  if (all / kBitsOfEdge < edges) return distinct_by_bits(chunks, all, parallel);
  return distinct_by_sorting(chunks, parallel);
}

/// Sets the edges and the number of self-loops. Gives the chunks back as it goes.
void number_edges(WideChunks& chunks, std::uint64_t edges, const ParallelFor& parallel, EdgeData& data) {
  std::vector<std::size_t> first;
  std::size_t next = 0;
  for (const std::vector<WideEdge>& chunk : chunks) {
    first.push_back(next);
    next += chunk.size();
  }
  std::vector<std::uint64_t> self_loops(chunks.size(), 0);
  data.edges.resize(edges);
  parallel(chunks.size(), [&](std::size_t c) {
    Edge* to = data.edges.data() + first[c];
    for (const WideEdge& edge : chunks[c]) {
      *to++ = {data.nodes.find(edge.source), data.nodes.find(edge.target)};
      self_loops[c] += edge.source == edge.target ? 1 : 0;
    }
    chunks[c] = {};
  });
  data.self_loops = std::accumulate(self_loops.begin(), self_loops.end(), std::uint64_t{0});
}

}  // namespace

EdgeData read_edges(const std::string& path, const ReadOptions& options) {
  InputFile file(path);
  EdgeData data;
  data.recognised = {.format = DataFormat::edges, .gzip = file.gzip()};
  WideChunks chunks;
  Checksum sum;
  const TextSummary summary = parse_pieces<EdgePiece>(
      file, options, {}, [](TextPiece piece, EdgePiece& out) { EdgeParser(piece, out).run(); },
      [&](std::span<EdgePiece> wave, std::uint64_t) {
        for (EdgePiece& piece : wave) {
          if (piece.edges.empty()) continue;
          sum.update(std::as_bytes(std::span{piece.edges}));
          chunks.push_back(std::move(piece.edges));
        }
      });
  if (chunks.empty()) {
    throw data_error(path, summary.bytes == 0 ? "expected edges, got an empty file"
                                              : "expected edges, got only comments and blank lines");
  }
  data.warnings = summary.warnings();
  data.checksum = sum.value();
  std::vector<std::uint64_t> ids = distinct_nodes(chunks, summary.data_lines, options.parallel);
  if (ids.size() >= IdMap::kUnseen) throw data_error(path, "expected at most 4294967294 different nodes");
  data.nodes = IdMap::from_integers(std::move(ids));
  number_edges(chunks, summary.data_lines, options.parallel, data);
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
