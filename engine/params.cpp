#include "engine/params.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <system_error>
#include <type_traits>

#include "engine/error.h"
#include "engine/json.h"

namespace orrery {

namespace {

constexpr std::string_view kAuto = "auto";

/// from_chars over the whole text, with the leading '+' that people write.
template <class T>
bool parse_whole(std::string_view text, T& value, std::errc& error) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  error = result.ec;
  return result.ec == std::errc{} && result.ptr == text.data() + text.size();
}

Error bad_value(std::string_view what, std::string_view expected, std::string_view got) {
  return usage_error(std::string{what} + ": expected " + std::string{expected} + ", got " + quoted(got));
}

template <std::integral T>
T parse_as(std::string_view what, std::string_view text) {
  T value{};
  std::errc error{};
  if (parse_whole(text, value, error)) return value;
  if (error == std::errc::result_out_of_range) {
    throw bad_value(what,
                    "an integer from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
                        std::to_string(std::numeric_limits<T>::max()),
                    text);
  }
  throw bad_value(what, std::is_unsigned_v<T> ? "an integer >= 0" : "an integer", text);
}

template <std::floating_point T>
T parse_as(std::string_view what, std::string_view text) {
  T value{};
  std::errc error{};
  if (parse_whole(text, value, error) && std::isfinite(value)) return value;
  throw bad_value(what, "a finite number", text);
}

template <class T>
T parse_in_range(std::string_view what, std::string_view text, const Range& range) {
  const T value = parse_as<T>(what, text);
  if (!range.contains(static_cast<double>(value))) {
    throw bad_value(what, (std::integral<T> ? "an integer " : "a number ") + range.text(), text);
  }
  return value;
}

template <class T>
std::string number_text(T value) {
  if constexpr (std::integral<T>) {
    return std::to_string(value);
  } else {
    return shortest_text(value);
  }
}

template <class T>
std::string shortest(T value) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

std::string joined(std::span<const std::string> words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::string option(std::string_view name) { return "--" + std::string{name}; }

}  // namespace

bool Range::contains(double value) const {
  const bool low_holds = low_open ? value > low : value >= low;
  const bool high_holds = high_open ? value < high : value <= high;
  return low_holds && high_holds;
}

std::string Range::text() const {
  const bool below = std::isfinite(low);
  const bool over = std::isfinite(high);
  if (below && over) {
    return (low_open ? "(" : "[") + shortest(low) + ", " + shortest(high) + (high_open ? ")" : "]");
  }
  if (below) return (low_open ? "> " : ">= ") + shortest(low);
  if (over) return (high_open ? "< " : "<= ") + shortest(high);
  return {};
}

ParamSet& ParamSet::add_entry(Entry entry) {
  if (has(entry.info.name)) {
    throw Error(ErrorKind::internal, "parameter '" + entry.info.name + "' is described twice");
  }
  entry.info.default_value = entry.read();
  entries_.push_back(std::move(entry));
  return *this;
}

template <class T>
ParamSet& ParamSet::add_number(std::string name, T& field, std::string doc, Range range) {
  const std::string what = option(name);
  return add_entry(
      {.info = {.name = std::move(name),
                .type = std::integral<T> ? "integer" : "real",
                .range = range.text(),
                .doc = std::move(doc)},
       .read = [&field] { return number_text(field); },
       .write = [&field, range, what](std::string_view text) { field = parse_in_range<T>(what, text, range); }});
}

template <class T>
ParamSet& ParamSet::add_optional(std::string name, std::optional<T>& field, std::string doc, Range range) {
  const std::string what = option(name);
  return add_entry({.info = {.name = std::move(name),
                             .type = std::integral<T> ? "integer" : "real",
                             .range = range.text(),
                             .doc = std::move(doc),
                             .optional = true},
                    .read = [&field] { return field ? number_text(*field) : std::string{kAuto}; },
                    .write =
                        [&field, range, what](std::string_view text) {
                          if (text == kAuto) {
                            field.reset();
                          } else {
                            field = parse_in_range<T>(what, text, range);
                          }
                        }});
}

ParamSet& ParamSet::add(std::string name, int& field, std::string doc, Range range) {
  return add_number(std::move(name), field, std::move(doc), range);
}
ParamSet& ParamSet::add(std::string name, std::int64_t& field, std::string doc, Range range) {
  return add_number(std::move(name), field, std::move(doc), range);
}
ParamSet& ParamSet::add(std::string name, std::uint32_t& field, std::string doc, Range range) {
  return add_number(std::move(name), field, std::move(doc), range);
}
ParamSet& ParamSet::add(std::string name, std::uint64_t& field, std::string doc, Range range) {
  return add_number(std::move(name), field, std::move(doc), range);
}
ParamSet& ParamSet::add(std::string name, double& field, std::string doc, Range range) {
  return add_number(std::move(name), field, std::move(doc), range);
}
ParamSet& ParamSet::add(std::string name, float& field, std::string doc, Range range) {
  return add_number(std::move(name), field, std::move(doc), range);
}
ParamSet& ParamSet::add(std::string name, std::optional<int>& field, std::string doc, Range range) {
  return add_optional(std::move(name), field, std::move(doc), range);
}
ParamSet& ParamSet::add(std::string name, std::optional<std::int64_t>& field, std::string doc, Range range) {
  return add_optional(std::move(name), field, std::move(doc), range);
}
ParamSet& ParamSet::add(std::string name, std::optional<std::uint64_t>& field, std::string doc, Range range) {
  return add_optional(std::move(name), field, std::move(doc), range);
}
ParamSet& ParamSet::add(std::string name, std::optional<double>& field, std::string doc, Range range) {
  return add_optional(std::move(name), field, std::move(doc), range);
}

ParamSet& ParamSet::add(std::string name, bool& field, std::string doc) {
  const std::string what = option(name);
  return add_entry({.info = {.name = std::move(name), .type = "bool", .range = "true|false", .doc = std::move(doc)},
                    .read = [&field] { return std::string{field ? "true" : "false"}; },
                    .write =
                        [&field, what](std::string_view text) {
                          if (text == "true" || text == "on" || text == "1" || text == "yes") {
                            field = true;
                          } else if (text == "false" || text == "off" || text == "0" || text == "no") {
                            field = false;
                          } else {
                            throw bad_value(what, "true or false", text);
                          }
                        }});
}

ParamSet& ParamSet::add(std::string name, std::string& field, std::string doc) {
  return add_entry({.info = {.name = std::move(name), .type = "text", .doc = std::move(doc)},
                    .read = [&field] { return field; },
                    .write = [&field](std::string_view text) { field = text; }});
}

ParamSet& ParamSet::add_named(std::string name, std::string doc, std::vector<std::string> names,
                              std::function<std::string()> read, std::function<bool(std::string_view)> write) {
  const std::string what = option(name);
  std::string all = joined(names, "|");
  return add_entry({.info = {.name = std::move(name),
                             .type = "choice",
                             .range = std::move(all),
                             .doc = std::move(doc),
                             .choices = names},
                    .read = std::move(read),
                    .write = [what, names, write = std::move(write)](std::string_view text) {
                      if (write(text)) return;
                      throw usage_error(what + ": expected one of " + joined(names, ", ") + ", got " + quoted(text) +
                                        suggestion(text, names));
                    }});
}

ParamSet::Entry& ParamSet::find(std::string_view name) {
  for (Entry& entry : entries_) {
    if (entry.info.name == name) return entry;
  }
  const std::string of = owner_.empty() ? "" : " of " + owner_;
  throw usage_error("unknown parameter " + quoted(name) + of + suggestion(name, names()));
}

const ParamSet::Entry& ParamSet::find(std::string_view name) const { return const_cast<ParamSet*>(this)->find(name); }

void ParamSet::set(std::string_view name, std::string_view value) {
  Entry& entry = find(name);
  entry.write(value);
  entry.set = true;
}

void ParamSet::set_from_file(std::string_view name, std::string_view value) {
  set(name, value);
  Entry& entry = find(name);
  entry.set = entry.read() != entry.info.default_value;
}

std::string ParamSet::get(std::string_view name) const { return find(name).read(); }

bool ParamSet::has(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.info.name == name; });
}

bool ParamSet::was_set(std::string_view name) const { return find(name).set; }

std::vector<ParamInfo> ParamSet::describe() const {
  std::vector<ParamInfo> all;
  for (const Entry& entry : entries_) all.push_back(entry.info);
  return all;
}

std::vector<std::string> ParamSet::names() const {
  std::vector<std::string> all;
  for (const Entry& entry : entries_) all.push_back(entry.info.name);
  return all;
}

std::string ParamSet::to_json() const {
  Json object = Json::object();
  for (const Entry& entry : entries_) {
    const std::string text = entry.read();
    if (entry.info.optional && text == kAuto) {
      object[entry.info.name] = nullptr;
    } else if (entry.info.type == "text" || entry.info.type == "choice") {
      object[entry.info.name] = text;
    } else {
      // "inf" and "nan" are no JSON numbers; as text they still read back.
      auto value = parse_json(text);
      object[entry.info.name] = value.is_discarded() ? Json(text) : std::move(value);
    }
  }
  return json_text(object);
}

void ParamSet::set_from_json(std::string_view json) {
  const auto object = parse_json(json);
  if (!object.is_object()) throw usage_error("expected a JSON object of parameters, got " + quoted(json));
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) {
      set(name, kAuto);
    } else {
      set(name, value.is_string() ? value.get<std::string>() : json_text(value));
    }
  }
}

std::string ParamSet::table() const {
  std::array<std::size_t, 4> width{};
  std::vector<std::array<std::string, 5>> rows;
  for (const Entry& entry : entries_) {
    const ParamInfo& info = entry.info;
    const std::string value = info.default_value.empty() ? "-" : info.default_value;
    rows.push_back({option(info.name), info.type, value, info.range.empty() ? "-" : info.range, info.doc});
    for (std::size_t i = 0; i < width.size(); ++i) width[i] = std::max(width[i], rows.back()[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < width.size(); ++i) text += row[i] + std::string(width[i] - row[i].size() + 2, ' ');
    text += row[4] + "\n";
  }
  return text;
}

std::optional<std::string> closest(std::string_view name, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    const std::size_t most = (std::max(name.size(), candidate.size()) + 2) / 3;
    if (distance > most || distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  const std::optional<std::string> near = closest(name, candidates);
  return near ? "; did you mean '" + *near + "'?" : std::string{};
}

std::int64_t parse_integer(std::string_view what, std::string_view text) { return parse_as<std::int64_t>(what, text); }
std::uint64_t parse_unsigned(std::string_view what, std::string_view text) {
  return parse_as<std::uint64_t>(what, text);
}
double parse_real(std::string_view what, std::string_view text) { return parse_as<double>(what, text); }

std::uint64_t parse_bytes(std::string_view what, std::string_view text) {
  constexpr std::string_view kPrefixes = "KMGT";
  const auto fail = [&] { return bad_value(what, "a size such as 512M or 24G", text); };
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit = text.substr(static_cast<std::size_t>(result.ptr - text.data()));
  if (result.ec != std::errc{} || !std::isfinite(value) || value < 0) throw fail();
  if (!unit.empty() && unit != "B") {
    const std::size_t power = kPrefixes.find(unit.front() >= 'a' ? static_cast<char>(unit.front() - 32) : unit.front());
    const std::string_view rest = unit.substr(1);
    if (power == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB")) throw fail();
    value *= std::ldexp(1.0, static_cast<int>(10 * (power + 1)));
  }
  if (value >= 0x1p63) throw fail();
  return static_cast<std::uint64_t>(value);
}

std::string shortest_text(double value) { return shortest(value); }
std::string shortest_text(float value) { return shortest(value); }

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 64> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, unit == 0 ? 0 : 1);
  return std::string{buffer.data(), end.ptr} + " " + kUnits[unit];
}

}  // namespace orrery
