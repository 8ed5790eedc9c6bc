#include "tools/nodes.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "engine/error.h"
#include "engine/json.h"
#include "numa/topology.h"
#include "tools/output.h"
#ifdef ORRERY_HAS_MPI
#include "dist/mpi_process.h"
#endif

namespace orrery::tools {
namespace {

constexpr const char* kSizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

std::string rank_list(const std::vector<NodeId>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

/// "VALUE on rank 0, OTHER on ranks 1, 2".
std::string by_rank(const std::vector<std::string>& values) {
  std::vector<std::pair<std::string, std::vector<NodeId>>> groups;
  for (NodeId rank = 0; rank < values.size(); ++rank) {
    const auto same =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == values[rank]; });
    if (same != groups.end()) {
      same->second.push_back(rank);
    } else {
      groups.push_back({values[rank], {rank}});
    }
  }
  std::string text;
  for (const auto& [value, ranks] : groups) {
    text += (text.empty() ? "" : ", ") + (value.empty() ? "nothing" : value) + " on " + rank_list(ranks);
  }
  return text;
}

}  // namespace

unsigned launched_ranks() {
  for (const char* variable : kSizes) {
    if (const char* size = std::getenv(variable)) return static_cast<unsigned>(std::max(1, std::atoi(size)));
  }
  return std::getenv("PMIX_RANK") != nullptr ? 0 : 1;
}

void require_one_process() {
  const unsigned ranks = launched_ranks();
  if (ranks > 1) {
    throw usage_error("started as " + std::to_string(ranks) +
                      " ranks, but only `orrery train` runs on several: start it without mpirun");
  }
}

#ifdef ORRERY_HAS_MPI

struct Nodes::Job {
  explicit Job(const std::atomic<bool>& told_to_end) : process(options(told_to_end)), transport(process.open()) {}

  MpiOptions options(const std::atomic<bool>& told_to_end) {
    MpiOptions mpi;
    mpi.told_to_end = &told_to_end;
    mpi.last_words = [this](const std::string& text) { report({0, text + advice_now()}); };
    return mpi;
  }
  std::string advice_now() {
    const std::lock_guard lock(mutex);
    return advice;
  }
  int leave(const Farewell& mine, const std::string& because);
  void speak(const MpiProcess::Farewells& farewells, const std::string& because);

  std::mutex mutex;
  std::string advice;
  MpiProcess process;
  std::unique_ptr<Transport> transport;
};

// What failed on its own account, each text once with the ranks that say it; else what was lost. Said by the first of
// the ranks that are there.
void Nodes::Job::speak(const MpiProcess::Farewells& farewells, const std::string& because) {
  NodeId first = 0;
  while (!farewells[first]) ++first;
  if (first != process.rank()) return;
  std::map<std::string, std::vector<NodeId>> ranks_of;
  bool failed = false;
  for (NodeId rank = 0; rank < farewells.size(); ++rank) {
    if (!farewells[rank] || !farewells[rank]->failed) continue;
    failed = true;
    if (!farewells[rank]->text.empty()) ranks_of[farewells[rank]->text].push_back(rank);
  }
  for (const auto& [text, ranks] : ranks_of) {
    report({0, ranks.size() == farewells.size() ? text : rank_list(ranks) + ": " + text});
  }
  if (!failed && !because.empty()) report({0, because + advice_now()});
}

// The same on all ranks that are there: that of the first failure, else that of the first rank.
int Nodes::Job::leave(const Farewell& mine, const std::string& because) {
  transport.reset();
  const MpiProcess::Farewells farewells = process.close(mine, [&](const auto& all) { speak(all, because); });
  for (const auto& farewell : farewells) {
    if (farewell && farewell->failed) return farewell->exit_code;
  }
  return farewells.front() && because.empty() ? farewells.front()->exit_code : static_cast<int>(ErrorKind::lost);
}

Nodes::Nodes(const std::atomic<bool>& told_to_end) {
  const unsigned launched = launched_ranks();
  if (launched == 1) return;
  job_ = std::make_unique<Job>(told_to_end);
  if (launched > 1 && job_->process.ranks() == 1) {
    throw usage_error(
        "started as " + std::to_string(launched) +
        " ranks, but MPI sees one process only: the mpirun of another MPI than this program was built with?");
  }
}

NodeId Nodes::node() const { return job_ ? job_->process.rank() : 0; }
NodeId Nodes::count() const { return job_ ? job_->process.ranks() : 1; }
Transport* Nodes::transport() { return several() ? job_->transport.get() : nullptr; }

void Nodes::check() const {
  if (job_) job_->process.check();
}

std::vector<Bytes> Nodes::exchange(Bytes mine) {
  if (job_) return job_->process.exchange(std::move(mine));
  return {std::move(mine)};
}

unsigned Nodes::ranks_here() const { return job_ ? static_cast<unsigned>(job_->process.ranks_here().size()) : 1U; }

Nodes::Share Nodes::fair_share() {
  const std::vector<unsigned> mine = Topology::detect().pus();
  const auto bytes = std::as_bytes(std::span(mine));
  const std::vector<Bytes> all = exchange(Bytes(bytes.begin(), bytes.end()));
  std::map<unsigned, unsigned> users;  // of a processor
  for (const NodeId rank : job_->process.ranks_here()) {
    std::vector<unsigned> pus(all[rank].size() / sizeof(unsigned));
    std::copy_n(all[rank].data(), all[rank].size(), std::as_writable_bytes(std::span(pus)).data());
    for (const unsigned pu : pus) ++users[pu];
  }
  double share = 0;
  for (const unsigned pu : mine) share += 1.0 / users[pu];
  Share fair{.threads = std::max(1U, static_cast<unsigned>(share + 1e-9)), .warning = {}};
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr && static_cast<long>(users.size()) < online) {
    fair.warning = "the ranks of this host may use " + std::to_string(users.size()) + " of its " +
                   std::to_string(online) +
                   " processors: mpirun binds one or two ranks to a core each unless told --bind-to none";
  }
  return fair;
}

void Nodes::set_advice(std::string advice) {
  if (!job_) return;
  const std::lock_guard lock(job_->mutex);
  job_->advice = std::move(advice);
}

int Nodes::leave(int exit_code) {
  if (!job_) return exit_code;
  return job_->leave({.failed = false, .exit_code = exit_code, .text = {}}, {});
}

int Nodes::leave(const Failure& failure) {
  if (!job_) return report(failure);
  // A node that ends because another one did says nothing of its own.
  const bool because_of_another = failure.exit_code == static_cast<int>(ErrorKind::lost);
  return job_->leave({.failed = !because_of_another, .exit_code = failure.exit_code, .text = failure.message},
                     because_of_another ? failure.message : "");
}

#else  // without MPI: one process

struct Nodes::Job {};

Nodes::Nodes(const std::atomic<bool>&) {
  const unsigned ranks = launched_ranks();
  if (ranks > 1) {
    throw usage_error("started as " + std::to_string(ranks) +
                      " ranks, but this program was built without MPI: start it without mpirun, or build it where "
                      "libopenmpi-dev is installed (cmake -DORRERY_MPI=ON)");
  }
}

NodeId Nodes::node() const { return 0; }
NodeId Nodes::count() const { return 1; }
Transport* Nodes::transport() { return nullptr; }
void Nodes::check() const {}
std::vector<Bytes> Nodes::exchange(Bytes mine) { return {std::move(mine)}; }
unsigned Nodes::ranks_here() const { return 1; }
Nodes::Share Nodes::fair_share() { return {}; }
void Nodes::set_advice(std::string) {}
int Nodes::leave(int exit_code) { return exit_code; }
int Nodes::leave(const Failure& failure) { return report(failure); }

#endif

Nodes::~Nodes() = default;

std::vector<std::string> Nodes::exchange(const std::string& mine) {
  const auto bytes = std::as_bytes(std::span(mine));
  std::vector<std::string> all;
  for (const Bytes& said : exchange(Bytes(bytes.begin(), bytes.end()))) {
    all.emplace_back(reinterpret_cast<const char*>(said.data()), said.size());
  }
  return all;
}

void Nodes::require_same(const Facts& facts) {
  if (!several()) return;
  const std::vector<std::string> all = exchange(json_text(Json(facts)));
  std::vector<std::string> names;  // in the order in which they are said
  std::vector<std::map<std::string, std::string>> values(all.size());
  for (NodeId rank = 0; rank < all.size(); ++rank) {
    for (const auto& [name, value] : parse_json(all[rank]).get<Facts>()) {
      values[rank][name] = value;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::string differences;
  for (const std::string& name : names) {
    std::vector<std::string> said;
    for (auto& of_rank : values) said.push_back(of_rank[name]);
    if (std::equal(said.begin() + 1, said.end(), said.begin())) continue;
    differences += (differences.empty() ? "" : "; ") + name + ": " + by_rank(said);
  }
  if (!differences.empty()) throw usage_error("the ranks do not run the same thing: " + differences);
}

}  // namespace orrery::tools
