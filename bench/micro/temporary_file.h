// A file for a reader to read that goes with its object.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace orrery::bench {

class TemporaryFile {
 public:
  /// Writes `content` to a new file in the system's temporary folder. Throws std::runtime_error.
  explicit TemporaryFile(const std::string& content) {
    path_ = (std::filesystem::temp_directory_path() / "orrery-bench-XXXXXX").string();
    const int descriptor = mkstemp(path_.data());
    if (descriptor < 0) throw std::runtime_error(path_ + ": cannot be made");
    close(descriptor);
    std::ofstream file(path_);
    if (!file.write(content.data(), static_cast<std::streamsize>(content.size())).flush()) {
      std::filesystem::remove(path_);
      throw std::runtime_error(path_ + ": cannot be written");
    }
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace orrery::bench
