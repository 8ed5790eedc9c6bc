#include "algorithms/lda_stream.h"

#include <algorithm>
#include <utility>

#include "engine/assert.h"

namespace orrery::lda {
namespace {

std::size_t tokens_of_stripe(const TokenGrid& grid, std::size_t s) {
  const Axis& axis = grid.documents();
  std::size_t tokens = 0;
  for (std::uint32_t d = axis.begin[s]; d < axis.begin[s + 1]; ++d) tokens += axis.counts[d];
  return tokens;
}

/// Room for the documents of tokens and for as many runs as there can be.
std::uint64_t fixed_bytes(const TokenGrid& grid) {
  std::uint64_t bytes = 0;
  for (std::size_t s = 0; s < grid.stripes(); ++s) {
    const std::size_t tokens = tokens_of_stripe(grid, s);
    bytes += tokens * sizeof(std::uint32_t) + std::min(tokens, grid.words().size()) * sizeof(Run);
  }
  return bytes;
}

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

}  // namespace

DocumentStream::DocumentStream(const std::filesystem::path& directory, const TokenGrid& grid)
    : places_(grid.stripes()), fixed_(directory, fixed_bytes(grid)), topics_(directory, grid.tokens() * sizeof(Topic)) {
  std::uint64_t topics = 0;
  for (std::size_t s = 0; s < places_.size(); ++s) {
    places_[s].tokens = tokens_of_stripe(grid, s);
    places_[s].topics = topics;
    topics += places_[s].tokens * sizeof(Topic);
    most_tokens_ = std::max(most_tokens_, places_[s].tokens);
  }
  thread_ = std::thread([this] { serve(); });
}

DocumentStream::~DocumentStream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  work_.notify_all();
  thread_.join();
}

DocumentStream::Tokens DocumentStream::take_tokens(Stripe& stripe) {
  return {std::exchange(stripe.documents, std::vector<std::uint32_t>{}),
          std::exchange(stripe.topics, std::vector<Topic>{}), std::exchange(stripe.runs, std::vector<Run>{})};
}

void DocumentStream::put(std::size_t s, Stripe& stripe) {
  Place& place = places_[s];
  ORRERY_CHECK(stripe.documents.size() == place.tokens);
  place.documents = used_;
  place.runs = place.documents + place.tokens * sizeof(std::uint32_t);
  place.run_count = stripe.runs.size();
  used_ = place.runs + place.run_count * sizeof(Run);
  fixed_.write(place.documents, bytes_of(stripe.documents));
  fixed_.write(place.runs, bytes_of(stripe.runs));
  topics_.write(place.topics, bytes_of(stripe.topics));
  const Tokens gone = take_tokens(stripe);
}

void DocumentStream::throw_failure() const {
  if (failure_) std::rethrow_exception(failure_);
}

// Every set has room for the largest stripe, so that none grows and the memory of all is known.
DocumentStream::Tokens DocumentStream::take_spare() {
  Tokens tokens;
  if (!spare_.empty()) {
    tokens = std::move(spare_.back());
    spare_.pop_back();
  } else {
    tokens.documents.reserve(most_tokens_);
    tokens.topics.reserve(most_tokens_);
  }
  return tokens;
}

void DocumentStream::expect(std::size_t s) {
  {
    const std::lock_guard lock(mutex_);
    throw_failure();
    if (!asked_.insert(s).second) return;
    queue_.push_back({s, true, take_spare()});
  }
  work_.notify_one();
}

void DocumentStream::bring(std::size_t s, Stripe& stripe) {
  expect(s);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return failure_ || arrived_.contains(s); });
  throw_failure();
  Tokens& tokens = arrived_.at(s);
  stripe.documents.swap(tokens.documents);
  stripe.topics.swap(tokens.topics);
  stripe.runs.swap(tokens.runs);
  arrived_.erase(s);
  asked_.erase(s);
}

void DocumentStream::release(std::size_t s, Stripe& stripe, bool changed) {
  Tokens tokens = take_tokens(stripe);
  {
    const std::lock_guard lock(mutex_);
    throw_failure();
    if (!changed) {
      spare_.push_back(std::move(tokens));
      return;
    }
    queue_.push_back({s, false, std::move(tokens)});
  }
  work_.notify_one();
}

void DocumentStream::drain() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return failure_ || (queue_.empty() && !busy_); });
  throw_failure();
  for (auto& [stripe, tokens] : arrived_) spare_.push_back(std::move(tokens));
  arrived_.clear();
  asked_.clear();
}

void DocumentStream::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return ends_ || !queue_.empty(); });
    if (ends_) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr failed;
    try {
      perform(task);
    } catch (...) {  // carried over to whoever calls next, who throws it
      failed = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (failed) failure_ = failed;
    if (failed || !task.reads) {
      spare_.push_back(std::move(task.tokens));
    } else {
      arrived_.emplace(task.stripe, std::move(task.tokens));
    }
    done_.notify_all();
  }
}

void DocumentStream::perform(Task& task) {
  const Place& place = places_[task.stripe];
  Tokens& tokens = task.tokens;
  if (!task.reads) {
    topics_.write(place.topics, bytes_of(tokens.topics));
    const std::lock_guard lock(mutex_);
    bytes_written_ += bytes_of(tokens.topics).size();
    return;
  }
  tokens.documents.resize(place.tokens);
  tokens.topics.resize(place.tokens);
  tokens.runs.resize(place.run_count);
  fixed_.read(place.documents, bytes_of(tokens.documents));
  fixed_.read(place.runs, bytes_of(tokens.runs));
  topics_.read(place.topics, bytes_of(tokens.topics));
}

void DocumentStream::read_topics(std::size_t s, const ByteSink& sink) const {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::vector<Topic> piece;
  const Place& place = places_[s];
  for (std::size_t first = 0; first < place.tokens; first += kPiece) {
    piece.resize(std::min(kPiece, place.tokens - first));
    topics_.read(place.topics + first * sizeof(Topic), bytes_of(piece));
    sink(std::as_bytes(std::span(piece)));
  }
}

void DocumentStream::write_topics(std::size_t s, std::size_t first, std::span<const Topic> topics) {
  ORRERY_CHECK(first + topics.size() <= places_[s].tokens);
  topics_.write(places_[s].topics + first * sizeof(Topic), std::as_bytes(topics));
}

std::uint64_t DocumentStream::bytes_written() const {
  const std::lock_guard lock(mutex_);
  return bytes_written_;
}

}  // namespace orrery::lda
