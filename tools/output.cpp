#include "tools/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <streambuf>
#include <system_error>

#include "algorithms/data_parts.h"
#include "engine/atomic_file.h"
#include "engine/error.h"
#include "engine/params.h"
#include "engine/run_directory.h"

namespace orrery::tools {

namespace {

/// 0, or the error number of the write that failed.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void write_or_throw(int descriptor, std::string_view text, const std::string& name) {
  const int error_number = write_all(descriptor, text);
  if (error_number == EPIPE) throw BrokenPipe();
  if (error_number != 0) throw output_error(name, error_number);
}

/// An ostream's way to an open descriptor; the exceptions pass through the stream because its mask asks for them.
class DescriptorBuffer final : public std::streambuf {
 public:
  DescriptorBuffer(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}
  void flush() {
    write_or_throw(descriptor_, pending_, name_);
    pending_.clear();
  }

 protected:
  int_type overflow(int_type symbol) override {
    if (traits_type::eq_int_type(symbol, traits_type::eof())) return traits_type::not_eof(symbol);
    const char byte = traits_type::to_char_type(symbol);
    xsputn(&byte, 1);
    return symbol;
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    constexpr std::size_t kMost = std::size_t{1} << 16;
    pending_.append(text, static_cast<std::size_t>(count));
    if (pending_.size() >= kMost) flush();
    return count;
  }

 private:
  int descriptor_;
  std::string name_;
  std::string pending_;
};

void write_stream(int descriptor, const std::string& name, const std::function<void(std::ostream&)>& write) {
  DescriptorBuffer buffer(descriptor, name);
  std::ostream stream(&buffer);
  stream.exceptions(std::ios::badbit | std::ios::failbit);
  write(stream);
  buffer.flush();
}

/// A descriptor that is closed at the end of its scope.
struct OpenDescriptor {
  int number;
  ~OpenDescriptor() { ::close(number); }
};

}  // namespace

void print(std::string_view text) { write_or_throw(STDOUT_FILENO, text, "standard output"); }

void complain(std::string_view text) { static_cast<void>(write_all(STDERR_FILENO, text)); }

void write_result(const std::string& path, const std::function<void(std::ostream&)>& write) {
  namespace fs = std::filesystem;
  if (path == "-") {
    write_stream(STDOUT_FILENO, "standard output", write);
    return;
  }
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) throw output_error(path, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    const OpenDescriptor device{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    if (device.number < 0) throw output_error(path, errno);
    write_stream(device.number, path, write);
    return;
  }
  AtomicFile file(fs::exists(status) ? fs::canonical(path) : fs::path(path), path);
  write(file.stream());
  file.commit();
}

bool is_same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code error;  // what cannot be looked at is compared as it is spelled
  if (fs::equivalent(a, b, error)) return true;
  const auto place = [&](const std::string& of) { return fs::weakly_canonical(fs::absolute(of), error); };
  return !a.empty() && !b.empty() && place(a) == place(b);
}

void check_not_read(const std::string& option, const std::string& file, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    if (input.empty()) continue;
    if (!is_same_file(file, input) && !(is_in_parts(input) && is_part(file, input))) continue;
    throw usage_error(option + ": " + file + " is what the command reads; choose another name");
  }
}

void check_not_of_run(const std::string& option, const std::string& file, const std::string& run) {
  namespace fs = std::filesystem;
  if (run.empty() || file == "-") return;
  std::error_code error;  // what cannot be looked at cannot be written either, which is said in the end
  const auto place = [&](const std::string& of) { return fs::weakly_canonical(fs::absolute(of), error); };
  const fs::path relative = place(file).lexically_relative(place(run));
  const bool is_below = !relative.empty() && *relative.begin() != ".." && *relative.begin() != ".";
  if (!is_below) return;
  const bool is_run = fs::exists(fs::path(run) / "run.json", error);
  if (is_run ? !RunDirectory::writes(relative.begin()->string()) : !fs::exists(place(file), error)) return;
  throw usage_error(option + ": " + file + " is a file of the run or model in " + run + "; choose another name");
}

void require_writable(const std::string& directory, const std::string& file) {
  if (::access(directory.c_str(), W_OK | X_OK) != 0) throw output_error(file, errno);
}

namespace {

/// As JSON spells it, but for texts, which need no quotes here.
std::string plain_text(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* real = std::get_if<double>(&value)) return shortest_text(*real);
  if (const auto* count = std::get_if<std::int64_t>(&value)) return std::to_string(*count);
  return std::get<bool>(value) ? "true" : "false";
}

}  // namespace

void print_values(const ValueList& values, bool json) {
  if (json) return print(to_json(values) + "\n");
  std::vector<std::vector<std::string>> rows;
  for (const NamedValue& item : values) rows.push_back({item.name, plain_text(item.value)});
  print(aligned(rows));
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(width[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace orrery::tools
