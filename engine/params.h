// Parameters described once (design, section 9): the same description drives the command line, the config file, the run
// record and the docs, so they cannot drift apart.
//
//   struct MfParams { int rank = 16; double reg = 0.05; Solver solver = Solver::sgd; };
//   MfParams p;
//   ParamSet set("mf");
//   set.add("rank", p.rank, "number of factors", between(1, 4096));
//   set.add("reg", p.reg, "weight of the L2 penalty", at_least(0));
//   set.add_choice("solver", p.solver, "how the factors are found", {{"sgd", Solver::sgd}, {"als", Solver::als}});
//   set.set("rank", "32");
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {

/// The values a number may take. Reals must also be finite.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;   ///< low itself is not allowed
  bool high_open = false;  ///< high itself is not allowed

  bool contains(double value) const;
  /// Such as "> 0", ">= 1", "[0, 1)"; empty when everything is allowed.
  std::string text() const;
};
inline Range at_least(double low) { return {.low = low}; }
inline Range above(double low) { return {.low = low, .low_open = true}; }
inline Range between(double low, double high) { return {.low = low, .high = high}; }
/// low < x <= high
inline Range above_to(double low, double high) { return {.low = low, .high = high, .low_open = true}; }
/// low <= x < high
inline Range from_to_below(double low, double high) { return {.low = low, .high = high, .high_open = true}; }

/// One parameter as people and documents see it.
struct ParamInfo {
  std::string name = {};  ///< as after `--` on the command line and as key in files: lower case, '-' between words
  std::string type = {};  ///< "integer", "real", "bool", "text" or "choice"; all but bool and text may be optional
  std::string default_value = {};  ///< text of the default; empty text means "not set"
  std::string range = {};          ///< Range::text(), or the choices joined by '|'
  std::string doc = {};            ///< one sentence
  std::vector<std::string> choices = {};
  bool optional = false;  ///< may be "auto", which leaves the field empty
};

/// Ties names to the fields of one parameter aggregate. Keeps references: the aggregate must outlive the set and stay
/// where it is. The default of a parameter is the value the field has when add() is called. Not for use by two threads.
class ParamSet {
 public:
  /// `owner` stands in messages ("unknown parameter of OWNER"); empty for the options that every command takes.
  explicit ParamSet(std::string owner = {}) : owner_(std::move(owner)) {}

  ParamSet& add(std::string name, int& field, std::string doc, Range range = {});
  ParamSet& add(std::string name, std::int64_t& field, std::string doc, Range range = {});
  ParamSet& add(std::string name, std::uint32_t& field, std::string doc, Range range = {});
  ParamSet& add(std::string name, std::uint64_t& field, std::string doc, Range range = {});
  ParamSet& add(std::string name, double& field, std::string doc, Range range = {});
  ParamSet& add(std::string name, float& field, std::string doc, Range range = {});
  ParamSet& add(std::string name, bool& field, std::string doc);
  ParamSet& add(std::string name, std::string& field, std::string doc);
  /// "auto" leaves an optional empty, which lets the algorithm choose.
  ParamSet& add(std::string name, std::optional<int>& field, std::string doc, Range range = {});
  ParamSet& add(std::string name, std::optional<std::int64_t>& field, std::string doc, Range range = {});
  ParamSet& add(std::string name, std::optional<std::uint64_t>& field, std::string doc, Range range = {});
  ParamSet& add(std::string name, std::optional<double>& field, std::string doc, Range range = {});
  /// An enumeration by its names.
  template <class E>
  ParamSet& add_choice(std::string name, E& field, std::string doc,
                       std::initializer_list<std::pair<const char*, E>> choices) {
    std::vector<std::pair<std::string, E>> table(choices.begin(), choices.end());
    std::vector<std::string> names;
    for (const auto& [text, value] : table) names.push_back(text);
    auto read = [&field, table] {
      for (const auto& [text, value] : table) {
        if (value == field) return text;
      }
      return std::string{};
    };
    auto write = [&field, table](std::string_view wanted) {
      for (const auto& [text, value] : table) {
        if (text != wanted) continue;
        field = value;
        return true;
      }
      return false;
    };
    return add_named(std::move(name), std::move(doc), std::move(names), std::move(read), std::move(write));
  }

  /// Sets one parameter from text. Throws a usage error that says what was expected and what was got; an unknown name
  /// gets a suggestion. Setting twice keeps the last.
  void set(std::string_view name, std::string_view value);
  /// The same for a file that spells out everything: what it says counts as a choice (was_set) only where it differs
  /// from the default.
  void set_from_file(std::string_view name, std::string_view value);
  /// The value as text that set() takes back to the same bits.
  std::string get(std::string_view name) const;
  bool has(std::string_view name) const;
  /// Was set() called for it? Tells an explicit choice from a default.
  bool was_set(std::string_view name) const;

  /// In the order of add().
  std::vector<ParamInfo> describe() const;
  std::vector<std::string> names() const;
  /// A JSON object of the values as they are now, `{"rank":16,"solver":"sgd",…}`; an empty optional is null.
  std::string to_json() const;
  /// Sets all parameters from such an object (null = "auto"). Throws a usage error for an unknown key or a bad value.
  void set_from_json(std::string_view json);
  /// name, type, default, range, doc in aligned columns, a line each, for `describe` and `--help`.
  std::string table() const;

 private:
  struct Entry {
    ParamInfo info = {};
    std::function<std::string()> read = {};
    std::function<void(std::string_view)> write = {};  ///< throws a usage error
    bool set = false;
  };
  ParamSet& add_entry(Entry entry);
  ParamSet& add_named(std::string name, std::string doc, std::vector<std::string> names,
                      std::function<std::string()> read, std::function<bool(std::string_view)> write);
  template <class T>
  ParamSet& add_number(std::string name, T& field, std::string doc, Range range);
  template <class T>
  ParamSet& add_optional(std::string name, std::optional<T>& field, std::string doc, Range range);
  const Entry& find(std::string_view name) const;
  Entry& find(std::string_view name);

  std::string owner_;
  std::vector<Entry> entries_;
};

/// The candidate most like `name` (edits: insert, delete, replace, swap neighbours), when it is near enough to be a
/// slip: at most a third of the longer length, rounded up. The first of equals.
std::optional<std::string> closest(std::string_view name, std::span<const std::string> candidates);
/// "; did you mean 'X'?" or nothing.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

/// Numbers from the whole of `text`; `what` (such as "--rank") opens the message. Throw a usage error for anything
/// else, also for an integer out of its type's range and for NaN and infinity.
std::int64_t parse_integer(std::string_view what, std::string_view text);
std::uint64_t parse_unsigned(std::string_view what, std::string_view text);
double parse_real(std::string_view what, std::string_view text);
/// Bytes: "123", "64K", "1.5G", "2GiB", "100MB"; every prefix is a power of 1024. Throws a usage error.
std::uint64_t parse_bytes(std::string_view what, std::string_view text);
/// The shortest decimal text that reads back to the same bits.
std::string shortest_text(double value);
std::string shortest_text(float value);
/// "1.5 GiB", for people.
std::string bytes_text(std::uint64_t bytes);

}  // namespace orrery
