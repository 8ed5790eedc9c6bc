// Models on disk: DIR/model/ with one file per array (.npy) or list of texts (.txt) and manifest.json with names,
// shapes, dtypes and checksums (design, section 10). A model appears whole or not at all, and nothing that is damaged,
// cut short or foreign is ever taken for a model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/atomic_file.h"
#include "engine/npy.h"

namespace orrery {

/// What the manifest says about one file of a model.
struct ModelEntry {
  std::string name = {};
  std::string file = {};
  bool is_text = false;
  NpyType type = NpyType::float64;  ///< arrays only
  NpyShape shape = {};              ///< arrays; for texts {lines}
  std::uint64_t bytes = 0;          ///< of the file
  std::uint64_t checksum = 0;       ///< of the file
};

/// Writes a model beside its place and puts it there at finish(); until then, and if it is destroyed before, an older
/// model stays. Names are of [a-z0-9_-]. Every failed write throws an output error. Not for use by two threads.
class ModelWriter {
 public:
  /// The model will be `run_directory`/model, which need not exist; `run_directory` must.
  explicit ModelWriter(const std::filesystem::path& run_directory);

  /// An array whose bytes come in pieces from the caller's own layout, in order, little endian: no copy of the model is
  /// made.
  void add_array(std::string_view name, NpyType type, const NpyShape& shape, const ByteSource& source);
  /// An array that lies in memory as it will in the file; shape {} means {values.size()}.
  template <class T>
  void add_array(std::string_view name, std::span<const T> values, NpyShape shape = {}) {
    if (shape.empty()) shape = {values.size()};
    add_array(name, npy_type_of<T>(), shape, [&](const ByteSink& sink) { sink(std::as_bytes(values)); });
  }
  /// Texts, one a line; a line must not hold a line feed (internal Error).
  void add_text(std::string_view name, std::span<const std::string> lines);

  /// Writes the manifest with `metadata` (a JSON object: algorithm, parameters, what a reader needs) and moves the
  /// model to its place. Returns model_checksum: a function of names and contents of the arrays and texts alone, so
  /// that it is the same for two runs with bitwise the same model.
  std::string finish(std::string_view metadata);

 private:
  ModelEntry& start_entry(std::string_view name, bool is_text);

  AtomicDirectory directory_;
  std::vector<ModelEntry> entries_;
};

/// Opens a model and checks its manifest and the sizes of its files; contents are checked against their checksums as
/// they are read. All faults are data errors that name the file, what was expected and what was got. Reading methods
/// may be called by several threads at once.
class ModelReader {
 public:
  /// `directory` is a run directory (with model/ inside) or the model directory itself.
  explicit ModelReader(const std::filesystem::path& directory);

  bool has(std::string_view name) const { return entries_.contains(name); }
  /// Throws a data error when the model has no such array or text.
  const ModelEntry& entry(std::string_view name) const;
  std::vector<std::string> names() const;
  /// The JSON object given to ModelWriter::finish.
  const std::string& metadata() const noexcept { return metadata_; }
  const std::string& model_checksum() const noexcept { return model_checksum_; }
  const std::filesystem::path& path() const noexcept { return path_; }

  /// The values of an array in pieces of at most 1 MiB, in order, and then the check of the checksum (so a piece may
  /// already have been taken when the error comes).
  void read_pieces(std::string_view name, const ByteSink& sink) const;
  /// The values of an array of type T into `values`, which must be just as long.
  template <class T>
  void read(std::string_view name, std::span<T> values) const {
    expect(entry(name), npy_type_of<T>(), values.size());
    std::span<std::byte> left = std::as_writable_bytes(values);
    read_pieces(name, [&](std::span<const std::byte> piece) {
      std::copy(piece.begin(), piece.end(), left.begin());
      left = left.subspan(piece.size());
    });
  }
  template <class T>
  std::vector<T> read(std::string_view name) const {
    std::vector<T> values(static_cast<std::size_t>(value_count(entry(name).shape)));
    read(name, std::span<T>{values});
    return values;
  }
  std::vector<std::string> read_text(std::string_view name) const;
  /// Reads everything against its checksum.
  void verify() const;

 private:
  void read_manifest();
  void check_files() const;
  void expect(const ModelEntry& entry, NpyType type, std::uint64_t values) const;

  std::filesystem::path path_;
  std::map<std::string, ModelEntry, std::less<>> entries_;
  std::string metadata_;
  std::string model_checksum_;
};

}  // namespace orrery
