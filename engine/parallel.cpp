#include "engine/parallel.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_scheduler_observer.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>

namespace orrery {
namespace {

/// Pins each thread that enters an arena to its place of the plan and puts it back when it leaves.
class PinningObserver final : public tbb::task_scheduler_observer {
 public:
  PinningObserver(tbb::task_arena& arena, std::vector<ThreadPlace> places, std::vector<unsigned> all_pus,
                  const std::function<void(const std::string&)>& warn)
      : tbb::task_scheduler_observer(arena),
        places_(std::move(places)),
        all_pus_(std::move(all_pus)),
        pins_(std::max(kLeastSlots, places_.size())),
        warn_(warn) {
    observe(true);
  }
  ~PinningObserver() override { observe(false); }

  // A slot is one thread's between entry and exit, so slots need no lock.
  void on_scheduler_entry(bool is_worker) override {
    const auto slot = static_cast<std::size_t>(tbb::this_task_arena::current_thread_index());
    if (slot >= pins_.size()) return;
    pins_[slot].emplace(places_[slot % places_.size()]);
    // A worker is born with the mask of the thread that needed it, which was bound: that mask must not come back.
    if (is_worker) pins_[slot]->restore_to(all_pus_);
    if (!pins_[slot]->bound() && !pins_[slot]->reason().empty()) warn_(pins_[slot]->reason());
  }
  void on_scheduler_exit(bool) override {
    const auto slot = static_cast<std::size_t>(tbb::this_task_arena::current_thread_index());
    if (slot < pins_.size()) pins_[slot].reset();
  }

 private:
  static constexpr std::size_t kLeastSlots = 2;  // TBB gives an arena for one thread two slots, and may use either

  const std::vector<ThreadPlace> places_;
  const std::vector<unsigned> all_pus_;
  std::vector<std::optional<ThreadPin>> pins_;
  const std::function<void(const std::string&)>& warn_;
};

/// One parallel_for: an index that is drawn, and a count of what is not finished. Shared with tasks that may start
/// late, find nothing left and go.
struct Loop {
  Loop(std::size_t n, const std::function<void(std::size_t)>& b) : count(n), body(&b), unfinished(n) {}

  void work() {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      if (!cancelled.load()) run(i);
      if (unfinished.fetch_sub(1) == 1) unfinished.notify_all();
    }
  }

  void run(std::size_t i) {
    try {
      (*body)(i);
    } catch (...) {  // rethrown by parallel_for
      const std::lock_guard lock(mutex);
      if (error == nullptr) error = std::current_exception();
      cancelled.store(true);
    }
  }

  void wait() {
    for (std::size_t left = unfinished.load(); left != 0; left = unfinished.load()) unfinished.wait(left);
  }

  const std::size_t count;
  const std::function<void(std::size_t)>* body;
  std::atomic<std::size_t> next{0}, unfinished;
  std::atomic<bool> cancelled{false};
  std::mutex mutex;
  std::exception_ptr error;
};

/// Enqueued tasks that are not over. Shared with them: the last one may still be in done() when the waiter goes on.
class Outstanding {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void done() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [&] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;
};

}  // namespace

struct Arenas::Impl {
  std::function<void(const std::string&)> warn;
  std::optional<tbb::global_control> more_threads;
  std::deque<tbb::task_arena> arenas;
  std::deque<PinningObserver> observers;
  std::shared_ptr<Outstanding> outstanding = std::make_shared<Outstanding>();
};

Arenas::Arenas(const Topology& topology, const PinPlan& pins, std::function<void(const std::string&)> warn)
    : threads_(static_cast<unsigned>(pins.threads.size())), impl_(std::make_unique<Impl>()) {
  impl_->warn = std::move(warn);
  const std::size_t domains = topology.domains().size();
  const std::size_t lanes = std::min<std::size_t>(threads_, domains);
  lanes_.resize(lanes);
  lane_of_domain_.resize(domains);
  std::vector<std::vector<ThreadPlace>> places(lanes);
  for (DomainId d = 0; d < domains; ++d) {
    lane_of_domain_[d] = d % lanes;
    lanes_[d % lanes].domains.push_back(d);
  }
  for (std::size_t t = 0; t < pins.threads.size(); ++t) {
    const ThreadPlace& place = pins.threads[t];
    places[place.domain ? lane_of_domain_[*place.domain] : t % lanes].push_back(place);
  }
  // TBB starts no more threads than the machine has cores unless it is told to; a user who asks for 8 gets 8.
  if (threads_ > static_cast<unsigned>(tbb::info::default_concurrency())) {
    impl_->more_threads.emplace(tbb::global_control::max_allowed_parallelism, threads_);
  }
  for (std::size_t l = 0; l < lanes; ++l) {
    lanes_[l].threads = static_cast<unsigned>(places[l].size());
    impl_->arenas.emplace_back(static_cast<int>(places[l].size()), l == 0 ? 1U : 0U);
    impl_->arenas.back().initialize();
    impl_->observers.emplace_back(impl_->arenas.back(), places[l], topology.pus(), impl_->warn);
  }
}

Arenas::~Arenas() { impl_->outstanding->wait_for_none(); }

void Arenas::enqueue(std::size_t lane, std::function<void()> task) {
  impl_->outstanding->add();
  impl_->arenas[lane].enqueue([outstanding = impl_->outstanding, task = std::move(task)] {
    task();
    outstanding->done();
  });
}

void Arenas::join(const std::function<void()>& body) { impl_->arenas[0].execute(body); }

void Arenas::parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (count == 0) return;
  const auto loop = std::make_shared<Loop>(count, body);
  std::size_t helpers = std::min<std::size_t>(threads_, count) - 1;  // the calling thread is one
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    const std::size_t here = std::min<std::size_t>(helpers, lanes_[l].threads - (l == 0 ? 1 : 0));
    for (std::size_t i = 0; i < here; ++i) enqueue(l, [loop] { loop->work(); });
    helpers -= here;
  }
  join([&] { loop->work(); });
  loop->wait();
  if (loop->error != nullptr) std::rethrow_exception(loop->error);
}

}  // namespace orrery
