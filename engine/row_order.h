// The order in which rows travel on one link (design section 6): the sender appends a row to the list when it first
// sends it, and both ends keep the list. After that a message says which places of the list it has, at most a bit for
// each, and then carries values only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/access_slots.h"
#include "engine/assert.h"
#include "engine/message.h"
#include "engine/wire.h"

namespace orrery {

/// How a message says which rows of the list it has; whatever is shortest.
enum class RowsSent : std::uint8_t {
  all,    ///< every row of the list
  marks,  ///< a bit for each row of the list
  places  ///< the number of rows, and the place of each in the list
};

/// The sender's end. Messages must arrive in the order in which they are written.
class RowOrderWriter {
 public:
  /// For a table of `rows`.
  explicit RowOrderWriter(std::uint32_t rows) : list_(rows) {}

  /// Appends the rows (each once) with `width` values each, values(i) for rows[i], to a message.
  template <class T, class Values>
  void write(std::span<const std::uint32_t> rows, std::uint32_t width, Values&& values, Bytes& out) {
    append_new(rows, out);
    const RowsSent how = shortest(rows.size());
    put(out, how);
    if (how == RowsSent::places) {
      put(out, static_cast<std::uint32_t>(rows.size()));
      for (const std::uint32_t row : rows) put(out, list_.find(row));
      for (std::size_t i = 0; i < rows.size(); ++i) put_all(out, std::span<const T>(values(i), width));
      return;
    }
    index_of_.assign(list_.size(), kNone);
    for (std::size_t i = 0; i < rows.size(); ++i) index_of_[list_.find(rows[i])] = static_cast<std::uint32_t>(i);
    if (how == RowsSent::marks) put_marks(out);
    for (const std::uint32_t i : index_of_) {
      if (i != kNone) put_all(out, std::span<const T>(values(i), width));
    }
  }

 private:
  static constexpr std::uint32_t kNone = AccessSlots::kNone;

  void append_new(std::span<const std::uint32_t> rows, Bytes& out) {
    const std::uint32_t known = list_.size();
    for (const std::uint32_t row : rows) list_.enter(row);
    put(out, list_.size() - known);
    for (std::uint32_t place = known; place < list_.size(); ++place) put(out, list_.row(place));
  }
  RowsSent shortest(std::size_t rows) const {
    if (rows == list_.size()) return RowsSent::all;
    return sizeof(std::uint32_t) * (rows + 1) < (list_.size() + 7) / 8 ? RowsSent::places : RowsSent::marks;
  }
  void put_marks(Bytes& out) const {
    const std::size_t at = out.size();
    out.resize(at + (list_.size() + 7) / 8, std::byte{0});
    for (std::size_t place = 0; place < list_.size(); ++place) {
      if (index_of_[place] != kNone) out[at + place / 8] |= std::byte{1} << (place % 8);
    }
  }

  AccessSlots list_;                     ///< a row's slot is its place
  std::vector<std::uint32_t> index_of_;  ///< scratch: by place, which of the rows under way it is
};

/// The receiver's end.
class RowOrderReader {
 public:
  /// Calls take(row, values) for every row of one write(), in the order of the message.
  template <class T, class Take>
  void read(WireReader& in, std::uint32_t width, Take&& take) {
    const std::size_t known = rows_.size();
    rows_.resize(known + in.take<std::uint32_t>());
    in.take_all(std::span(rows_).subspan(known));
    read_places(in);
    std::vector<T> values(width);
    for (const std::uint32_t place : places_) {
      in.take_all(std::span(values));
      take(rows_[place], values.data());
    }
  }

 private:
  void read_places(WireReader& in) {
    places_.clear();
    switch (in.take<RowsSent>()) {
      case RowsSent::all:
        for (std::uint32_t place = 0; place < rows_.size(); ++place) places_.push_back(place);
        return;
      case RowsSent::marks: {
        std::vector<std::byte> marks((rows_.size() + 7) / 8);
        in.take_all(std::span(marks));
        for (std::uint32_t place = 0; place < rows_.size(); ++place) {
          if ((marks[place / 8] >> (place % 8) & std::byte{1}) != std::byte{0}) places_.push_back(place);
        }
        return;
      }
      case RowsSent::places:
        places_.resize(in.take<std::uint32_t>());
        in.take_all(std::span(places_));
        return;
    }
    ORRERY_CHECK(false);
  }

  std::vector<std::uint32_t> rows_;    ///< by place
  std::vector<std::uint32_t> places_;  ///< of the message under way
};

}  // namespace orrery
