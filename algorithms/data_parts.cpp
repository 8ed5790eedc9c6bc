#include "algorithms/data_parts.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/checksum.h"
#include "engine/error.h"
#include "engine/wire.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlace = "%r";

/// A file name around the number.
struct PartName {
  fs::path folder;
  std::string before, behind;

  std::string file(std::uint32_t number) const {
    return (folder / (before + std::to_string(number) + behind)).string();
  }

  /// The number of a file of that name. Spelled with leading zeros it is another name.
  std::optional<std::uint32_t> number_in(std::string_view name) const {
    if (name.size() <= before.size() + behind.size() || !name.starts_with(before) || !name.ends_with(behind)) return {};
    name.remove_prefix(before.size());
    name.remove_suffix(behind.size());
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size() || std::to_string(number) != name) return {};
    return number;
  }
};

PartName part_name(const std::string& path) {
  const fs::path whole(path);
  const std::string name = whole.filename().string();
  const std::size_t at = name.find(kPlace);
  const bool alone = at != std::string::npos && name.find(kPlace, at + 1) == std::string::npos;
  if (!alone || whole.parent_path().string().find(kPlace) != std::string::npos) {
    throw usage_error(path + ": expected %r once, in the name of the file; files are numbered from 0");
  }
  return {whole.parent_path(), name.substr(0, at), name.substr(at + kPlace.size())};
}

std::vector<std::uint32_t> numbers_seen(const PartName& name) {
  std::vector<std::uint32_t> numbers;
  std::error_code error;  // a folder that cannot be looked at has no files; which one is missing is said then
  const fs::path folder = name.folder.empty() ? fs::path(".") : name.folder;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (const auto number = name.number_in(entry->path().filename().string())) numbers.push_back(*number);
  }
  return numbers;
}

void append(SparseRows& rows, const SparseRows& more) {
  const std::uint64_t before = rows.entries();
  rows.labels.insert(rows.labels.end(), more.labels.begin(), more.labels.end());
  for (std::size_t r = 1; r < more.starts.size(); ++r) rows.starts.push_back(before + more.starts[r]);
  rows.columns.insert(rows.columns.end(), more.columns.begin(), more.columns.end());
  rows.values.insert(rows.values.end(), more.values.begin(), more.values.end());
  rows.column_count = std::max(rows.column_count, more.column_count);
}

/// Rows with labels, and one thing to be said of them.
Bytes pack(const SparseRows& rows, bool flag) {
  Bytes bytes;
  put(bytes, rows.rows());
  put(bytes, rows.entries());
  put(bytes, rows.column_count);
  put(bytes, std::uint32_t{flag ? 1U : 0U});
  put_all(bytes, std::span<const double>(rows.labels));
  put_all(bytes, std::span<const std::uint64_t>(rows.starts));
  put_all(bytes, std::span<const std::uint32_t>(rows.columns));
  put_all(bytes, std::span<const float>(rows.values));
  return bytes;
}

/// The rows of this node's files.
SparseData read_here(const std::string& path, const Collective& nodes,
                     const std::function<SparseData(const std::string& file)>& read) {
  SparseData here;
  here.recognised.format = DataFormat::svmlight;
  for (const std::string& file : parts_here(path, nodes)) {
    SparseData part = read(file);
    if (here.rows.rows() == 0) {
      here.rows = std::move(part.rows);
    } else {
      append(here.rows, part.rows);
    }
    here.recognised.gzip = here.recognised.gzip || part.recognised.gzip;
    here.warnings.insert(here.warnings.end(), part.warnings.begin(), part.warnings.end());
  }
  return here;
}

/// The checksum of what came before and `mine`, of the nodes one after the other.
template <class T>
Checksum continued(Checksum sum, std::span<const T> mine, const Collective& nodes) {
  for (NodeId node = 0; node < nodes.nodes(); ++node) {
    Bytes state;
    if (node == nodes.node()) put(state, sum.update(std::as_bytes(mine)));
    sum = WireReader(nodes.to_all(std::move(state))[node]).take<Checksum>();
  }
  return sum;
}

bool unpack(const Bytes& bytes, SparseRows& rows) {
  WireReader in(bytes);
  const auto count = in.take<std::uint64_t>(), entries = in.take<std::uint64_t>();
  rows.column_count = in.take<std::uint32_t>();
  const bool flag = in.take<std::uint32_t>() != 0;
  rows.labels.resize(count);
  rows.starts.resize(count + 1);
  rows.columns.resize(entries);
  rows.values.resize(entries);
  in.take_all(std::span(rows.labels));
  in.take_all(std::span(rows.starts));
  in.take_all(std::span(rows.columns));
  in.take_all(std::span(rows.values));
  return flag;
}

}  // namespace

bool is_in_parts(const std::string& path) { return path.find(kPlace) != std::string::npos; }

bool is_part(const std::string& file, const std::string& path) {
  const auto folder = [](const fs::path& of) {
    std::error_code error;  // what cannot be looked at is compared as it is spelled
    return fs::weakly_canonical(fs::absolute(of), error).parent_path();
  };
  return folder(file) == folder(path) && part_name(path).number_in(fs::path(file).filename().string()).has_value();
}

std::vector<std::string> parts_here(const std::string& path, const Collective& nodes) {
  const PartName name = part_name(path);
  std::vector<std::uint32_t> numbers = nodes.joined(numbers_seen(name));
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.empty()) throw data_error(name.file(0), "cannot read: there is no such file, nor one of another number");
  for (std::uint32_t number = 0; number < numbers.size(); ++number) {
    if (numbers[number] == number) continue;
    throw data_error(name.file(number), "expected a file for each number from 0 to " + std::to_string(numbers.back()) +
                                            ", got none for this one");
  }
  std::vector<std::string> files;
  for (std::uint64_t number = 0; number < numbers.size(); ++number) {
    const std::uint64_t reader = number * nodes.nodes() / numbers.size();
    if (reader == nodes.node()) files.push_back(name.file(static_cast<std::uint32_t>(number)));
  }
  return files;
}

SparseData read_rows_in_parts(const std::string& path, const Collective& nodes,
                              const std::function<SparseData(const std::string& file)>& read) {
  SparseData all = read_here(path, nodes, read);
  const Bytes mine = pack(std::exchange(all.rows, {}), all.recognised.gzip);
  bool any_gzip = false;
  for (const Bytes& bytes : nodes.to_all(mine)) {
    SparseRows rows;
    any_gzip = unpack(bytes, rows) || any_gzip;
    append(all.rows, rows);
  }
  all.recognised.gzip = any_gzip;
  all.labels = recognise_labels(all.rows.labels);
  all.checksum = checksum_of(all.rows);
  return all;
}

SharedRows read_share_of_rows(const std::string& path, const Collective& nodes,
                              const std::function<SparseData(const std::string& file)>& read) {
  SharedRows shared;
  shared.all = read_here(path, nodes, read);
  shared.here = std::exchange(shared.all.rows, {});
  shared.all.rows.labels = nodes.joined(std::exchange(shared.here.labels, {}));
  shared.all.labels = recognise_labels(shared.all.rows.labels);
  std::uint64_t before = 0;
  Bytes mine;
  put(mine, shared.here.entries());
  put(mine, shared.here.column_count);
  put(mine, std::uint32_t{shared.all.recognised.gzip ? 1U : 0U});
  const std::vector<Bytes> said = nodes.to_all(std::move(mine));
  for (NodeId node = 0; node < said.size(); ++node) {
    WireReader in(said[node]);
    if (node == nodes.node()) before = shared.entries;
    shared.entries += in.take<std::uint64_t>();
    shared.all.rows.column_count = std::max(shared.all.rows.column_count, in.take<std::uint32_t>());
    shared.all.recognised.gzip = in.take<std::uint32_t>() != 0 || shared.all.recognised.gzip;
  }
  shared.here.column_count = shared.all.rows.column_count;
  // As checksum_of() has it of rows that stand in one place.
  std::vector<std::uint64_t> starts;
  if (nodes.is_first()) starts.push_back(0);
  for (std::size_t r = 1; r < shared.here.starts.size(); ++r) starts.push_back(before + shared.here.starts[r]);
  Checksum sum;
  sum.update(std::as_bytes(std::span{shared.all.rows.labels}));
  sum = continued(sum, std::span<const std::uint64_t>(starts), nodes);
  sum = continued(sum, std::span<const std::uint32_t>(shared.here.columns), nodes);
  shared.all.checksum = continued(sum, std::span<const float>(shared.here.values), nodes).value();
  return shared;
}

void pass_round(const SparseRows& here, const Collective& nodes,
                const std::function<void(const SparseRows& rows)>& take) {
  // A message is copied for every node.
  const std::uint64_t most_entries = std::max<std::uint64_t>(1, (std::uint64_t{1} << 18) / nodes.nodes());
  constexpr std::uint64_t kMostRows = std::uint64_t{1} << 14;
  const std::uint64_t rows_here = here.starts.size() - 1;
  for (NodeId node = 0; node < nodes.nodes(); ++node) {
    std::uint64_t next = 0;
    for (bool is_last = false; !is_last;) {
      Bytes packed;
      if (node == nodes.node()) {
        SparseRows some;
        const std::uint64_t first = next;
        while (next < rows_here && next - first < kMostRows && some.starts.back() < most_entries) {
          some.starts.push_back(here.starts[++next] - here.starts[first]);
        }
        const auto begin = static_cast<std::ptrdiff_t>(here.starts[first]);
        const auto end = static_cast<std::ptrdiff_t>(here.starts[next]);
        some.columns.assign(here.columns.begin() + begin, here.columns.begin() + end);
        some.values.assign(here.values.begin() + begin, here.values.begin() + end);
        some.labels.assign(some.starts.size() - 1, 0.0);  // how many rows there are
        packed = pack(some, next == rows_here);
      }
      SparseRows rows;
      is_last = unpack(nodes.to_all(std::move(packed))[node], rows);
      rows.labels.clear();
      take(rows);
    }
  }
}

}  // namespace orrery
