#include "algorithms/lda_trainee.h"

#include <algorithm>
#include <cmath>

#include "algorithms/lda_fit_priors.h"
#include "engine/assert.h"
#include "engine/engine.h"
#include "engine/random.h"
#include "numa/access_section.h"

namespace orrery::lda {
namespace {

/// Hands out 64-byte-aligned arrays of one buffer.
class Carver {
 public:
  template <class T>
  T* take(std::byte* base, std::size_t count) {
    T* const start = base == nullptr ? nullptr : reinterpret_cast<T*>(base + used_);
    used_ += (count * sizeof(T) + 63) / 64 * 64;
    return start;
  }
  std::size_t used() const noexcept { return used_; }

 private:
  std::size_t used_ = 0;
};

std::size_t carve(TopicView& view, std::byte* base) {
  Carver carver;
  view.totals = carver.take<std::int64_t>(base, view.padded);
  view.inverse = carver.take<float>(base, view.padded);
  view.phi = carver.take<float>(base, view.padded);
  view.running = carver.take<float>(base, view.padded);
  view.chunks = carver.take<double>(base, view.padded / kTopicChunk + 1);
  return carver.used();
}

}  // namespace

/// What a worker has for itself: its copy of the totals, scratch, and its sampler.
struct LdaTrainee::Worker {
  Worker(const LdaState& state, const Topology& topology, DomainId domain)
      : row(state.topics(), state.grid.longest_run()) {
    view.topics = state.topics();
    view.padded = padded_topics(state.topics());
    memory = Buffer::local(carve(view, nullptr), domain, topology);
    carve(view, memory.data());
  }
  Clock clock = -1;
  TopicView view;
  Buffer memory;
  std::vector<std::int64_t> started;  ///< totals at the beginning of the clock
  OpenRow row;
  std::unique_ptr<Sampler> sampler;
};

LdaTrainee::LdaTrainee(LdaState& state, const Topology& topology, const WorkerMap& map, const Completion& held_out,
                       const TrainingPlan& plan)
    : state_(state),
      held_out_(held_out),
      plan_(plan),
      alpha_(Buffer::interleaved(padded_topics(state.topics()) * sizeof(float), topology)) {
  for (WorkerId w = 0; w < map.workers(); ++w) {
    workers_.push_back(std::make_unique<Worker>(state, topology, map.domain_of(w)));
  }
  std::copy(state.priors.alpha.begin(), state.priors.alpha.end(), alpha_.as<float>().begin());
}

LdaTrainee::~LdaTrainee() = default;

SamplerKind LdaTrainee::sampler_for(WorkerId id) const {
  return plan_.sampler ? *plan_.sampler : choose_sampler(state_.topics(), state_.documents[id]->topics_per_token());
}

void LdaTrainee::begin_clock(Worker& worker, WorkerId id, Clock clock) {
  TopicView& view = worker.view;
  worker.clock = clock;
  worker.started.resize(view.topics);
  state_.totals.start_clock(id, worker.started);
  std::copy(worker.started.begin(), worker.started.end(), view.totals);
  view.alpha = alpha_.as<float>().data();
  view.beta_sum = state_.beta_sum();
  // In a sequential start a worker knows the tokens that it has placed itself, of one share in `workers`: each stands
  // for that many.
  view.step = plan_.sequential && clock == 0 ? static_cast<std::int64_t>(workers_.size()) : 1;
  for (std::size_t k = 0; k < view.topics; ++k) {
    view.inverse[k] = static_cast<float>(1.0 / (static_cast<double>(view.totals[k]) + view.beta_sum));
  }
  const SamplerKind kind = sampler_for(id);
  if (worker.sampler == nullptr || worker.sampler->kind() != kind) {
    worker.sampler = make_sampler(kind, {.topics = view.topics,
                                         .longest_run = state_.grid.longest_run(),
                                         .kernels = plan_.kernels,
                                         .mh_steps = plan_.mh_steps});
    state_.documents[id]->convert(worker.sampler->form());
  }
  worker.sampler->begin_clock(view);
}

void LdaTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  Worker& worker = *workers_[unit.worker];
  if (worker.clock != unit.clock) begin_clock(worker, unit.worker, unit.clock);
  const BlockId block = unit.blocks[0];
  std::byte* const memory = state_.words.acquire(block, context.domain);
  Stripe& stripe = state_.grid.stripe(unit.worker);
  DocumentTopics& documents = *state_.documents[unit.worker];
  const std::uint32_t first_word = state_.grid.words().begin[block];
  RandomStream draws = Random(plan_.seed, Purpose::sampling)
                           .stream(unit.clock, std::uint64_t{unit.worker} * state_.grid.blocks() + block);
  std::size_t token = stripe.token_begin[block];
  const AccessSection inner_loop;
  for (const Run& run : stripe.runs_of(block)) {
    const WordTopics::Row row = state_.words.row(memory, block, run.word);
    Visit visit;
    visit.documents = stripe.documents.data() + token;
    visit.topics = stripe.topics.data() + token;
    visit.tokens = run.tokens;
    visit.beta = static_cast<float>(state_.priors.beta_of(first_word + run.word));
    worker.row.open(row, visit);
    worker.sampler->sample(visit, worker.view, documents, draws);
    worker.row.close(row, visit);
    token += run.tokens;
  }
}

void LdaTrainee::worker_ended(WorkerId id, Clock clock) {
  Worker& worker = *workers_[id];
  ORRERY_CHECK(worker.clock == clock);
  std::vector<std::int64_t> moves(worker.view.topics);
  for (std::size_t k = 0; k < moves.size(); ++k) {
    moves[k] = (worker.view.totals[k] - worker.started[k]) / worker.view.step;
  }
  state_.totals.hand_over(id, clock, std::move(moves));
}

void LdaTrainee::commit(Clock clock, std::span<const Bytes>) {
  state_.totals.commit(clock);
  if (!plan_.fit_priors || !priors_are_due(clock)) return;
  fit_priors(state_);
  std::copy(state_.priors.alpha.begin(), state_.priors.alpha.end(), alpha_.as<float>().begin());
}

Evaluation LdaTrainee::evaluate(Engine& engine, bool) {
  const ParallelFor parallel = engine.parallel_for_function();
  const auto tokens = static_cast<double>(state_.grid.tokens());
  const double joint = joint_log_likelihood(state_, parallel) / tokens;
  double topics_per_token = 0;
  std::size_t dense = 0;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    topics_per_token += state_.documents[w]->topics_per_token() / static_cast<double>(workers_.size());
    dense += state_.documents[w]->form() == DocumentForm::dense ? 1 : 0;
  }
  Evaluation out;
  out.objective = -joint;
  out.extra = {
      {"log_likelihood", joint}, {"topics_per_token", topics_per_token}, {"dense_workers", static_cast<double>(dense)}};
  if (held_out_.tokens() == 0) return out;
  const double held_out = held_out_.log_likelihood(freeze(state_), parallel) / static_cast<double>(held_out_.tokens());
  out.valid = std::exp(-held_out);
  out.extra.emplace_back("perplexity", *out.valid);
  out.extra.emplace_back("held_out_log_likelihood", held_out);
  return out;
}

namespace {
constexpr const char* kBestPrefix = "best-";
}

std::vector<StateSection> LdaTrainee::save_state() const {
  std::vector<StateSection> sections = state_.save();
  for (const StateSection& section : best_) sections.push_back({kBestPrefix + section.name, section.bytes});
  return sections;
}

void LdaTrainee::load_state(const std::vector<StateSection>& sections) {
  state_.load(sections, serial_for);
  std::copy(state_.priors.alpha.begin(), state_.priors.alpha.end(), alpha_.as<float>().begin());
  best_.clear();
  for (const StateSection& section : sections) {
    if (section.name.starts_with(kBestPrefix)) {
      best_.push_back({section.name.substr(std::string(kBestPrefix).size()), section.bytes});
    }
  }
}

std::size_t LdaTrainee::block_bytes(BlockId block) const {
  const Axis& words = state_.grid.words();
  std::size_t bytes = 0;
  for (std::uint32_t word = words.begin[block]; word < words.begin[block + 1]; ++word) {
    bytes += WordTopics::row_bytes(words.counts[word], state_.topics());
  }
  return bytes;
}

}  // namespace orrery::lda
