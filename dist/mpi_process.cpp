#include "dist/mpi_process.h"

#include <mpi.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "dist/doorbell.h"
#include "dist/frame.h"
#include "dist/links.h"
#include "dist/liveness.h"
#include "dist/mpi_error.h"
#include "engine/assert.h"
#include "engine/error.h"
#include "engine/wire.h"

namespace orrery {

using dist::Frame;
using dist::Liveness;
using dist::Seconds;
using dist::Time;
using std::chrono::microseconds;

namespace {

constexpr std::uint32_t kTalk = ~std::uint32_t{0};  ///< the session of exchange()

// How long the communication thread waits for a ring: from short to long while nothing moves. See doorbell.h.
constexpr microseconds kShortest{20};
constexpr microseconds kLongestInTransfer{80};  ///< on the receiving side, and between hosts on both
constexpr microseconds kLongestWithoutBell{150};
constexpr microseconds kLongest{2000};
constexpr microseconds kLongestOnOneHost{10000};  ///< where no ring gets lost

Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes packed(const Farewell& farewell) {
  Bytes bytes;
  put(bytes, std::int32_t{farewell.exit_code});
  put(bytes, std::int32_t{farewell.failed ? 1 : 0});
  put_all(bytes, std::span<const char>(farewell.text));
  return bytes;
}

Farewell unpacked_farewell(const Bytes& bytes) {
  WireReader reader(bytes);
  Farewell farewell;
  farewell.exit_code = reader.take<std::int32_t>();
  farewell.failed = reader.take<std::int32_t>() != 0;
  farewell.text = text_of(std::span(bytes).subspan(2 * sizeof(std::int32_t)));
  return farewell;
}

/// MPI's own state while it runs. Made, used and destroyed by the communication thread.
struct Mpi {
  Mpi() {
    int running = 0;
    dist::check(MPI_Initialized(&running), "MPI_Initialized");
    if (running != 0) throw Error(ErrorKind::internal, "MPI can be started only once in a process");
    // With more ranks than cores Open MPI gives up the processor in every call that finds nothing, which is for
    // programs that spin. This one sleeps between calls, and on a loaded machine each would cost it a time slice.
    ::setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);
    int level = MPI_THREAD_SINGLE;
    dist::check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
    if (level < MPI_THREAD_FUNNELED)
      throw Error(ErrorKind::internal, "this MPI knows no threads (MPI_THREAD_FUNNELED)");
    dist::check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    dist::check(MPI_Comm_dup(MPI_COMM_WORLD, &all), "MPI_Comm_dup");
    dist::check(MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    int number = 0;
    dist::check(MPI_Comm_rank(all, &number), "MPI_Comm_rank");
    rank = static_cast<NodeId>(number);
    dist::check(MPI_Comm_size(all, &number), "MPI_Comm_size");
    ranks = static_cast<NodeId>(number);
  }

  /// `mine` of every rank. Blocks: for the start only.
  template <class T>
  std::vector<T> all_of(const T& mine) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all_values(ranks);
    dist::check(MPI_Allgather(&mine, sizeof(T), MPI_BYTE, all_values.data(), sizeof(T), MPI_BYTE, all),
                "MPI_Allgather");
    return all_values;
  }

  /// The lowest rank of each rank's host.
  std::vector<NodeId> first_of_host() const {
    MPI_Comm host = MPI_COMM_NULL;
    dist::check(MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
    NodeId first = 0;
    dist::check(MPI_Allreduce(&rank, &first, 1, MPI_UINT32_T, MPI_MIN, host), "MPI_Allreduce");
    dist::check(MPI_Comm_free(&host), "MPI_Comm_free");
    return all_of(first);
  }

  std::vector<std::string> names() const {
    struct Name {
      char text[MPI_MAX_PROCESSOR_NAME + 1] = {};
    };
    Name mine;
    int length = 0;
    dist::check(MPI_Get_processor_name(mine.text, &length), "MPI_Get_processor_name");
    std::vector<std::string> all_names;
    for (const Name& name : all_of(mine)) all_names.emplace_back(name.text);
    return all_names;
  }

  void finalize() {
    dist::check(MPI_Comm_free(&all), "MPI_Comm_free");
    dist::check(MPI_Finalize(), "MPI_Finalize");
  }

  MPI_Comm all = MPI_COMM_NULL;
  NodeId rank = 0, ranks = 1;
};

}  // namespace

/// Three parties: any thread posts frames (`outbox_`) and waits for talk; the communication thread moves them and keeps
/// watch; the delivery thread calls receivers. What they share is under one mutex, held for a few instructions.
class MpiProcess::Impl {
 public:
  explicit Impl(MpiOptions options) : options_(std::move(options)) {
    std::promise<void> started;
    std::future<void> is_started = started.get_future();
    communication_ = std::thread([this, &started] { communicate(started); });
    try {
      is_started.get();
    } catch (...) {
      communication_.join();
      throw;
    }
    delivery_ = std::thread([this] { deliver(); });
  }

  ~Impl() {
    if (communication_.joinable()) close({}, {});
  }

  NodeId rank() const noexcept { return rank_; }
  NodeId ranks() const noexcept { return ranks_; }
  const std::vector<std::string>& hosts() const noexcept { return hosts_; }
  std::vector<NodeId> ranks_here() const {
    std::vector<NodeId> here;
    for (NodeId r = 0; r < ranks_; ++r) {
      if (is_on_this_host(r)) here.push_back(r);
    }
    return here;
  }

  std::unique_ptr<Transport> open() {
    const std::lock_guard lock(mutex_);
    return std::make_unique<Session>(*this, next_session_++);
  }

  std::vector<Bytes> exchange(Bytes mine) {
    std::unique_lock lock(mutex_);
    const Clock number = next_talk_++;
    for (NodeId r = 0; r < ranks_; ++r) {
      if (r == rank_) continue;
      Frame frame;
      frame.session = kTalk;
      frame.message.clock = number;
      frame.message.payload = mine;
      outbox_.emplace_back(r, std::move(frame));
    }
    bell_.poke();
    auto& pieces = talk_[number];
    pieces[rank_] = std::move(mine);
    // A rank that has left after it said its piece takes nothing away.
    const auto is_settled = [&] {
      for (NodeId r = 0; r < ranks_; ++r) {
        if (!pieces.contains(r) && !gone_[r]) return false;
      }
      return true;
    };
    talked_.wait(lock, is_settled);
    if (pieces.size() != ranks_) throw failure_ ? failure_error() : gone_error();
    std::vector<Bytes> all;
    for (auto& [from, bytes] : pieces) all.push_back(std::move(bytes));
    talk_.erase(number);
    return all;
  }

  void check() const {
    // acquire: pairs with the release in fail(); the failure itself is read under the mutex.
    if (!has_failed_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    throw failure_error();
  }

  Farewells close(Farewell mine, const std::function<void(const Farewells&)>& before_end) {
    {
      std::unique_lock lock(mutex_);
      ORRERY_CHECK(!closing_);
      farewells_[rank_] = std::move(mine);
      closing_ = Time::clock::now();
      stop_delivery_ = true;
      arrived_.notify_all();
      bell_.poke();
      closed_.wait(lock, [&] { return all_said_; });
    }
    // Farewells do not change any more. The communication thread waits until it may end MPI.
    if (before_end) before_end(farewells_);
    {
      const std::lock_guard lock(mutex_);
      may_end_ = true;
      closed_.notify_all();
    }
    communication_.join();
    delivery_.join();
    return farewells_;
  }

  Counters counters() const {
    Counters counters;
    counters.turns = turns_.load();
    counters.pieces = pieces_.load();
    counters.woken = woken_.load();
    timespec time{};
    clockid_t clock{};
    if (pthread_getcpuclockid(const_cast<std::thread&>(communication_).native_handle(), &clock) == 0 &&
        clock_gettime(clock, &time) == 0) {
      counters.cpu_seconds = static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }
    return counters;
  }

 private:
  struct Failure {
    NodeId rank = 0;
    std::string text;
    Time time;
  };

  /// What has come for one transport. Under the mutex.
  struct Box {
    Receiver* receiver = nullptr;
    std::deque<Message> messages;
    bool delivering = false;
  };

  class Session final : public Transport {
   public:
    Session(Impl& process, std::uint32_t number) : process_(process), number_(number) {
      process.boxes_[number];  // unless a message of it came before
    }
    ~Session() override {
      const std::lock_guard lock(process_.mutex_);
      process_.boxes_.erase(number_);
    }
    NodeId node() const override { return process_.rank_; }
    NodeId nodes() const override { return process_.ranks_; }
    void attach(Receiver& receiver) override { process_.attach(number_, receiver); }
    void detach() override { process_.detach(number_); }
    void send(NodeId to, Message message) override { process_.send(number_, to, std::move(message)); }

   private:
    Impl& process_;
    const std::uint32_t number_;
  };

  // --- any thread
  // --------------------------------------------------------------------------------------------------------

  void send(std::uint32_t session, NodeId to, Message message) {
    ORRERY_CHECK(to < ranks_ && to != rank_);
    Frame frame;
    frame.session = session;
    frame.message = std::move(message);
    {
      const std::lock_guard lock(mutex_);
      outbox_.emplace_back(to, std::move(frame));
    }
    bell_.poke();
  }

  void attach(std::uint32_t session, Receiver& receiver) {
    {
      const std::lock_guard lock(mutex_);
      Box& box = boxes_.at(session);
      box.receiver = &receiver;
      if (failure_) box.messages.push_back(failure_message());
    }
    arrived_.notify_one();
  }

  void detach(std::uint32_t session) {
    std::unique_lock lock(mutex_);
    Box& box = boxes_.at(session);
    box.receiver = nullptr;
    delivered_.wait(lock, [&] { return !box.delivering; });
  }

  Error failure_error() const {
    return {ErrorKind::lost, "node " + std::to_string(failure_->rank) + " failed: " + failure_->text};
  }

  Error gone_error() const { return {ErrorKind::lost, "another rank has ended already"}; }

  Message failure_message() const {
    Message message;
    message.kind = Message::Kind::failed;
    message.from = failure_->rank;
    message.payload = bytes_of(failure_->text);
    return message;
  }

  // --- the delivery thread
  // -----------------------------------------------------------------------------------------------

  void deliver() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Box* box = nullptr;
      arrived_.wait(lock, [&] { return stop_delivery_ || (box = box_to_empty()) != nullptr; });
      if (stop_delivery_) return;
      Message message = std::move(box->messages.front());
      box->messages.pop_front();
      box->delivering = true;
      Receiver& receiver = *box->receiver;
      lock.unlock();
      receiver.receive(std::move(message));
      lock.lock();
      box->delivering = false;  // the box is still there: its session detaches before it goes, and waits for this
      delivered_.notify_all();
    }
  }

  Box* box_to_empty() {
    for (auto& [session, box] : boxes_) {
      if (box.receiver != nullptr && !box.messages.empty()) return &box;
    }
    return nullptr;
  }

  // --- the communication thread
  // ------------------------------------------------------------------------------------------

  void communicate(std::promise<void>& started) {
    try {
      start();
    } catch (...) {
      started.set_exception(std::current_exception());
      return;
    }
    started.set_value();
    while (turn()) {
    }
    {
      std::unique_lock lock(mutex_);
      all_said_ = true;
      closed_.notify_all();
      closed_.wait(lock, [&] { return may_end_; });
    }
    end();
  }

  void start() {
    prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds; waits of this thread are short
    mpi_ = std::make_unique<Mpi>();
    rank_ = mpi_->rank;
    ranks_ = mpi_->ranks;
    hosts_ = mpi_->names();
    first_of_host_ = mpi_->first_of_host();
    farewells_.resize(ranks_);
    gone_.resize(ranks_);
    std::vector<bool> on_this_host(ranks_);
    for (NodeId r = 0; r < ranks_; ++r) on_this_host[r] = is_on_this_host(r);
    if (ranks_here().size() == ranks_) longest_with_bells_ = kLongestOnOneHost;
    bell_.meet(rank_, mpi_->all_of(bell_.address()), on_this_host);
    links_ = std::make_unique<dist::Links>(mpi_->all, options_.inline_bytes, options_.piece_bytes);
    liveness_ = std::make_unique<Liveness>(ranks_, rank_, Seconds(options_.silent_seconds), Time::clock::now());
  }

  // One look at everything. False when there is nothing left to do.
  bool turn() {
    turns_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a counter
    bool moved = false;
    const Time now = Time::clock::now();
    try {
      moved = post_all();
      moved |= links_->progress(frames_);
      ring_senders(moved);
      ring();
      for (Frame& frame : frames_) take(std::move(frame), now);
      frames_.clear();
      pieces_.store(links_->pieces_sent(), std::memory_order_relaxed);  // relaxed: a counter
      watch(now);
    } catch (const dist::RankError& error) {
      lose(error.rank(), error.what());
    } catch (const Error& error) {
      fail(rank_, error.what());  // kept, and thrown to whoever waits; MPI is not to be used any more
      is_broken_ = true;
      return false;
    }
    if (is_over(now)) return false;
    wait(moved);
    return true;
  }

  bool post_all() {
    {
      const std::lock_guard lock(mutex_);
      std::swap(outbox_, posts_);
    }
    const bool any = !posts_.empty();
    for (auto& [to, frame] : posts_) post(to, std::move(frame));
    posts_.clear();
    return any;
  }

  void post(NodeId to, Frame frame) {
    links_->post(to, std::move(frame));
    to_ring_.push_back(to);
  }

  void post_to_others(const Frame& frame) {
    for (NodeId r = 0; r < ranks_; ++r) {
      if (r != rank_ && !is_lost(r)) post(r, frame);
    }
  }

  void ring() {
    std::sort(to_ring_.begin(), to_ring_.end());
    to_ring_.erase(std::unique(to_ring_.begin(), to_ring_.end()), to_ring_.end());
    for (const NodeId to : to_ring_) bell_.ring(to);
    to_ring_.clear();
  }

  void take(Frame frame, Time now) {
    const NodeId from = frame.message.from;
    liveness_->heard(from, now);
    switch (frame.type) {
      case Frame::Type::message:
        return keep(std::move(frame));
      case Frame::Type::alive:
        return;
      case Frame::Type::lost:
        return lose(frame.about, text_of(frame.message.payload));
      case Frame::Type::farewell: {
        Farewell farewell = unpacked_farewell(frame.message.payload);
        if (farewell.failed) fail(from, farewell.text);
        {
          const std::lock_guard lock(mutex_);
          farewells_[from] = std::move(farewell);
        }
        leave(from);
        return;
      }
    }
  }

  void keep(Frame frame) {
    const std::lock_guard lock(mutex_);
    if (frame.session == kTalk) {
      talk_[frame.message.clock][frame.message.from] = std::move(frame.message.payload);
      talked_.notify_all();
      return;
    }
    const bool is_closed = frame.session < next_session_ && !boxes_.contains(frame.session);
    if (is_closed) return;
    boxes_[frame.session].messages.push_back(std::move(frame.message));
    arrived_.notify_one();
  }

  void watch(Time now) {
    liveness_->tick(now);
    if (liveness_->beat(now)) {
      Frame alive;
      alive.type = Frame::Type::alive;
      for (NodeId r = 0; r < ranks_; ++r) {
        // Whatever is still under way says as much.
        if (liveness_->watches(r) && links_->has_sent_all_to(r)) post(r, alive);
      }
    }
    const bool hurried = options_.told_to_end != nullptr && options_.told_to_end->load();
    for (const NodeId silent : liveness_->silent(now, hurried)) {
      lose(silent, "no sign of life of rank " + std::to_string(silent) + " (host " + hosts_[silent] + ") for " +
                       short_text(hurried ? Liveness::kHurried.count() : options_.silent_seconds) + " s");
    }
  }

  static std::string short_text(double seconds) {
    std::string text = std::to_string(seconds);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  }

  bool is_lost(NodeId r) const { return std::find(lost_.begin(), lost_.end(), r) != lost_.end(); }

  void leave(NodeId r) {
    liveness_->leave(r);
    bell_.not_expected(r);
    const std::lock_guard lock(mutex_);
    gone_[r] = true;
    talked_.notify_all();
  }

  void lose(NodeId r, const std::string& why) {
    if (is_lost(r) || !liveness_->watches(r)) return;
    lost_.push_back(r);
    links_->give_up(r);
    fail(r, why);
    leave(r);
    Frame news;
    news.type = Frame::Type::lost;
    news.about = r;
    news.message.payload = bytes_of(why);
    post_to_others(news);
  }

  void fail(NodeId r, const std::string& text) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return;
      failure_ = Failure{r, text, Time::clock::now()};
      for (auto& [session, box] : boxes_) box.messages.push_back(failure_message());
    }
    has_failed_.store(true, std::memory_order_release);  // release: pairs with the acquire in check()
    arrived_.notify_one();
  }

  // Has everybody said farewell, or is it no use to wait any longer?
  bool is_over(Time now) {
    std::optional<Time> closing;
    std::optional<Failure> failure;
    bool all_left = true, all_knew = true;
    {
      const std::lock_guard lock(mutex_);
      closing = closing_;
      failure = failure_;
      for (NodeId r = 0; r < ranks_; ++r) all_left = all_left && (farewells_[r] || is_lost(r));
    }
    const Seconds grace{options_.grace_seconds};
    if (!closing) {
      if (failure && now - failure->time > grace) die(*failure);
      return false;
    }
    if (!said_farewell_) say_farewell();
    for (NodeId r = 0; r < ranks_; ++r) all_knew = all_knew && (r == rank_ || is_lost(r) || links_->has_sent_all_to(r));
    if (all_left && all_knew) return true;
    const bool failed = failure || farewells_[rank_]->failed;
    return failed && now - std::max(*closing, failure ? failure->time : *closing) > grace;
  }

  void say_farewell() {
    said_farewell_ = true;
    Frame frame;
    frame.type = Frame::Type::farewell;
    frame.message.payload = packed(*farewells_[rank_]);
    post_to_others(frame);
  }

  [[noreturn]] void die(const Failure& failure) {
    if (options_.last_words) {
      options_.last_words("node " + std::to_string(failure.rank) + " failed: " + failure.text);
    }
    std::_Exit(static_cast<int>(ErrorKind::lost));
  }

  bool is_on_this_host(NodeId r) const { return first_of_host_[r] == first_of_host_[rank_]; }

  // Within a host a piece moves when its receiver takes it, which may need the sender's hand. So the receiver looks
  // often and rings, and the sender sleeps until then: on hosts with few cores its looks would be taken from the work.
  void ring_senders(bool moved) {
    for (const Frame& frame : frames_) {
      if (frame.message.payload.size() > options_.inline_bytes) to_ring_.push_back(frame.message.from);
    }
    for (NodeId r = 0; !moved && r < ranks_; ++r) {
      if (links_->awaits_pieces_of(r) && is_on_this_host(r)) to_ring_.push_back(r);
    }
  }

  // A socket between hosts takes more of a message as it empties, and nobody rings then.
  bool is_in_transfer() const {
    for (NodeId r = 0; r < ranks_; ++r) {
      if (links_->awaits_pieces_of(r) || (links_->is_sending_to(r) && !is_on_this_host(r))) return true;
    }
    return false;
  }

  void wait(bool moved) {
    microseconds longest = bell_.hears_all() ? longest_with_bells_ : kLongestWithoutBell;
    if (is_in_transfer()) longest = std::min(longest, kLongestInTransfer);
    if (moved) return;
    pause_ = std::min(pause_, longest);
    const dist::Doorbell::Woken woken = bell_.wait(pause_, [this] {
      const std::lock_guard lock(mutex_);
      return !outbox_.empty();
    });
    // A ring may be faster than what it announces, so the looks after it begin anew close together. Each costs some
    // tens of microseconds of a processor that workers want, so there are few.
    pause_ = woken == dist::Doorbell::Woken::by_ring ? kShortest : 4 * pause_;
    if (woken != dist::Doorbell::Woken::by_time) woken_.fetch_add(1, std::memory_order_relaxed);  // relaxed: a counter
  }

  // MPI can only be ended by all together.
  void end() {
    links_.reset();
    const bool all_are_here =
        std::all_of(farewells_.begin(), farewells_.end(), [](const auto& farewell) { return farewell.has_value(); });
    if (all_are_here && !is_broken_) mpi_->finalize();
  }

  const MpiOptions options_;
  dist::Doorbell bell_;
  NodeId rank_ = 0, ranks_ = 1;
  std::vector<std::string> hosts_;
  std::vector<NodeId> first_of_host_;
  std::atomic<std::uint64_t> turns_{0}, pieces_{0}, woken_{0};
  std::atomic<bool> has_failed_{false};

  mutable std::mutex mutex_;
  std::condition_variable arrived_, delivered_, talked_, closed_;
  std::vector<std::pair<NodeId, Frame>> outbox_;
  std::map<std::uint32_t, Box> boxes_;
  std::uint32_t next_session_ = 0;
  std::map<Clock, std::map<NodeId, Bytes>> talk_;
  Clock next_talk_ = 0;
  std::optional<Failure> failure_;
  std::optional<Time> closing_;
  bool all_said_ = false, may_end_ = false;
  Farewells farewells_;
  std::vector<bool> gone_;  ///< has said farewell, or is lost
  bool stop_delivery_ = false;

  // The communication thread's own.
  std::unique_ptr<Mpi> mpi_;
  std::unique_ptr<dist::Links> links_;
  std::unique_ptr<Liveness> liveness_;
  std::vector<std::pair<NodeId, Frame>> posts_;
  std::vector<Frame> frames_;
  std::vector<NodeId> to_ring_;
  std::vector<NodeId> lost_;
  microseconds pause_ = kShortest, longest_with_bells_ = kLongest;
  bool said_farewell_ = false;
  bool is_broken_ = false;

  std::thread communication_, delivery_;
};

MpiProcess::MpiProcess(MpiOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
MpiProcess::~MpiProcess() = default;
NodeId MpiProcess::rank() const noexcept { return impl_->rank(); }
NodeId MpiProcess::ranks() const noexcept { return impl_->ranks(); }
const std::vector<std::string>& MpiProcess::hosts() const noexcept { return impl_->hosts(); }
std::vector<NodeId> MpiProcess::ranks_here() const { return impl_->ranks_here(); }
std::unique_ptr<Transport> MpiProcess::open() { return impl_->open(); }
std::vector<Bytes> MpiProcess::exchange(Bytes mine) { return impl_->exchange(std::move(mine)); }
void MpiProcess::check() const { impl_->check(); }
MpiProcess::Farewells MpiProcess::close(Farewell mine, const std::function<void(const Farewells&)>& before_end) {
  return impl_->close(std::move(mine), before_end);
}
MpiProcess::Counters MpiProcess::counters() const { return impl_->counters(); }

}  // namespace orrery
