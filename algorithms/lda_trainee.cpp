#include "algorithms/lda_trainee.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/lda_fit_priors.h"
#include "engine/assert.h"
#include "engine/engine.h"
#include "engine/random.h"
#include "engine/scratch_file.h"
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
  std::size_t stripe = 0;
  Sampler* sampler = nullptr;                        ///< of this clock
  std::array<std::unique_ptr<Sampler>, 3> samplers;  ///< by kind, once made
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
  summaries_.resize(state.grid.stripes());
  priors_changed();
}

LdaTrainee::~LdaTrainee() = default;

void LdaTrainee::priors_changed() {
  std::copy(state_.priors.alpha.begin(), state_.priors.alpha.end(), alpha_.as<float>().begin());
  logs_.emplace(state_.priors);
  summarised_ = false;
}

std::size_t LdaTrainee::stripe_at(WorkerId worker, Clock clock) const {
  return state_.grid.stripe_of(static_cast<std::size_t>(clock) % state_.grid.document_blocks(), worker);
}

Sampler& LdaTrainee::sampler_for(Worker& worker, std::size_t stripe) {
  DocumentTopics& documents = *state_.documents[stripe];
  const SamplerKind kind =
      plan_.sampler ? *plan_.sampler : choose_sampler(state_.topics(), documents.topics_per_token());
  std::unique_ptr<Sampler>& sampler = worker.samplers[static_cast<std::size_t>(kind)];
  if (sampler == nullptr) {
    sampler = make_sampler(kind, {.topics = worker.view.topics,
                                  .longest_run = state_.grid.longest_run(),
                                  .kernels = plan_.kernels,
                                  .mh_steps = plan_.mh_steps});
  }
  documents.convert(sampler->form());
  return *sampler;
}

void LdaTrainee::begin_clock(Worker& worker, WorkerId id, Clock clock) {
  TopicView& view = worker.view;
  worker.clock = clock;
  worker.stripe = stripe_at(id, clock);
  state_.bring(worker.stripe);
  const std::size_t next = stripe_at(id, clock + 1);
  if (next != worker.stripe) state_.expect(next);
  worker.started.resize(view.topics);
  state_.totals.start_clock(id, worker.started);
  std::copy(worker.started.begin(), worker.started.end(), view.totals);
  view.alpha = alpha_.as<float>().data();
  view.beta_sum = state_.beta_sum();
  // In a sequential start a worker knows the tokens that it has placed itself, of one share in `workers`: each stands
  // for that many.
  const bool first = clock < static_cast<Clock>(state_.grid.document_blocks());
  view.step = plan_.sequential && first ? static_cast<std::int64_t>(workers_.size()) : 1;
  for (std::size_t k = 0; k < view.topics; ++k) {
    view.inverse[k] = static_cast<float>(1.0 / (static_cast<double>(view.totals[k]) + view.beta_sum));
  }
  worker.sampler = &sampler_for(worker, worker.stripe);
  worker.sampler->begin_clock(view);
}

void LdaTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  Worker& worker = *workers_[unit.worker];
  if (worker.clock != unit.clock) begin_clock(worker, unit.worker, unit.clock);
  const BlockId block = unit.blocks[0];
  std::byte* const memory = state_.words.acquire(block, context.domain);
  Stripe& stripe = state_.grid.stripe(worker.stripe);
  DocumentTopics& documents = *state_.documents[worker.stripe];
  const std::uint32_t first_word = state_.grid.words().begin[block];
  RandomStream draws = Random(plan_.seed, Purpose::sampling)
                           .stream(unit.clock, std::uint64_t{unit.worker} * state_.grid.blocks() + block);
  std::size_t token = stripe.token_begin[block];
  const AccessSection inner_loop;
  const std::span<const Run> runs = stripe.runs_of(block);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const Run& run = runs[r];
    if (r + 1 < runs.size()) state_.words.prefetch(memory, block, runs[r + 1].word);
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
  if (!state_.is_streamed(worker.stripe)) return;
  summarise(worker.stripe);
  state_.release(worker.stripe, true);
}

void LdaTrainee::summarise(std::size_t stripe) {
  const DocumentTopics& documents = *state_.documents[stripe];
  summaries_[stripe] = {.log_likelihood = (*logs_)(documents),
                        .topics_per_token = documents.topics_per_token(),
                        .dense = documents.form() == DocumentForm::dense};
}

// Streamed stripes were summarised as they left.
void LdaTrainee::summarise_all(const ParallelFor& parallel) {
  const TokenGrid& grid = state_.grid;
  if (state_.stream == nullptr || summarised_) {
    parallel(state_.resident_stripes, [&](std::size_t s) { summarise(s); });
    return;
  }
  state_.for_each_document_block(parallel, [&](std::size_t document_block) {
    parallel(grid.workers(), [&](std::size_t w) { summarise(grid.stripe_of(document_block, w)); });
  });
  summarised_ = true;
}

void LdaTrainee::commit(Clock clock, std::span<const Bytes>) {
  state_.totals.commit(clock);
  const auto blocks = static_cast<Clock>(state_.grid.document_blocks());
  if ((clock + 1) % blocks != 0) return;
  summarised_ = true;
  if (!plan_.fit_priors || !priors_are_due(clock / blocks)) return;
  fit_priors(state_);
  priors_changed();
}

Evaluation LdaTrainee::evaluate(Engine& engine, bool) {
  const ParallelFor parallel = engine.parallel_for_function();
  const auto tokens = static_cast<double>(state_.grid.tokens());
  summarise_all(parallel);
  const auto stripes = static_cast<double>(summaries_.size());
  std::vector<double> document_parts;
  double topics_per_token = 0, dense = 0;
  for (const Summary& summary : summaries_) {
    document_parts.push_back(summary.log_likelihood);
    topics_per_token += summary.topics_per_token / stripes;
    dense += summary.dense ? 1 : 0;
  }
  const double joint = joint_log_likelihood(state_, document_parts, parallel) / tokens;
  Evaluation out;
  out.objective = -joint;
  out.extra = {{"log_likelihood", joint},
               {"topics_per_token", topics_per_token},
               {"dense_workers", dense / static_cast<double>(state_.grid.document_blocks())}};
  if (held_out_.tokens() == 0) return out;
  const double held_out = held_out_.log_likelihood(freeze(state_), parallel) / static_cast<double>(held_out_.tokens());
  out.valid = std::exp(-held_out);
  out.extra.emplace_back("perplexity", *out.valid);
  out.extra.emplace_back("held_out_log_likelihood", held_out);
  return out;
}

namespace {

constexpr const char* kBestPrefix = "best-";

/// A section in a file of its own, for as long as the section lives.
StateSection copy_to_disk(const StateSection& section, const std::filesystem::path& directory) {
  const auto file = std::make_shared<ScratchFile>(directory, section.size());
  std::uint64_t at = 0;
  section.read([&](std::span<const std::byte> bytes) {
    file->write(at, bytes);
    at += bytes.size();
  });
  StateSection copy{section.name, {}};
  copy.source_bytes = section.size();
  copy.source = [file](const ByteSink& sink) {
    constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
    Bytes piece;
    for (std::uint64_t first = 0; first < file->size(); first += kPiece) {
      piece.resize(static_cast<std::size_t>(std::min(kPiece, file->size() - first)));
      file->read(first, piece);
      sink(piece);
    }
  };
  return copy;
}

StateSection renamed(const StateSection& section, std::string name) {
  StateSection copy = section;
  copy.name = std::move(name);
  return copy;
}

}  // namespace

std::vector<std::string> LdaTrainee::sections_on_disk() const {
  if (state_.stream == nullptr) return {};
  return {LdaState::kAssignments, std::string(kBestPrefix) + LdaState::kAssignments};
}

// What lies on disk will change as the training goes on; the best must not.
void LdaTrainee::keep_best() {
  best_ = state_.save();
  for (StateSection& section : best_) {
    if (section.source) section = copy_to_disk(section, plan_.scratch);
  }
}

void LdaTrainee::restore_best() {
  state_.load(best_, serial_for);
  priors_changed();
}

std::vector<StateSection> LdaTrainee::save_state() const {
  std::vector<StateSection> sections = state_.save();
  for (const StateSection& section : best_) sections.push_back(renamed(section, kBestPrefix + section.name));
  return sections;
}

void LdaTrainee::load_state(const std::vector<StateSection>& sections) {
  state_.load(sections, serial_for);
  priors_changed();
  best_.clear();
  for (const StateSection& section : sections) {
    if (!section.name.starts_with(kBestPrefix)) continue;
    best_.push_back(renamed(section, section.name.substr(std::string(kBestPrefix).size())));
    if (section.source) best_.back() = copy_to_disk(best_.back(), plan_.scratch);
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
