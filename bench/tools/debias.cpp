/// Takes mean, user and item biases out of ratings, for benches against programs that have no bias terms.
///
/// The fast twin of bench/harness/debias.py, which is its oracle (tests/bench/test_debias.py): the fairness rule that
/// both sides of a race fit the same model needs ten million ratings debiased in seconds. It shares no code with the
/// engine on purpose: what prepares the peer's data must not depend on what is measured.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

struct Rating {
  std::uint32_t user;
  std::uint32_t item;
  double value;
};

/// Names seen so far, numbered in order of appearance.
class Names {
 public:
  std::uint32_t number(std::string_view name) {
    auto [place, added] = numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
    if (added) {
      names_.push_back(place->first);
    }
    return place->second;
  }
  [[nodiscard]] const std::string& name(std::uint32_t number) const { return names_[number]; }
  [[nodiscard]] std::size_t size() const { return names_.size(); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
};

struct Model {
  double mean = 0;
  std::vector<double> users;  // indexed by number; ids that only the test file has stay 0
  std::vector<double> items;

  [[nodiscard]] double offset(const Rating& rating) const { return mean + users[rating.user] + items[rating.item]; }
};

std::string_view next_field(std::string_view& line) {
  const auto begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) {
    return {};
  }
  const auto end = std::min(line.find_first_of(" \t\r", begin), line.size());
  const auto field = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return field;
}

std::vector<Rating> read(const std::string& path, Names& users, Names& items) {
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error(path + ": cannot be read");
  }
  std::vector<Rating> ratings;
  std::string text;
  for (std::size_t number = 1; std::getline(file, text); ++number) {
    std::string_view line = text;
    const auto user = next_field(line);
    if (user.empty() || user.front() == '#') {
      continue;
    }
    const auto item = next_field(line);
    const auto field = next_field(line);
    double value = 0;
    if (std::from_chars(field.data(), field.data() + field.size(), value).ec != std::errc{}) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": expected 'user item rating', got '" + text +
                               "'");
    }
    ratings.push_back({users.number(user), items.number(item), value});
  }
  if (ratings.empty()) {
    throw std::runtime_error(path + ": no ratings");
  }
  return ratings;
}

template <typename Key, typename Rest>
void damp(const std::vector<Rating>& ratings, double damping, std::vector<double>& biases, Key key, Rest rest) {
  std::vector<double> sums(biases.size(), 0.0);
  std::vector<double> counts(biases.size(), 0.0);
  for (const auto& rating : ratings) {
    sums[key(rating)] += rest(rating);
    counts[key(rating)] += 1;
  }
  for (std::size_t i = 0; i < biases.size(); ++i) {
    biases[i] = counts[i] > 0 ? sums[i] / (counts[i] + damping) : 0.0;
  }
}

Model fit(const std::vector<Rating>& ratings, std::size_t users, std::size_t items, double damping, int sweeps) {
  Model model{0, std::vector<double>(users, 0.0), std::vector<double>(items, 0.0)};
  for (const auto& rating : ratings) {
    model.mean += rating.value / static_cast<double>(ratings.size());
  }
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    damp(
        ratings, damping, model.items, [](const Rating& r) { return r.item; },
        [&](const Rating& r) { return r.value - model.mean - model.users[r.user]; });
    damp(
        ratings, damping, model.users, [](const Rating& r) { return r.user; },
        [&](const Rating& r) { return r.value - model.mean - model.items[r.item]; });
  }
  return model;
}

void write(const std::string& path, const std::vector<Rating>& ratings, const Names& users, const Names& items,
           const Model& model, const std::string& offsets_path) {
  std::ofstream out(path);
  std::ofstream offsets;
  if (!offsets_path.empty()) {
    offsets.open(offsets_path);
  }
  char number[64];
  for (const auto& rating : ratings) {
    const double offset = model.offset(rating);
    std::snprintf(number, sizeof number, " %.6f\n", rating.value - offset);
    out << users.name(rating.user) << ' ' << items.name(rating.item) << number;
    if (offsets.is_open()) {
      std::snprintf(number, sizeof number, "%.6f\n", offset);
      offsets << number;
    }
  }
  if (!out.flush() || (offsets.is_open() && !offsets.flush())) {
    throw std::runtime_error(path + ": cannot be written");
  }
}

void debias(const std::vector<std::string>& arguments) {
  Names users;
  Names items;
  const auto train = read(arguments[0], users, items);
  const auto test = read(arguments[1], users, items);
  const auto model = fit(train, users.size(), items.size(), std::stod(arguments[2]), std::stoi(arguments[3]));
  double squares = 0;
  for (const auto& rating : test) {
    const double error = rating.value - model.offset(rating);
    squares += error * error;
  }
  if (arguments.size() == 7) {
    write(arguments[4], train, users, items, model, "");
    write(arguments[5], test, users, items, model, arguments[6]);
  }
  std::printf("{\"mean\": %.9g, \"rmse\": %.9g}\n", model.mean, std::sqrt(squares / static_cast<double>(test.size())));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() != 4 && arguments.size() != 7) {
    std::cerr << "usage: orrery_bench_debias TRAIN TEST DAMPING SWEEPS [OUT_TRAIN OUT_TEST OUT_OFFSETS]\n";
    return 2;
  }
  try {
    debias(arguments);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 3;
  }
  return 0;
}
