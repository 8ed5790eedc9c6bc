#include "engine/data/pieces.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>

#include "engine/error.h"

namespace orrery {

namespace {

// Pieces of a plain file: every body reads its own part, so reading is as parallel as parsing and no page of the file
// is ever mapped. Piece i holds the lines that begin in its byte range.
class SeekableSource final : public PieceSource {
 public:
  SeekableSource(const InputFile& file, const ReadOptions& options, TextStart start)
      : file_(file), piece_bytes_(options.piece_bytes), wave_pieces_(options.wave_pieces), next_(start.offset) {
    bytes_ = file.content_bytes();
    char last = '\n';
    if (bytes_ > 0) file.read_at(bytes_ - 1, std::span{&last, 1});
    final_newline_ = last == '\n';
    first_ = start.offset;
  }

  std::size_t next_wave() override {
    wave_begin_ = next_;
    if (wave_begin_ >= bytes_) return 0;
    const std::uint64_t left = (bytes_ - wave_begin_ + piece_bytes_ - 1) / piece_bytes_;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, wave_pieces_));
    next_ = wave_begin_ + count * piece_bytes_;
    return count;
  }

  void piece(std::size_t i, const std::function<void(TextPiece)>& parse) override {
    const std::uint64_t begin = wave_begin_ + i * piece_bytes_;
    const std::uint64_t end = std::min<std::uint64_t>(begin + piece_bytes_, bytes_);
    // One byte before tells whether a line begins at `begin`.
    const std::uint64_t from = begin == first_ ? begin : begin - 1;
    const auto size = static_cast<std::size_t>(end - from);
    Buffer buffer = take_buffer(size + kSlack);
    if (const TextPiece piece = lines_of(buffer, from, size, from != begin); piece.begin != piece.end) parse(piece);
    give_back(std::move(buffer));
  }

 private:
  static constexpr std::size_t kSlack = 4096;

  struct Buffer {
    std::unique_ptr<char[]> bytes;
    std::size_t room = 0;
  };

  // The lines that begin in [from, from + size), or behind the first line end there when `skip_first` is set.
  TextPiece lines_of(Buffer& buffer, std::uint64_t from, std::size_t size, bool skip_first) const {
    std::size_t have = file_.read_at(from, std::span{buffer.bytes.get(), size});
    std::size_t skip = 0;
    if (skip_first) {
      const char* newline = newline_in(buffer, 0, have);
      if (newline == nullptr) return {};
      skip = static_cast<std::size_t>(newline - buffer.bytes.get()) + 1;
      if (skip >= have) return {};  // the next line begins in the next piece
    }
    std::size_t line_end = have;
    while (have > 0 && buffer.bytes[line_end - 1] != '\n') {  // the last line goes on in the next piece
      if (buffer.room - have < 2) grow(buffer, have);
      const std::size_t got = file_.read_at(from + have, std::span{buffer.bytes.get() + have, buffer.room - have - 1});
      const char* newline = newline_in(buffer, have, got);
      have += got;
      line_end = newline != nullptr ? static_cast<std::size_t>(newline - buffer.bytes.get()) + 1 : have;
      if (got == 0) buffer.bytes[line_end++] = '\n';
    }
    return {buffer.bytes.get() + skip, buffer.bytes.get() + line_end};
  }

  static const char* newline_in(const Buffer& buffer, std::size_t begin, std::size_t count) {
    return static_cast<const char*>(std::memchr(buffer.bytes.get() + begin, '\n', count));
  }

  // Doubles what is read of a long line, so that a file of one line costs time linear in its length.
  static void grow(Buffer& buffer, std::size_t have) {
    auto bigger = std::make_unique_for_overwrite<char[]>(2 * buffer.room);
    std::memcpy(bigger.get(), buffer.bytes.get(), have);
    buffer.bytes = std::move(bigger);
    buffer.room *= 2;
  }

  // Buffers are used again: as many live as threads parse, and their pages are touched for the first time only once.
  Buffer take_buffer(std::size_t room) {
    const std::lock_guard lock(mutex_);
    if (buffers_.empty()) return {std::make_unique_for_overwrite<char[]>(room), room};
    Buffer buffer = std::move(buffers_.back());
    buffers_.pop_back();
    if (buffer.room < room) buffer = {std::make_unique_for_overwrite<char[]>(room), room};
    return buffer;
  }

  void give_back(Buffer buffer) {
    const std::lock_guard lock(mutex_);
    buffers_.push_back(std::move(buffer));
  }

  const InputFile& file_;
  std::uint64_t piece_bytes_;
  std::uint64_t wave_pieces_;
  std::uint64_t first_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t wave_begin_ = 0;
  std::mutex mutex_;
  std::vector<Buffer> buffers_;
};

// Pieces of a pipe or of gzip data: one thread reads the next wave while the others parse this one.
class StreamSource final : public PieceSource {
 public:
  StreamSource(InputFile& file, const ReadOptions& options, TextStart start)
      : file_(file),
        piece_bytes_(options.piece_bytes),
        wave_pieces_(std::min<std::size_t>(options.wave_pieces, kMostPieces)) {
    skip(start.offset);
    read_ahead();
  }

  std::size_t next_wave() override {
    wave_.swap(ahead_);
    ahead_.clear();
    return wave_.size();
  }

  void piece(std::size_t i, const std::function<void(TextPiece)>& parse) override {
    const std::string& text = wave_[i];
    if (!text.empty()) parse({text.data(), text.data() + text.size()});
  }

  void read_ahead() override {
    while (!ended_ && ahead_.size() < wave_pieces_) read_piece();
  }

  void rethrow_fault() override {
    if (fault_) std::rethrow_exception(fault_);
  }

 private:
  static constexpr std::size_t kMostPieces = 64;

  void skip(std::uint64_t bytes) {
    bytes_ = bytes;
    std::string dropped;
    while (bytes > 0) {
      dropped.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, piece_bytes_)));
      const std::size_t got = file_.read(dropped);
      if (got == 0) return;
      bytes -= got;
    }
  }

  void read_piece() {
    std::string text = std::move(rest_);
    rest_.clear();
    std::size_t line_end = 0;
    while (!ended_ && line_end == 0) {
      const std::size_t have = text.size();
      text.resize(std::max(piece_bytes_, 2 * have));
      const std::size_t got = read(std::span{text}.subspan(have));
      text.resize(have + got);
      const std::size_t newline = text.rfind('\n');
      line_end = newline == std::string::npos ? 0 : newline + 1;
    }
    if (ended_ && line_end < text.size()) {
      if (fault_) {
        text.resize(line_end);  // the line that the damage cuts is not a line of the file
      } else {
        final_newline_ = false;
        text += '\n';
      }
    } else if (line_end < text.size()) {
      rest_.assign(text, line_end);
      text.resize(line_end);
    }
    if (!text.empty()) ahead_.push_back(std::move(text));
  }

  std::size_t read(std::span<char> to) {
    std::size_t got = 0;
    try {
      got = file_.read(to);
    } catch (const Error&) {
      fault_ = std::current_exception();
    }
    if (got == 0) ended_ = true;
    bytes_ += got;
    return got;
  }

  InputFile& file_;
  std::size_t piece_bytes_;
  std::size_t wave_pieces_;
  std::vector<std::string> wave_;
  std::vector<std::string> ahead_;
  std::string rest_;
  bool ended_ = false;
  std::exception_ptr fault_;
};

}  // namespace

std::unique_ptr<PieceSource> make_piece_source(InputFile& file, const ReadOptions& options, TextStart start) {
  if (file.seekable()) return std::make_unique<SeekableSource>(file, options, start);
  return std::make_unique<StreamSource>(file, options, start);
}

void throw_fault(const InputFile& file, const ParseFault& fault, std::uint64_t lines_before) {
  throw data_error(file.path(), lines_before + fault.line + 1, fault.column, fault.expected, fault.got);
}

std::vector<std::string> TextSummary::warnings() const {
  std::vector<std::string> found;
  if (crlf_lines > 0) {
    found.push_back(std::to_string(crlf_lines) + " of " + std::to_string(lines) +
                    " lines end in CR LF (Windows line ends); accepted");
  }
  if (!final_newline) found.push_back("the last line has no newline at its end; accepted, but the file may be cut off");
  return found;
}

}  // namespace orrery
