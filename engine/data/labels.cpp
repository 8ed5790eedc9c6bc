#include "engine/data/labels.h"

#include <algorithm>
#include <vector>

namespace orrery {

std::string Labels::describe() const {
  switch (kind) {
    case LabelKind::plus_minus_one:
      return "-1/1";
    case LabelKind::zero_one:
      return "0/1";
    case LabelKind::one_to_k:
      return "1.." + std::to_string(classes);
    case LabelKind::real:
      break;
  }
  return "real";
}

Labels recognise_labels(std::span<const double> labels) {
  constexpr double kMostClasses = 10000;
  const auto all = [&](auto&& test) { return !labels.empty() && std::all_of(labels.begin(), labels.end(), test); };
  if (all([](double y) { return y == -1 || y == 1; })) return {LabelKind::plus_minus_one, 2};
  if (all([](double y) { return y == 0 || y == 1; })) return {LabelKind::zero_one, 2};
  if (!all([](double y) { return y >= 1 && y <= kMostClasses && y == static_cast<double>(static_cast<int>(y)); })) {
    return {};
  }
  const auto highest = static_cast<std::size_t>(*std::max_element(labels.begin(), labels.end()));
  std::vector<bool> present(highest + 1, false);
  for (const double y : labels) present[static_cast<std::size_t>(y)] = true;
  const bool complete = std::all_of(present.begin() + 1, present.end(), [](bool is) { return is; });
  if (!complete || highest < 2) return {};
  return {LabelKind::one_to_k, static_cast<std::uint32_t>(highest)};
}

}  // namespace orrery
