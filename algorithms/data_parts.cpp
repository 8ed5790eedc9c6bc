#include "algorithms/data_parts.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

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

Bytes pack(const SparseRows& rows, bool gzip) {
  Bytes bytes;
  put(bytes, rows.rows());
  put(bytes, rows.entries());
  put(bytes, rows.column_count);
  put(bytes, std::uint32_t{gzip ? 1U : 0U});
  put_all(bytes, std::span<const double>(rows.labels));
  put_all(bytes, std::span<const std::uint64_t>(rows.starts));
  put_all(bytes, std::span<const std::uint32_t>(rows.columns));
  put_all(bytes, std::span<const float>(rows.values));
  return bytes;
}

bool unpack(const Bytes& bytes, SparseRows& rows) {
  WireReader in(bytes);
  const auto count = in.take<std::uint64_t>(), entries = in.take<std::uint64_t>();
  rows.column_count = in.take<std::uint32_t>();
  const bool gzip = in.take<std::uint32_t>() != 0;
  rows.labels.resize(count);
  rows.starts.resize(count + 1);
  rows.columns.resize(entries);
  rows.values.resize(entries);
  in.take_all(std::span(rows.labels));
  in.take_all(std::span(rows.starts));
  in.take_all(std::span(rows.columns));
  in.take_all(std::span(rows.values));
  return gzip;
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
  SparseData all;
  all.recognised.format = DataFormat::svmlight;
  SparseRows here;
  for (const std::string& file : parts_here(path, nodes)) {
    SparseData part = read(file);
    append(here, part.rows);
    all.recognised.gzip = all.recognised.gzip || part.recognised.gzip;
    all.warnings.insert(all.warnings.end(), part.warnings.begin(), part.warnings.end());
  }
  bool any_gzip = false;
  for (const Bytes& bytes : nodes.to_all(pack(here, all.recognised.gzip))) {
    SparseRows rows;
    any_gzip = unpack(bytes, rows) || any_gzip;
    append(all.rows, rows);
  }
  all.recognised.gzip = any_gzip;
  all.labels = recognise_labels(all.rows.labels);
  all.checksum = checksum_of(all.rows);
  return all;
}

}  // namespace orrery
