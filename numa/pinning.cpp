#include "numa/pinning.h"

#include <numaif.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "numa/cpu_mask.h"
#include "numa/system_files.h"

namespace orrery {
namespace {

/// Splits `total` in proportion to the weights; every share is the exact quota rounded down or up (largest remainders,
/// ties to the first). Hamilton's method: with total <= sum it never gives a share above its weight.
std::vector<unsigned> shares(unsigned total, const std::vector<unsigned>& weights) {
  const std::uint64_t sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  std::vector<unsigned> result(weights.size(), 0);
  if (sum == 0 || total == 0) return result;
  std::vector<std::uint64_t> remainder(weights.size());
  unsigned given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t scaled = std::uint64_t{total} * weights[i];
    result[i] = static_cast<unsigned>(scaled / sum);
    remainder[i] = scaled % sum;
    given += result[i];
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainder[a] > remainder[b]; });
  for (std::size_t i = 0; given < total; ++i, ++given) ++result[order[i]];
  return result;
}

/// A domain with few cores may round to nothing; it takes a thread from the one that has most.
void give_everybody_one(std::vector<unsigned>& counts) {
  for (unsigned& count : counts) {
    if (count != 0) continue;
    --*std::max_element(counts.begin(), counts.end());
    count = 1;
  }
}

/// Threads of each domain, for threads >= domains.
std::vector<unsigned> threads_per_domain(const Topology& topology, unsigned threads) {
  std::vector<unsigned> cores, pus, siblings;
  for (const Domain& domain : topology.domains()) {
    cores.push_back(static_cast<unsigned>(domain.cores.size()));
    pus.push_back(domain.pu_count());
    siblings.push_back(pus.back() - cores.back());
  }
  std::vector<unsigned> counts(cores.size(), 0);
  const auto add = [&](const std::vector<unsigned>& more, unsigned times) {
    for (std::size_t d = 0; d < counts.size(); ++d) counts[d] += more[d] * times;
  };
  add(pus, threads / topology.allowed_pus());  // oversubscribed: whole rounds first
  const unsigned rest = threads % topology.allowed_pus();
  if (rest <= topology.allowed_cores()) {
    add(shares(rest, cores), 1);
  } else {
    add(cores, 1);
    add(shares(rest - topology.allowed_cores(), siblings), 1);
  }
  give_everybody_one(counts);
  return counts;
}

/// Cores of a domain so that neighbours in the list have different level-3 caches.
std::vector<const Core*> spread_cores(const Domain& domain) {
  std::vector<int> caches;
  for (const Core& core : domain.cores) {
    if (std::find(caches.begin(), caches.end(), core.l3) == caches.end()) caches.push_back(core.l3);
  }
  std::vector<std::vector<const Core*>> groups(caches.size());
  for (const Core& core : domain.cores) {
    groups[static_cast<std::size_t>(std::find(caches.begin(), caches.end(), core.l3) - caches.begin())].push_back(
        &core);
  }
  std::vector<const Core*> order;
  for (std::size_t i = 0; order.size() < domain.cores.size(); ++i) {
    for (const auto& group : groups) {
      if (i < group.size()) order.push_back(group[i]);
    }
  }
  return order;
}

/// PUs of a domain in the order in which threads take them: first ones of all cores, then second ones.
std::vector<unsigned> pu_order(const Domain& domain) {
  const std::vector<const Core*> cores = spread_cores(domain);
  std::vector<unsigned> order;
  for (std::size_t i = 0; order.size() < domain.pu_count(); ++i) {
    for (const Core* core : cores) {
      if (i < core->pus.size()) order.push_back(core->pus[i]);
    }
  }
  return order;
}

void choose_binding(PinPlan& plan, const Topology& topology, unsigned threads, Binding tightest) {
  plan.oversubscribed = threads > topology.allowed_pus();
  if (threads < topology.domains().size()) {
    plan.reason = "fewer threads than domains: threads visit the domains in turn and are not bound";
  } else if (tightest == Binding::none) {
    plan.reason = "binding is switched off";
  } else if (plan.oversubscribed) {
    plan.binding = Binding::domain;
    plan.reason = "more threads than PUs: threads are bound to their domain only";
  } else if (threads < topology.allowed_cores()) {
    plan.binding = Binding::domain;
    plan.reason = "fewer threads than cores: threads are bound to their domain only and leave the choice to the kernel";
  } else if (tightest == Binding::domain) {
    plan.binding = Binding::domain;
    plan.reason = "binding to single PUs is switched off";
  } else {
    plan.binding = Binding::pu;
  }
}

/// Node for the memory of a thread that is bound to the domain, -1 when it need not be chosen.
int node_to_use(const Topology& topology, const Domain& domain) {
  const bool choice = topology.domains().size() > 1 || !topology.memory_only().empty();
  return choice && topology.is_this_system() && topology.can_bind_memory() ? domain.memory_node : -1;
}

/// Moves the pages around the present end of the stack to the node. Pages that are not there yet need nothing: the
/// bound thread will touch them first. Refusal is no loss: caches hide where a stack lies, most of the time.
void bring_stack_to(int node) {
  constexpr std::uintptr_t kPages = 32;  // half of them below: frames that were in use before and will be again
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) / page * page;
  std::array<void*, kPages> pages{};
  std::array<int, kPages> status{}, target{};
  for (std::uintptr_t i = 0; i < kPages; ++i) {
    pages[i] = reinterpret_cast<void*>(here + i * page - kPages / 2 * page);
  }
  if (move_pages(0, kPages, pages.data(), nullptr, status.data(), 0) != 0) return;
  unsigned long moving = 0;
  for (std::size_t i = 0; i < kPages; ++i) {
    if (status[i] < 0 || status[i] == node) continue;
    pages[moving] = pages[i];
    target[moving++] = node;
  }
  if (moving > 0) move_pages(0, moving, pages.data(), target.data(), status.data(), MPOL_MF_MOVE);
}

}  // namespace

const char* to_string(Binding binding) {
  switch (binding) {
    case Binding::none:
      return "none";
    case Binding::domain:
      return "domain";
    case Binding::pu:
      return "pu";
  }
  return "?";
}

PinPlan plan_pins(const Topology& topology, unsigned threads, Binding tightest) {
  if (threads == 0) throw std::invalid_argument("plan_pins: threads is 0, at least 1 is needed");
  PinPlan plan;
  choose_binding(plan, topology, threads, tightest);
  if (threads < topology.domains().size()) {
    plan.threads.resize(threads);
    plan.threads_per_domain.assign(topology.domains().size(), 0);
    return plan;
  }
  plan.threads_per_domain = threads_per_domain(topology, threads);
  for (const Domain& domain : topology.domains()) {
    const std::vector<unsigned> order = pu_order(domain);
    for (unsigned t = 0; t < plan.threads_per_domain[domain.id]; ++t) {
      ThreadPlace place{domain.id, order[t % order.size()], {}, -1};
      if (topology.is_this_system() && plan.binding == Binding::pu) place.mask = {*place.pu};
      if (topology.is_this_system() && plan.binding == Binding::domain) place.mask = domain.pus();
      if (!place.mask.empty()) place.memory_node = node_to_use(topology, domain);
      plan.threads.push_back(std::move(place));
    }
  }
  return plan;
}

ThreadPin::ThreadPin(const ThreadPlace& place) {
  if (!place.mask.empty()) bind(place.mask, place.memory_node);
}

ThreadPin ThreadPin::to_pu(const Topology& topology, unsigned pu) {
  ThreadPin pin;
  if (!topology.is_this_system()) {
    pin.reason_ = "thread not bound: the topology is not this machine's (" + topology.source() + ")";
  } else {
    const int domain = topology.domain_of_pu(pu);
    pin.bind({pu}, domain < 0 ? -1 : node_to_use(topology, topology.domains()[static_cast<std::size_t>(domain)]));
  }
  return pin;
}

ThreadPin ThreadPin::to_domain(const Topology& topology, unsigned domain) {
  ThreadPin pin;
  if (domain >= topology.domains().size()) {
    pin.reason_ = "thread not bound: there is no domain " + std::to_string(domain);
  } else if (!topology.is_this_system()) {
    pin.reason_ = "thread not bound: the topology is not this machine's (" + topology.source() + ")";
  } else {
    pin.bind(topology.domains()[domain].pus(), node_to_use(topology, topology.domains()[domain]));
  }
  return pin;
}

void ThreadPin::bind(const std::vector<unsigned>& pus, int memory_node) {
  thread_ = static_cast<int>(gettid());
  former_mask_ = detail::thread_mask(thread_);
  if (former_mask_.empty()) {
    reason_ = "thread not bound: its CPU mask cannot be read: " + detail::system_reason(errno);
    return;
  }
  // A mask that cannot be given back must not be changed, so reading comes first.
  if (!detail::set_thread_mask(thread_, detail::mask_of(pus))) {
    const int error_number = errno;
    reason_ = "thread not bound to " + std::string(pus.size() == 1 ? "PU " : "the domain of PU ") +
              std::to_string(pus.front()) + ": " +
              (error_number == EINVAL ? std::string("it is offline, absent or not allowed")
                                      : detail::system_reason(error_number));
    return;
  }
  bound_ = true;
  if (memory_node >= 0) bring_stack_to(memory_node);
}

ThreadPin::ThreadPin(ThreadPin&& other) noexcept
    : bound_(std::exchange(other.bound_, false)),
      thread_(other.thread_),
      former_mask_(std::move(other.former_mask_)),
      reason_(std::move(other.reason_)) {}

ThreadPin& ThreadPin::operator=(ThreadPin&& other) noexcept {
  if (this != &other) {
    release();
    bound_ = std::exchange(other.bound_, false);
    thread_ = other.thread_;
    former_mask_ = std::move(other.former_mask_);
    reason_ = std::move(other.reason_);
  }
  return *this;
}

ThreadPin::~ThreadPin() { release(); }

void ThreadPin::restore_to(const std::vector<unsigned>& pus) {
  if (bound_) former_mask_ = detail::mask_of(pus);
}

void ThreadPin::release() noexcept {
  // A refusal here means that all CPUs of the former mask have gone; the kernel has then chosen others itself.
  if (bound_) detail::set_thread_mask(thread_, former_mask_);
  bound_ = false;
}

int current_cpu() noexcept { return sched_getcpu(); }

int current_node() noexcept {
  unsigned cpu = 0, node = 0;
  return getcpu(&cpu, &node) == 0 ? static_cast<int>(node) : -1;
}

unsigned allowed_cpu_count() {
  const std::size_t count = detail::cpus_of(detail::thread_mask(0)).size();
  return count == 0 ? 1 : static_cast<unsigned>(count);
}

}  // namespace orrery
