#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <string>

#include "engine/error.h"
#include "engine/params.h"
#include "engine/simulated_cluster.h"

namespace orrery {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};
constexpr std::array<Unit, 3> kTimes{{{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
constexpr std::array<Unit, 6> kRates{
    {{"kb", 125}, {"Mb", 125e3}, {"Gb", 125e6}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}}};
constexpr std::array<Unit, 1> kFactors{{{"x", 1}}};

Error bad_word(std::string_view word, const std::string& expected) {
  return usage_error("--simulate: " + orrery::quoted(word) + ": expected " + expected);
}

/// A number with one of the units behind it, above or equal to `least`.
template <std::size_t N>
double measure(std::string_view word, std::string_view text, const std::array<Unit, N>& units, double least,
               const std::string& expected) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<std::size_t>(read.ptr - text.data()));
  for (const Unit& known : units) {
    if (read.ec == std::errc{} && std::isfinite(value) && value >= least && unit == known.name) {
      return value * known.scale;
    }
  }
  throw bad_word(word, expected);
}

VirtualTime time_of(std::string_view word, std::string_view text) {
  return measure(word, text, kTimes, 0, "a time such as 500us, 10ms or 2s");
}

void set_straggler(SimulationSpec& spec, std::string_view word, std::string_view text) {
  using Straggler = SimulationSpec::Straggler;
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view amount = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (kind == "powerlaw") {
    spec.straggler = Straggler::powerlaw;
    if (!amount.empty()) spec.exponent = parse_real("--simulate: straggler:powerlaw", amount);
    if (spec.exponent <= 1) throw bad_word(word, "an exponent above 1: with less the mean is infinite");
    return;
  }
  if (kind != "slow" && kind != "node" && kind != "burst") {
    throw bad_word(word, "straggler:slow:2x, straggler:node:2x, straggler:burst:2x or straggler:powerlaw:2");
  }
  spec.straggler = kind == "slow" ? Straggler::slow : kind == "node" ? Straggler::node : Straggler::burst;
  if (!amount.empty()) spec.factor = measure(word, amount, kFactors, 1, "a factor of at least 1, such as 2x");
}

void set_loss(SimulationSpec& spec, std::string_view word, std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) throw bad_word(word, "a node and a time, such as lost:3@2s");
  spec.lost = static_cast<NodeId>(parse_unsigned("--simulate: lost", text.substr(0, at)));
  spec.lost_at = time_of(word, text.substr(at + 1));
}

void set_word(SimulationSpec& spec, std::string_view word) {
  const std::size_t colon = word.find(':');
  const std::string_view name = word.substr(0, colon);
  const std::string_view value = colon == std::string_view::npos ? "" : word.substr(colon + 1);
  if (name == "nodes") {
    const std::uint64_t nodes = parse_unsigned("--simulate: nodes", value);
    if (nodes < 1 || nodes > 4096) throw bad_word(word, "1 to 4096 nodes");
    spec.nodes = static_cast<NodeId>(nodes);
  } else if (name == "delay") {
    spec.delay = time_of(word, value);
  } else if (name == "jitter") {
    spec.jitter = time_of(word, value);
  } else if (name == "rate") {
    spec.bytes_per_second = measure(word, value, kRates, 1e-9, "a rate such as 100Mb, 1Gb or 10GB");
  } else if (name == "compute") {
    spec.measured = value == "measured";
    if (!spec.measured) spec.compute = time_of(word, value);
  } else if (name == "spread") {
    spec.spread = parse_real("--simulate: spread", value);
    if (spec.spread < 0 || spec.spread >= 1) throw bad_word(word, "a spread from 0 to below 1");
  } else if (name == "straggler") {
    set_straggler(spec, word, value);
  } else if (name == "burst") {
    spec.burst = time_of(word, value);
  } else if (name == "lost") {
    set_loss(spec, word, value);
  } else if (name == "seed") {
    spec.seed = parse_unsigned("--simulate: seed", value);
  } else {
    const std::array<std::string, 10> names{"nodes",  "delay",     "jitter", "rate", "compute",
                                            "spread", "straggler", "burst",  "lost", "seed"};
    throw usage_error("--simulate: unknown word " + orrery::quoted(name) + suggestion(name, names));
  }
}

}  // namespace

SimulationSpec SimulationSpec::parse(std::string_view text) {
  SimulationSpec spec;
  std::set<std::string_view> said;
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (!said.insert(word.substr(0, word.find(':'))).second) throw bad_word(text, "each word once");
    set_word(spec, word);
    at = end;
  }
  if (!said.contains("nodes")) throw bad_word(text, "nodes:N among its words");
  if (spec.lost && *spec.lost >= spec.nodes) throw bad_word(text, "a lost node below nodes");
  return spec;
}

}  // namespace orrery
