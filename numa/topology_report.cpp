#include "numa/topology_report.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::string size_text(std::uint64_t bytes) {
  if (bytes == 0) return "?";
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed,
                                 value < 10 && unit > 0 ? 1 : 0);
  return std::string(text.data(), end.ptr) + ' ' + kUnits[unit];
}

/// "0-3,8" for {0,1,2,3,8}.
std::string ranges(const std::vector<unsigned>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (end - i > 1) text += "-" + std::to_string(numbers[end - 1]);
    i = end;
  }
  return text;
}

std::string counted(std::size_t number, const char* word) {
  return std::to_string(number) + ' ' + word + (number == 1 ? "" : "s");
}

void write_domain(std::ostream& out, const Domain& domain) {
  out << "  domain " << domain.id << ": ";
  if (domain.os_node >= 0) out << "node " << domain.os_node << ", ";
  if (domain.package >= 0) out << "package " << domain.package << ", ";
  out << counted(domain.cores.size(), "core") << ", PUs " << ranges(domain.pus()) << ", memory "
      << size_text(domain.memory_bytes);
  if (domain.memory_node != domain.os_node) out << " of node " << domain.memory_node;
  if (domain.l3_bytes != 0) out << ", L3 " << size_text(domain.l3_bytes);
  out << '\n';
}

void write_distances(std::ostream& out, const Topology& topology) {
  if (topology.domains().size() < 2) return;
  if (topology.distances().empty()) {
    out << "  distances: not known\n";
    return;
  }
  for (std::size_t row = 0; row < topology.distances().size(); ++row) {
    out << (row == 0 ? "  distances:" : "            ");
    for (const unsigned value : topology.distances()[row]) out << ' ' << value;
    out << '\n';
  }
}

void write_plan(std::ostream& out, const Topology& topology, const PinPlan& plan) {
  out << "plan for " << counted(plan.threads.size(), "thread") << ": bound to "
      << (plan.binding == Binding::none ? "nothing"
          : plan.binding == Binding::pu ? "single PUs"
                                        : "their domain")
      << '\n';
  for (const Domain& domain : topology.domains()) {
    if (plan.visiting()) break;
    out << "  domain " << domain.id << ": " << counted(plan.threads_per_domain[domain.id], "thread") << ", PUs";
    for (const ThreadPlace& place : plan.threads) {
      if (place.domain == domain.id) out << ' ' << *place.pu;
    }
    out << '\n';
  }
  if (!plan.reason.empty()) out << "  " << plan.reason << '\n';
  if (!topology.is_this_system()) out << "  a plan for another machine: nothing is bound here\n";
}

void write_remarks(std::ostream& out, const Topology& topology) {
  for (const std::string& warning : topology.warnings()) out << "warning: " << warning << '\n';
  for (const std::string& note : topology.notes()) out << "note: " << note << '\n';
}

Json domain_json(const Domain& domain) {
  Json cores = Json::array();
  for (const Core& core : domain.cores) {
    cores.push_back({{"pus", core.pus}, {"package", core.package}, {"l3", core.l3}});
  }
  return {{"id", domain.id},
          {"os_node", domain.os_node},
          {"memory_node", domain.memory_node},
          {"package", domain.package},
          {"memory_bytes", domain.memory_bytes},
          {"l3_bytes", domain.l3_bytes},
          {"pus", domain.pus()},
          {"cores", std::move(cores)}};
}

Json machine_json(const Topology& topology) {
  Json json;
  json["source"] = topology.source();
  json["this_system"] = topology.is_this_system();
  json["allowed_cores"] = topology.allowed_cores();
  json["allowed_pus"] = topology.allowed_pus();
  json["cpu_quota"] = topology.cpu_quota() > 0 ? Json(topology.cpu_quota()) : Json();
  json["can_bind_threads"] = topology.can_bind_threads();
  json["can_bind_memory"] = topology.can_bind_memory();
  json["caches"] = {{"l1d", topology.caches().l1d}, {"l2", topology.caches().l2}, {"l3", topology.caches().l3}};
  json["packages"] = Json::array();
  for (const Package& package : topology.packages()) {
    json["packages"].push_back({{"os_index", package.os_index}, {"domains", package.domains}});
  }
  json["domains"] = Json::array();
  for (const Domain& domain : topology.domains()) json["domains"].push_back(domain_json(domain));
  json["memory_only"] = Json::array();
  for (const MemoryNode& node : topology.memory_only()) {
    json["memory_only"].push_back(
        {{"os_node", node.os_node}, {"memory_bytes", node.memory_bytes}, {"nearest_domain", node.nearest_domain}});
  }
  json["distances"] = topology.distances().empty() ? Json() : Json(topology.distances());
  json["warnings"] = topology.warnings();
  json["notes"] = topology.notes();
  return json;
}

Json plan_json(const PinPlan& plan) {
  Json threads = Json::array();
  for (const ThreadPlace& place : plan.threads) {
    threads.push_back({{"domain", place.domain ? Json(*place.domain) : Json()},
                       {"pu", place.pu ? Json(*place.pu) : Json()},
                       {"mask", place.mask}});
  }
  return {{"threads", plan.threads.size()}, {"binding", to_string(plan.binding)},
          {"visiting", plan.visiting()},    {"oversubscribed", plan.oversubscribed},
          {"reason", plan.reason},          {"threads_per_domain", plan.threads_per_domain},
          {"places", std::move(threads)}};
}

/// File names may hold any bytes; what is not UTF-8 is replaced rather than thrown over.
std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::detail::error_handler_t::replace);
}

}  // namespace

std::string Topology::description() const {
  std::ostringstream out;
  out << source_ << ": " << counted(domains_.size(), "NUMA domain") << ", " << counted(allowed_cores(), "core") << ", "
      << counted(allowed_pus(), "PU") << '\n';
  if (!packages_.empty()) out << "  " << counted(packages_.size(), "package") << '\n';
  out << "  caches: L1d " << size_text(caches_.l1d) << ", L2 " << size_text(caches_.l2) << ", L3 "
      << size_text(caches_.l3) << '\n';
  for (const Domain& domain : domains_) write_domain(out, domain);
  for (const MemoryNode& node : memory_only_) {
    out << "  memory only: ";
    if (node.os_node >= 0) out << "node " << node.os_node << ", ";
    out << size_text(node.memory_bytes) << ", nearest to domain " << node.nearest_domain << '\n';
  }
  write_distances(out, *this);
  return std::move(out).str();
}

std::string topology_text(const Topology& topology, const PinPlan& plan) {
  std::ostringstream out;
  out << topology.description();
  write_plan(out, topology, plan);
  write_remarks(out, topology);
  return std::move(out).str();
}

std::string topology_json(const Topology& topology, const PinPlan& plan) {
  Json json = machine_json(topology);
  json["plan"] = plan_json(plan);
  return dumped(json, 2) + '\n';
}

std::string topology_record(const Topology& topology) { return dumped(machine_json(topology), -1); }

}  // namespace orrery
