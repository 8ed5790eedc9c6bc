#include "engine/data/data_writers.h"

#include <cmath>
#include <numeric>

#include "engine/error.h"

namespace orrery {

void refuse_compressed_output(const std::filesystem::path& path) {
  if (path.extension() != ".gz") return;
  throw usage_error("output is not compressed: give " + orrery::quoted(path.string()) +
                    " a name that does not end in .gz");
}

namespace {

// An id that the reader would cut or take for a comment must stand in quotes, and then between commas.
bool plain(const std::string& id) {
  return id.find_first_of(" \t,;\"\r") == std::string::npos && id.find("::") == std::string::npos && id.front() != '#';
}

std::string quoted_id(const std::string& id) {
  std::string out = "\"";
  for (const char c : id) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

bool all_plain(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    if (!plain(id)) return false;
  }
  return true;
}

template <class Use>
void each_rating(const RatingStore& ratings, const Use& use) {
  for (std::size_t c = 0; c < ratings.chunks(); ++c) {
    for (const Rating& r : ratings.chunk(c)) use(r);
  }
}

}  // namespace

void put_ratings(TextWriter& out, const RatingsData& data) {
  std::vector<std::string> users = data.users.texts(), items = data.items.texts();
  const bool quotes = !all_plain(users) || !all_plain(items);
  if (quotes) {
    for (std::string& id : users) id = quoted_id(id);
    for (std::string& id : items) id = quoted_id(id);
  }
  const char mark = quotes ? ',' : ' ';
  each_rating(data.ratings, [&](const Rating& r) {
    out << std::string_view{users[r.user]} << mark << std::string_view{items[r.item]};
    if (!std::isnan(r.value)) out << mark << r.value;
    out << '\n';
  });
}

void put_matrix_market(TextWriter& out, const RatingsData& data, bool ids) {
  const auto index = [&](const IdMap& map, std::uint32_t i) -> std::uint64_t {
    return ids ? std::stoull(map.text(i)) : std::uint64_t{i} + 1;
  };
  out << "%%MatrixMarket matrix coordinate real general\n";
  out << index(data.users, data.users.size() - 1) << ' ' << index(data.items, data.items.size() - 1) << ' '
      << data.ratings.size() << '\n';
  std::vector<std::uint64_t> rows, columns;
  for (std::uint32_t i = 0; i < data.users.size(); ++i) rows.push_back(index(data.users, i));
  for (std::uint32_t i = 0; i < data.items.size(); ++i) columns.push_back(index(data.items, i));
  each_rating(data.ratings,
              [&](const Rating& r) { out << rows[r.user] << ' ' << columns[r.item] << ' ' << r.value << '\n'; });
}

void put_matrix_market(TextWriter& out, const EdgeData& data) {
  out << "%%MatrixMarket matrix coordinate pattern general\n";
  out << data.nodes.size() << ' ' << data.nodes.size() << ' ' << data.edges.size() << '\n';
  for (const Edge& edge : data.edges) out << edge.source + 1 << ' ' << edge.target + 1 << '\n';
}

void put_svmlight(TextWriter& out, const SparseRows& rows) {
  for (std::uint64_t r = 0; r < rows.rows(); ++r) {
    out << rows.labels[r];
    for (std::uint64_t e = rows.starts[r]; e < rows.starts[r + 1]; ++e) {
      out << ' ' << std::uint64_t{rows.columns[e]} + 1 << ':' << rows.values[e];
    }
    out << '\n';
  }
}

void put_svmlight(TextWriter& out, const Corpus& corpus) {
  for (std::uint64_t d = 0; d < corpus.documents(); ++d) {
    out << '0';
    for (std::uint64_t c = corpus.starts[d]; c < corpus.starts[d + 1]; ++c) {
      out << ' ' << std::uint64_t{corpus.words[c]} + 1 << ':' << corpus.counts[c];
    }
    out << '\n';
  }
}

void put_docword(TextWriter& out, const Corpus& corpus, std::span<const std::uint64_t> documents) {
  std::uint64_t cells = 0;
  for (const std::uint64_t d : documents) cells += corpus.starts[d + 1] - corpus.starts[d];
  out << documents.size() << '\n' << corpus.word_count << '\n' << cells << '\n';
  for (std::size_t i = 0; i < documents.size(); ++i) {
    for (std::uint64_t c = corpus.starts[documents[i]]; c < corpus.starts[documents[i] + 1]; ++c) {
      out << i + 1 << ' ' << std::uint64_t{corpus.words[c]} + 1 << ' ' << corpus.counts[c] << '\n';
    }
  }
}

void put_csv(TextWriter& out, const DenseMatrix& matrix, std::span<const std::string> names) {
  if (names.size() == matrix.columns) {
    for (std::size_t c = 0; c < names.size(); ++c) out << (c > 0 ? "," : "") << std::string_view{names[c]};
    out << '\n';
  }
  for (std::size_t i = 0; i < matrix.values.size(); ++i) {
    out << matrix.values[i] << ((i + 1) % matrix.columns == 0 ? '\n' : ',');
  }
}

std::vector<std::uint64_t> all_documents(const Corpus& corpus) {
  std::vector<std::uint64_t> documents(corpus.documents());
  std::iota(documents.begin(), documents.end(), std::uint64_t{0});
  return documents;
}

}  // namespace orrery
