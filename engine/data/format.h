// The file formats of cli.md: their names, and how the content of a file tells which one it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/input_file.h"

namespace orrery {

enum class DataFormat { ratings, matrix_market, svmlight, docword, text, edges, csv, npy, packed };

/// The name that `--format` takes and run.json shows.
std::string_view format_name(DataFormat format);
/// All names, for messages: "ratings, matrix-market, …".
std::string format_names();
/// Throws usage_error for an unknown name, listing the known ones.
DataFormat parse_format(std::string_view name);

/// What stands between the columns of a line.
enum class Separator { blanks, comma, semicolon, tab, colons };
std::string_view separator_name(Separator separator);

/// What was recognised from the content of a file, or was told.
struct Recognised {
  DataFormat format = DataFormat::ratings;
  bool gzip = false;
  Separator separator = Separator::blanks;  ///< ratings and csv
  bool header = false;                      ///< ratings and csv: a line of column names comes first

  /// "ratings (comma-separated, header line, gzip)".
  std::string describe() const;
};

/// What the first lines of a text look like to a reader of columns.
struct ColumnLayout {
  Separator separator = Separator::blanks;
  bool header = false;
  std::string_view header_line = {};  ///< part of what was looked at
  std::uint64_t data_offset = 0;      ///< the byte where the first line of data begins, behind comments and the header
  std::uint64_t data_lines_before = 0;  ///< the lines before it
};

/// Looks at the first lines for the separator and a header line of ratings (`least` to 4 columns). A line is a header
/// when it is the first one, no field of it is a number, and its columns fit; with blanks between the columns also its
/// third field must be a word for a rating, because names of users and items may look like column names.
ColumnLayout recognise_rating_columns(std::string_view head, std::size_t least);

/// Looks at the first lines for the separator, the number of columns and a header line of a table: the first line is a
/// header when no field of it is a number and the next one has a number.
ColumnLayout recognise_csv_columns(std::string_view head, std::size_t& columns);

/// Splits a line (without its end) at a separator. Fields are trimmed of blanks; quotes are kept.
std::vector<std::string_view> split_fields(std::string_view line, Separator separator);
/// True when the whole field is a number for std::from_chars (NaN and infinity included).
bool looks_like_number(std::string_view field);

/// Throws usage_error when `option` ("--label") has a value but does not apply to the format that `file` has.
void refuse_option(std::string_view option, std::string_view value, std::string_view file, DataFormat format,
                   const std::vector<DataFormat>& applies_to);

/// Recognises the format of a file from its first bytes. `allowed` names the formats that make sense to the caller;
/// empty means all. Throws data_error when the content is empty or none of them fits.
Recognised detect_format(InputFile& file, const std::vector<DataFormat>& allowed = {});

}  // namespace orrery
