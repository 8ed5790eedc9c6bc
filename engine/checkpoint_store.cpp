#include "engine/checkpoint_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <functional>
#include <span>
#include <system_error>
#include <type_traits>

#include "engine/atomic_file.h"
#include "engine/checksum.h"
#include "engine/error.h"

namespace orrery {

namespace fs = std::filesystem;

namespace {

// The file: Head | fingerprint text | table | the bytes of the sections in the order of the table. Little endian.
struct Head {
  std::array<char, 8> magic{'O', 'R', 'R', 'Y', 'C', 'K', 'P', 'T'};
  std::uint32_t version = 1;
  std::uint32_t sections = 0;
  std::int64_t clock = 0;
  std::uint64_t fingerprint_bytes = 0;
  std::uint64_t table_bytes = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t checksum = 0;  // of the fields above, the fingerprint and the table
};
static_assert(sizeof(Head) == 56 && std::is_trivially_copyable_v<Head>);

constexpr std::string_view kPrefix = "clock-";
constexpr std::string_view kSuffix = ".ckpt";
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

struct TableRow {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};

std::uint64_t head_checksum(const Head& head, std::string_view fingerprint, std::string_view table) {
  const auto fields = std::as_bytes(std::span{&head, 1}).first(offsetof(Head, checksum));
  return Checksum{}.update(fields).update(fingerprint).update(table).value();
}

std::string to_text(const Fingerprint& fingerprint) {
  std::string text;
  for (const auto& [key, value] : fingerprint.items()) text += key + "\t" + value + "\n";
  return text;
}

Fingerprint fingerprint_from(std::string_view text) {
  Fingerprint fingerprint;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t tab = line.find('\t');
    if (end == std::string_view::npos || tab == std::string_view::npos || line.find('\t', tab + 1) != line.npos) break;
    fingerprint.add(std::string{line.substr(0, tab)}, std::string{line.substr(tab + 1)});
    text.remove_prefix(end + 1);
  }
  return fingerprint;
}

/// A row is a line "NAME BYTES CHECKSUM".
std::string table_text(const std::vector<StateSection>& sections) {
  std::string text;
  for (const StateSection& section : sections) {
    if (section.name.empty() || section.name.find_first_of(" \n") != std::string::npos) {
      throw Error(ErrorKind::internal, "checkpoint: unusable section name " + orrery::quoted(section.name));
    }
    Checksum sum;
    section.read([&](std::span<const std::byte> bytes) { sum.update(bytes); });
    text += section.name + " " + std::to_string(section.size()) + " " + checksum_text(sum.value()) + "\n";
  }
  return text;
}

/// Nothing when the text is no table; only a writer of another build could do that, as the table has a checksum.
std::optional<std::vector<TableRow>> table_from(std::string_view text) {
  std::vector<TableRow> rows;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const std::size_t first = line.find(' ');
    const std::size_t second = line.rfind(' ');
    if (first == std::string_view::npos || first >= second) return std::nullopt;
    TableRow row{.name = std::string{line.substr(0, first)}};
    const std::string_view size = line.substr(first + 1, second - first - 1);
    const auto parsed = std::from_chars(size.data(), size.data() + size.size(), row.bytes);
    const std::optional<std::uint64_t> sum = parse_checksum(line.substr(second + 1));
    if (parsed.ec != std::errc{} || parsed.ptr != size.data() + size.size() || !sum) return std::nullopt;
    row.checksum = *sum;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Reads a checkpoint file front to back; every size is checked against the size of the file before memory is asked
/// for.
class FileReader {
 public:
  explicit FileReader(const fs::path& path) : path_(path), file_(path, std::ios::binary) {
    std::error_code error;
    left_ = fs::file_size(path, error);
    if (error || !file_) throw fault("cannot be read" + (error ? ": " + error.message() : std::string{}));
  }
  Error fault(const std::string& what) const { return data_error(path_.string(), what); }
  std::uint64_t left() const { return left_; }
  void read(void* to, std::uint64_t size) {
    if (size > left_) throw fault("is truncated");
    if (!file_.read(static_cast<char*>(to), static_cast<std::streamsize>(size)))
      throw fault("cannot be read as a whole");
    left_ -= size;
  }
  /// Where the next byte lies in the file.
  std::uint64_t place() { return static_cast<std::uint64_t>(file_.tellg()); }
  const fs::path& path() const { return path_; }
  std::string read_text(std::uint64_t size) {
    if (size > left_) throw fault("is truncated");
    std::string text(static_cast<std::size_t>(size), '\0');
    read(text.data(), size);
    return text;
  }

 private:
  fs::path path_;
  std::ifstream file_;
  std::uint64_t left_ = 0;
};

Head read_head(FileReader& reader) {
  Head head;
  const Head expected;
  if (reader.left() < sizeof head) throw reader.fault("is truncated: too short for a checkpoint");
  reader.read(&head, sizeof head);
  if (head.magic != expected.magic) throw reader.fault("is not a checkpoint");
  if (head.version != expected.version) {
    throw reader.fault("expected format version " + std::to_string(expected.version) + ", got " +
                       std::to_string(head.version));
  }
  std::uint64_t total = 0;
  const bool overflow = __builtin_add_overflow(head.fingerprint_bytes, head.table_bytes, &total) ||
                        __builtin_add_overflow(total, head.payload_bytes, &total);
  if (overflow || total != reader.left()) {
    throw reader.fault((!overflow && total > reader.left() ? "is truncated: expected " : "is corrupted: expected ") +
                       (overflow ? "less than 2^64" : std::to_string(total)) + " bytes after its head, got " +
                       std::to_string(reader.left()));
  }
  return head;
}

/// Gives the `size` bytes at `place` in pieces.
ByteSource part_of_file(const fs::path& path, std::uint64_t place, std::uint64_t size) {
  return [=](const ByteSink& sink) {
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(place));
    Bytes piece(kPieceBytes);
    for (std::uint64_t left = size; left > 0;) {
      const auto next = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size()));
      if (!file.read(reinterpret_cast<char*>(piece.data()), static_cast<std::streamsize>(next))) {
        throw data_error(path.string(), "cannot be read as a whole");
      }
      sink(std::span(piece).first(next));
      left -= next;
    }
  };
}

/// Reads on to the end of a section that stays on disk; returns its checksum.
std::uint64_t leave_on_disk(FileReader& reader, const TableRow& row, StateSection& section) {
  section.source_bytes = row.bytes;
  section.source = part_of_file(reader.path(), reader.place(), row.bytes);
  Bytes piece(kPieceBytes);
  Checksum sum;
  for (std::uint64_t left = row.bytes; left > 0;) {
    const auto next = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size()));
    reader.read(piece.data(), next);
    sum.update(std::span(piece).first(next));
    left -= next;
  }
  return sum.value();
}

std::vector<StateSection> read_sections(FileReader& reader, const std::vector<TableRow>& rows,
                                        const std::vector<std::string>& on_disk) {
  std::vector<StateSection> sections;
  for (const TableRow& row : rows) {
    if (row.bytes > reader.left()) throw reader.fault("is truncated in section '" + row.name + "'");
    StateSection section{row.name, {}};
    std::uint64_t got = 0;
    if (std::find(on_disk.begin(), on_disk.end(), row.name) != on_disk.end()) {
      got = leave_on_disk(reader, row, section);
    } else {
      section.bytes.resize(static_cast<std::size_t>(row.bytes));
      reader.read(section.bytes.data(), row.bytes);
      got = checksum(section.bytes);
    }
    if (got != row.checksum) {
      throw reader.fault("is corrupted in section '" + row.name + "': expected checksum " +
                         checksum_text(row.checksum) + ", got " + checksum_text(got));
    }
    sections.push_back(std::move(section));
  }
  return sections;
}

}  // namespace

Fingerprint& Fingerprint::add(std::string key, std::string value) {
  if ((key + value).find_first_of("\t\n") != std::string::npos) {
    throw Error(ErrorKind::internal, "fingerprint: tab or line feed in " + orrery::quoted(key));
  }
  items_.emplace_back(std::move(key), std::move(value));
  return *this;
}

std::string Fingerprint::differences(const Fingerprint& there) const {
  std::string text;
  const auto value_in = [](const Fingerprint& from, const std::string& key) {
    for (const auto& [name, value] : from.items_) {
      if (name == key) return value;
    }
    return std::string{"none"};
  };
  const auto note = [&](const std::string& key) {
    if (!text.empty()) text += "; ";
    text += key + ": " + value_in(there, key) + " there, " + value_in(*this, key) + " here";
  };
  for (const auto& [key, value] : items_) {
    if (value_in(there, key) != value) note(key);
  }
  for (const auto& [key, value] : there.items_) {
    const bool known =
        std::any_of(items_.begin(), items_.end(), [&name = key](const auto& item) { return item.first == name; });
    if (!known) note(key);
  }
  return text;
}

const Bytes& Checkpoint::section(std::string_view name) const {
  for (const StateSection& candidate : sections) {
    if (candidate.name == name) return candidate.bytes;
  }
  throw data_error("checkpoint of clock " + std::to_string(clock), "has no section '" + std::string{name} + "'");
}

CheckpointStore::CheckpointStore(fs::path directory, Fingerprint fingerprint, std::size_t keep)
    : directory_(std::move(directory)), fingerprint_(std::move(fingerprint)), keep_(std::max<std::size_t>(keep, 1)) {}

CheckpointStore::~CheckpointStore() {
  if (writer_.joinable()) writer_.join();
}

fs::path CheckpointStore::file_of(Clock clock) const {
  return directory_ / (std::string{kPrefix} + std::to_string(clock) + std::string{kSuffix});
}

std::vector<Clock> CheckpointStore::clocks() const {
  std::vector<Clock> found;
  std::error_code error;
  fs::directory_iterator entries(directory_, error);
  if (error == std::errc::no_such_file_or_directory) return found;
  if (error) throw data_error(directory_.string(), "cannot be read: " + error.message());
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const char* const begin = name.data() + kPrefix.size();
    const char* const end = name.data() + name.size() - kSuffix.size();
    Clock clock = 0;
    const auto parsed = std::from_chars(begin, end, clock);
    if (parsed.ec == std::errc{} && parsed.ptr == end && file_of(clock).filename() == name) found.push_back(clock);
  }
  std::sort(found.begin(), found.end(), std::greater<>{});
  return found;
}

void CheckpointStore::write_file(const Checkpoint& checkpoint) const {
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) throw output_error(directory_.string(), error.value());
  remove_orphans(directory_);
  write_checkpoint(file_of(checkpoint.clock), fingerprint_, checkpoint);
  prune(checkpoint.clock);
}

void CheckpointStore::prune(Clock newest) const {
  std::size_t kept = 0;
  for (const Clock clock : clocks()) {
    if (clock <= newest && kept++ < keep_) continue;
    std::error_code error;
    fs::remove(file_of(clock), error);
    if (error) throw output_error(file_of(clock).string(), error.value());
  }
}

void CheckpointStore::write(const Checkpoint& checkpoint) {
  wait();
  write_file(checkpoint);
}

void CheckpointStore::write_behind(Checkpoint checkpoint) {
  const bool on_disk = std::any_of(checkpoint.sections.begin(), checkpoint.sections.end(),
                                   [](const StateSection& section) { return static_cast<bool>(section.source); });
  if (on_disk) return write(checkpoint);
  wait();
  writer_ = std::thread([this, checkpoint = std::move(checkpoint)] {
    try {
      write_file(checkpoint);
    } catch (...) {  // carried over to wait(), which throws it
      failure_ = std::current_exception();
    }
  });
}

void CheckpointStore::wait() {
  if (writer_.joinable()) writer_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

CheckpointStore::Found CheckpointStore::newest_valid(const std::vector<std::string>& on_disk) const {
  Found found;
  for (const Clock clock : clocks()) {
    try {
      Checkpoint checkpoint = read_checkpoint(file_of(clock), fingerprint_, on_disk);
      if (checkpoint.clock != clock)
        throw data_error(file_of(clock).string(), "holds another clock than its name says");
      found.checkpoint = std::move(checkpoint);
      return found;
    } catch (const Error& reason) {
      if (reason.kind() != ErrorKind::data) throw;
      found.refused.emplace_back(reason.what());
    }
  }
  return found;
}

void write_checkpoint(const fs::path& path, const Fingerprint& fingerprint, const Checkpoint& checkpoint) {
  const std::string fingerprint_text = to_text(fingerprint);
  const std::string table = table_text(checkpoint.sections);
  Head head;
  head.sections = static_cast<std::uint32_t>(checkpoint.sections.size());
  head.clock = checkpoint.clock;
  head.fingerprint_bytes = fingerprint_text.size();
  head.table_bytes = table.size();
  for (const StateSection& section : checkpoint.sections) head.payload_bytes += section.size();
  head.checksum = head_checksum(head, fingerprint_text, table);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span{&head, 1}));
  file.write(fingerprint_text);
  file.write(table);
  for (const StateSection& section : checkpoint.sections) {
    section.read([&](std::span<const std::byte> bytes) { file.write(bytes); });
  }
  file.commit();
}

Checkpoint read_checkpoint(const fs::path& file, const Fingerprint& fingerprint,
                           const std::vector<std::string>& on_disk) {
  FileReader reader(file);
  const Head head = read_head(reader);
  const std::string fingerprint_text = reader.read_text(head.fingerprint_bytes);
  const std::string table = reader.read_text(head.table_bytes);
  if (head_checksum(head, fingerprint_text, table) != head.checksum) {
    throw reader.fault("is corrupted: the checksum of its head does not agree");
  }
  const std::string differences = fingerprint.differences(fingerprint_from(fingerprint_text));
  if (!differences.empty()) throw reader.fault("is of another run: " + differences);
  const auto rows = table_from(table);
  std::uint64_t payload = 0;
  if (rows) {
    for (const TableRow& row : *rows) payload += row.bytes;
  }
  if (!rows || rows->size() != head.sections || payload != head.payload_bytes) {
    throw reader.fault("is corrupted: its table of sections is malformed");
  }
  return {.clock = head.clock, .sections = read_sections(reader, *rows, on_disk)};
}

}  // namespace orrery
