#include "engine/model_store.h"

#include <array>
#include <sstream>
#include <system_error>

#include "engine/checksum.h"
#include "engine/error.h"
#include "engine/json.h"

namespace orrery {

namespace fs = std::filesystem;
namespace {

constexpr std::string_view kFormat = "orrery-model";
constexpr std::uint64_t kVersion = 1;
constexpr std::string_view kManifest = "manifest.json";
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::uintmax_t kLargestManifest = std::uintmax_t{64} << 20;

bool is_name(std::string_view name) {
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

/// In the order of names, so that the order of writing makes no difference.
std::string combined_checksum(const std::map<std::string, ModelEntry, std::less<>>& entries) {
  Checksum sum;
  for (const auto& [name, entry] : entries) sum.update(name + " " + checksum_text(entry.checksum) + "\n");
  return checksum_text(sum.value());
}

Json to_json(const ModelEntry& entry) {
  Json json{{"name", entry.name}, {"file", entry.file}};
  if (!entry.is_text) json["dtype"] = std::string{to_string(entry.type)};
  json["shape"] = entry.shape;
  json["bytes"] = entry.bytes;
  json["checksum"] = checksum_text(entry.checksum);
  return json;
}

NpyType type_named(const std::string& name) {
  for (const NpyType type : {NpyType::float32, NpyType::float64, NpyType::int32, NpyType::int64, NpyType::uint8,
                             NpyType::uint32, NpyType::uint64}) {
    if (to_string(type) == name) return type;
  }
  throw Error(ErrorKind::data, "unknown dtype " + orrery::quoted(name));
}

/// Throws nlohmann's exceptions or an Error without the file's name; read_manifest() adds it.
ModelEntry entry_from(const Json& json, bool is_text) {
  ModelEntry entry{.name = json.at("name").get<std::string>(), .file = json.at("file").get<std::string>()};
  if (!is_name(entry.name)) throw Error(ErrorKind::data, "unusable name " + orrery::quoted(entry.name));
  // The file is derived, not believed: a manifest must not lead out of its directory.
  if (entry.file != entry.name + (is_text ? ".txt" : ".npy")) {
    throw Error(ErrorKind::data, "unexpected file " + orrery::quoted(entry.file) + " for " + entry.name);
  }
  entry.is_text = is_text;
  if (!is_text) entry.type = type_named(json.at("dtype").get<std::string>());
  entry.shape = json.at("shape").get<NpyShape>();
  entry.bytes = json.at("bytes").get<std::uint64_t>();
  const auto sum = parse_checksum(json.at("checksum").get<std::string>());
  if (!sum) throw Error(ErrorKind::data, "malformed checksum of " + entry.name);
  entry.checksum = *sum;
  return entry;
}

/// The checksum of a JSON object without its own key "manifest_checksum".
std::string self_checksum(Json manifest) {
  manifest.erase("manifest_checksum");
  return checksum_text(checksum(json_text(manifest)));
}

void check_sum(const fs::path& file, const ModelEntry& entry, std::uint64_t got) {
  if (got == entry.checksum) return;
  throw data_error(file.string(),
                   "is damaged: expected checksum " + checksum_text(entry.checksum) + ", got " + checksum_text(got));
}

fs::path model_directory(const fs::path& directory) {
  for (const fs::path& candidate : {directory / "model", directory}) {
    std::error_code error;
    if (fs::exists(candidate / kManifest, error)) return candidate;
  }
  throw data_error(directory.string(), "holds no model: neither model/manifest.json nor manifest.json is there");
}

}  // namespace

ModelWriter::ModelWriter(const fs::path& run_directory) : directory_(run_directory / "model") {}

ModelEntry& ModelWriter::start_entry(std::string_view name, bool is_text) {
  const bool known = std::any_of(entries_.begin(), entries_.end(), [&](const ModelEntry& e) { return e.name == name; });
  if (known || !is_name(name)) {
    throw Error(ErrorKind::internal,
                "model: name " + quoted(name) + (known ? " is used twice" : " is not of [a-z0-9_-]"));
  }
  const std::string file = std::string{name} + (is_text ? ".txt" : ".npy");
  entries_.push_back({.name = std::string{name}, .file = file, .is_text = is_text});
  return entries_.back();
}

void ModelWriter::add_array(std::string_view name, NpyType type, const NpyShape& shape, const ByteSource& source) {
  ModelEntry& entry = start_entry(name, false);
  entry.type = type;
  entry.shape = shape;
  AtomicFile file(directory_, entry.file);
  Checksum sum;
  write_npy(
      [&](std::span<const std::byte> bytes) {
        sum.update(bytes);
        file.write(bytes);
      },
      type, shape, source);
  entry.bytes = file.size();
  entry.checksum = sum.value();
  file.commit();
}

void ModelWriter::add_text(std::string_view name, std::span<const std::string> lines) {
  ModelEntry& entry = start_entry(name, true);
  entry.shape = {lines.size()};
  AtomicFile file(directory_, entry.file);
  Checksum sum;
  for (const std::string& line : lines) {
    if (line.find('\n') != std::string::npos) {
      throw Error(ErrorKind::internal, "model: a line of " + quoted(name) + " holds a line feed");
    }
    file.write(line);
    file.write("\n");
    sum.update(line).update("\n");
  }
  entry.bytes = file.size();
  entry.checksum = sum.value();
  file.commit();
}

std::string ModelWriter::finish(std::string_view metadata) {
  Json parsed = parse_json(metadata);
  if (!parsed.is_object()) throw Error(ErrorKind::internal, "model: metadata is not a JSON object");
  std::map<std::string, ModelEntry, std::less<>> sorted;
  for (const ModelEntry& entry : entries_) sorted.emplace(entry.name, entry);
  const std::string sum = combined_checksum(sorted);
  Json manifest{{"format", kFormat},       {"format_version", kVersion},
                {"model_checksum", sum},   {"metadata", std::move(parsed)},
                {"arrays", Json::array()}, {"texts", Json::array()}};
  for (const ModelEntry& entry : entries_) manifest[entry.is_text ? "texts" : "arrays"].push_back(to_json(entry));
  manifest["manifest_checksum"] = self_checksum(manifest);
  AtomicFile file(directory_, kManifest);
  file.write(json_text(manifest, 2) + "\n");
  file.commit();
  directory_.commit();
  return sum;
}

ModelReader::ModelReader(const fs::path& directory) : path_(model_directory(directory)) {
  read_manifest();
  check_files();
}

void ModelReader::read_manifest() {
  const fs::path file = path_ / kManifest;
  const Json manifest = parse_json(read_file(file, kLargestManifest));
  if (!manifest.is_object()) throw data_error(file.string(), "is not JSON: cut short or damaged");
  try {
    if (manifest.value("format", std::string{}) != kFormat)
      throw Error(ErrorKind::data, "is not the manifest of a model");
    const auto version = manifest.at("format_version").get<std::uint64_t>();
    if (version != kVersion) {
      throw Error(ErrorKind::data, "expected format version 1, got " + std::to_string(version));
    }
    if (manifest.at("manifest_checksum").get<std::string>() != self_checksum(manifest)) {
      throw Error(ErrorKind::data, "is damaged: its own checksum does not agree");
    }
    for (const bool is_text : {false, true}) {
      for (const Json& json : manifest.at(is_text ? "texts" : "arrays")) {
        ModelEntry entry = entry_from(json, is_text);
        std::string name = entry.name;
        if (!entries_.emplace(std::move(name), std::move(entry)).second)
          throw Error(ErrorKind::data, "a name stands twice");
      }
    }
    metadata_ = json_text(manifest.at("metadata"));
    model_checksum_ = manifest.at("model_checksum").get<std::string>();
    if (model_checksum_ != combined_checksum(entries_)) throw Error(ErrorKind::data, "model_checksum does not agree");
  } catch (const Json::exception& fault) {
    throw data_error(file.string(), std::string{"is no valid manifest: "} + fault.what());
  } catch (const Error& fault) {
    throw data_error(file.string(), fault.what());
  }
}

void ModelReader::check_files() const {
  for (const auto& [name, entry] : entries_) {
    const fs::path file = path_ / entry.file;
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file, error);
    if (error) throw data_error(file.string(), "cannot be read: " + error.message());
    if (size != entry.bytes) {
      throw data_error(file.string(),
                       "expected " + std::to_string(entry.bytes) + " bytes, got " + std::to_string(size));
    }
    if (entry.is_text) continue;
    const NpyReader array(file);
    if (array.type() == entry.type && array.shape() == entry.shape) continue;
    throw data_error(file.string(), "expected " + std::string{to_string(entry.type)} + " " + to_string(entry.shape) +
                                        ", got " + std::string{to_string(array.type())} + " " +
                                        to_string(array.shape()));
  }
}

const ModelEntry& ModelReader::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw data_error(path_.string(), "the model has no " + quoted(name));
  return found->second;
}

std::vector<std::string> ModelReader::names() const {
  std::vector<std::string> all;
  for (const auto& [name, entry] : entries_) all.push_back(name);
  return all;
}

void ModelReader::expect(const ModelEntry& entry, NpyType type, std::uint64_t values) const {
  const std::uint64_t has = entry.is_text ? 0 : value_count(entry.shape);
  if (!entry.is_text && entry.type == type && has == values) return;
  throw data_error((path_ / entry.file).string(), "expected " + std::to_string(values) + " values of type " +
                                                      std::string{to_string(type)} + ", got " + std::to_string(has) +
                                                      " of type " +
                                                      (entry.is_text ? "text" : std::string{to_string(entry.type)}));
}

void ModelReader::read_pieces(std::string_view name, const ByteSink& sink) const {
  const ModelEntry& entry = this->entry(name);
  const fs::path file = path_ / entry.file;
  NpyReader array(file);
  if (array.shape() != entry.shape || array.type() != entry.type) {
    throw data_error(file.string(), "changed while the model was open");
  }
  Checksum sum;
  sum.update(array.header());
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, array.payload_bytes())));
  for (std::uint64_t left = array.payload_bytes(); left > 0; left -= piece.size()) {
    if (left < piece.size()) piece.resize(static_cast<std::size_t>(left));
    array.read_bytes(piece);
    sum.update(piece);
    sink(piece);
  }
  check_sum(file, entry, sum.value());
}

std::vector<std::string> ModelReader::read_text(std::string_view name) const {
  const ModelEntry& entry = this->entry(name);
  const fs::path file = path_ / entry.file;
  if (!entry.is_text) throw data_error(file.string(), "is an array, expected texts");
  const std::string text = read_file(file, entry.bytes);
  check_sum(file, entry, checksum(text));
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (lines.size() != value_count(entry.shape)) {
    throw data_error(file.string(), "expected " + std::to_string(value_count(entry.shape)) + " lines, got " +
                                        std::to_string(lines.size()));
  }
  return lines;
}

void ModelReader::verify() const {
  for (const auto& [name, entry] : entries_) {
    if (entry.is_text) {
      read_text(name);
    } else {
      read_pieces(name, [](std::span<const std::byte>) {});
    }
  }
}

}  // namespace orrery
