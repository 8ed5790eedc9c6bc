#include "engine/data/id_map.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <ostream>
#include <stdexcept>

#include "engine/assert.h"
#include "engine/data/input_file.h"
#include "engine/data/pieces.h"
#include "engine/error.h"

namespace orrery {

bool plain_integer(std::string_view text, std::uint64_t& value) {
  if (text.empty() || (text[0] == '0' && text.size() > 1)) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

IdMap IdMap::from_integers(std::vector<std::uint64_t> ascending) {
  ORRERY_CHECK(ascending.size() < kUnseen);
  IdMap map;
  if (!ascending.empty() && ascending.back() - ascending.front() == ascending.size() - 1) {
    return from_range(ascending.front(), static_cast<std::uint32_t>(ascending.size()));
  }
  map.values_ = std::move(ascending);
  map.build_lookup();
  return map;
}

IdMap IdMap::from_range(std::uint64_t first, std::uint32_t count) {
  IdMap map;
  map.first_ = first;
  map.range_ = count;
  return map;
}

IdMap IdMap::from_texts(TextIds texts) {
  IdMap map;
  map.texts_ = std::move(texts);
  return map;
}

namespace {

// Ids that come one by one in index order, as a map writes them.
class IdList {
 public:
  /// False when the id is empty or came before.
  bool add(std::string_view id) {
    std::uint64_t value = 0;
    ascending_integers_ =
        ascending_integers_ && plain_integer(id, value) && (values_.empty() || values_.back() < value);
    if (ascending_integers_) values_.push_back(value);
    const std::uint32_t before = texts_.size();
    return !id.empty() && texts_.insert(id) == before;
  }

  IdMap take() {
    return ascending_integers_ ? IdMap::from_integers(std::move(values_)) : IdMap::from_texts(std::move(texts_));
  }

 private:
  TextIds texts_;
  std::vector<std::uint64_t> values_;
  bool ascending_integers_ = true;
};

}  // namespace

IdMap IdMap::from_lines(std::span<const std::string> ids) {
  IdList list;
  for (const std::string& id : ids) {
    if (!list.add(id)) throw std::invalid_argument("the id " + orrery::quoted(id) + " is empty or occurs twice");
  }
  return list.take();
}

std::vector<std::string> IdMap::texts() const {
  std::vector<std::string> all;
  all.reserve(size());
  for (std::uint32_t i = 0; i < size(); ++i) all.push_back(text(i));
  return all;
}

std::uint32_t IdMap::size() const {
  if (texts_.size() > 0) return texts_.size();
  return values_.empty() ? range_ : static_cast<std::uint32_t>(values_.size());
}

// A table over the span answers in one access; it is worth its memory while at least one in 8 of its entries is used.
void IdMap::build_lookup() {
  if (values_.empty()) return;
  const std::uint64_t span = values_.back() - values_.front();
  if (span / 8 > values_.size()) return build_hash();
  table_.assign(static_cast<std::size_t>(span) + 1, kUnseen);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    table_[static_cast<std::size_t>(values_[i] - values_.front())] = static_cast<std::uint32_t>(i);
  }
}

void IdMap::build_hash() {
  hash_.assign(std::bit_ceil(2 * values_.size()), kUnseen);
  for (std::size_t i = 0; i < values_.size(); ++i) hash_[hash_slot(values_[i])] = static_cast<std::uint32_t>(i);
}

// Where the rank of an id stands, or the free slot where it would.
std::size_t IdMap::hash_slot(std::uint64_t id) const {
  const std::size_t mask = hash_.size() - 1;
  const std::uint64_t product = id * 0x9E3779B97F4A7C15;
  std::size_t at = (product ^ (product >> 32)) & mask;
  while (hash_[at] != kUnseen && values_[hash_[at]] != id) at = (at + 1) & mask;
  return at;
}

std::string IdMap::text(std::uint32_t index) const {
  ORRERY_CHECK(index < size());
  if (texts_.size() > 0) return std::string{texts_[index]};
  return std::to_string(values_.empty() ? first_ + index : values_[index]);
}

std::uint32_t IdMap::find(std::string_view id) const {
  if (texts_.size() > 0) return texts_.find(id);
  std::uint64_t value = 0;
  return plain_integer(id, value) ? find(value) : kUnseen;
}

std::uint32_t IdMap::find(std::uint64_t id) const {
  if (texts_.size() > 0) return texts_.find(std::to_string(id));
  if (values_.empty()) return id - first_ < range_ ? static_cast<std::uint32_t>(id - first_) : kUnseen;
  if (!table_.empty()) {
    const std::uint64_t offset = id - values_.front();
    return offset < table_.size() ? table_[static_cast<std::size_t>(offset)] : kUnseen;
  }
  return hash_[hash_slot(id)];
}

std::uint64_t IdMap::checksum() const {
  std::uint64_t sum = size();
  for (std::uint32_t i = 0; i < size(); ++i) sum = sum * 0x9E3779B97F4A7C15 + hash_bytes(text(i));
  return sum;
}

void IdMap::save(std::ostream& out) const {
  for (std::uint32_t i = 0; i < size(); ++i) out << text(i) << '\n';
}

namespace {

struct IdPiece : PieceStatus {
  std::vector<std::string> ids;
  void clear() { ids.clear(); }
};

void parse_ids(TextPiece piece, IdPiece& out) {
  out.clear();
  for (const char* p = piece.begin; p < piece.end;) {
    const char* end = std::find(p, piece.end, '\n');
    if (end == p) {
      out.fault = ParseFault{out.lines, 1, "an id", ""};
      return;
    }
    out.ids.emplace_back(p, end);
    ++out.lines;
    p = end + 1;
  }
}

}  // namespace

IdMap IdMap::load(const std::string& path) {
  InputFile file(path);
  IdList list;
  parse_pieces<IdPiece>(file, {}, {}, parse_ids, [&](std::span<IdPiece> wave, std::uint64_t lines) {
    for (const IdPiece& piece : wave) {
      for (const std::string& id : piece.ids) {
        ++lines;
        if (!list.add(id)) throw data_error(path, lines, 1, "an id that did not occur before", id);
      }
    }
  });
  return list.take();
}

}  // namespace orrery
