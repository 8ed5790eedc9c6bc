#include "algorithms/lda_trainee.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/lda_fit_priors.h"
#include "algorithms/lda_topics.h"
#include "engine/assert.h"
#include "engine/engine.h"
#include "engine/random.h"
#include "engine/scratch_file.h"
#include "engine/wire.h"
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

LdaTrainee::Worker::Worker(const LdaState& state, const Topology& topology, DomainId domain)
    : row(state.topics(), state.grid.longest_run()) {
  view.topics = state.topics();
  view.padded = padded_topics(state.topics());
  memory = Buffer::local(carve(view, nullptr), domain, topology);
  carve(view, memory.data());
}

LdaTrainee::LdaTrainee(LdaState& state, const Topology& topology, const WorkerMap& map, const Completion& held_out,
                       const TrainingPlan& plan)
    : state_(state),
      map_(map),
      plan_(plan),
      held_out_(held_out),
      alpha_(Buffer::interleaved(padded_topics(state.topics()) * sizeof(float), topology)) {
  workers_.resize(map.workers());
  for (WorkerId w = map.first_worker(map.this_node()); w < map.first_worker(map.this_node() + 1); ++w) {
    workers_[w] = std::make_unique<Worker>(state, topology, map.domain_of(w));
  }
  summaries_.resize(state.grid.stripes());
  priors_changed();
}

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
  if (sampler->draws_tokens()) documents.list_tokens(state_.grid.stripe(stripe).documents);
  return *sampler;
}

void LdaTrainee::begin_clock(Worker& worker, WorkerId id, Clock clock) {
  TopicView& view = worker.view;
  worker.clock = clock;
  worker.stripe = stripe_at(id, clock);
  state_.bring(worker.stripe);
  const std::size_t next = stripe_at(id, clock + 1);
  if (next != worker.stripe) state_.expect(next);
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

Visit LdaTrainee::visit_of(Stripe& stripe, std::size_t token, std::uint32_t tokens, std::uint32_t word) const {
  Visit visit;
  visit.documents = stripe.documents.data() + token;
  visit.all_topics = stripe.topics.data();
  visit.first = token;
  visit.topics = stripe.topics.data() + token;
  visit.tokens = tokens;
  visit.known = stripe.documents.size() - token;
  visit.beta = static_cast<float>(state_.priors.beta_of(word));
  return visit;
}

void LdaTrainee::fit_priors_if_due(Clock clock) {
  const auto blocks = static_cast<Clock>(state_.grid.document_blocks());
  if (!plan_.fit_priors || (clock + 1) % blocks != 0 || !priors_are_due(clock / blocks)) return;
  bring_words();
  fit_priors(state_);
  priors_changed();
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
    parallel(state_.resident_stripes, [&](std::size_t s) {
      if (grid.is_here(s)) summarise(s);
    });
    return share_summaries();
  }
  state_.for_each_document_block(parallel, [&](std::size_t document_block) {
    parallel(grid.workers(), [&](std::size_t w) { summarise(grid.stripe_of(document_block, w)); });
  });
  summarised_ = true;
}

void LdaTrainee::share_summaries() {
  if (is_alone()) return;
  const auto for_stripes_of = [&](NodeId node, const auto& visit) {
    for (std::size_t block = 0; block < state_.grid.document_blocks(); ++block) {
      for (WorkerId w = map_.first_worker(node); w < map_.first_worker(node + 1); ++w) {
        visit(summaries_[state_.grid.stripe_of(block, w)]);
      }
    }
  };
  std::vector<Summary> here;
  for_stripes_of(map_.this_node(), [&](const Summary& summary) { here.push_back(summary); });
  const std::vector<Summary> all = nodes_.joined(std::move(here));
  auto next = all.begin();
  for (NodeId node = 0; node < map_.nodes(); ++node) {
    for_stripes_of(node, [&](Summary& summary) { summary = *next++; });
  }
}

void LdaTrainee::join(const Collective& nodes) {
  nodes_ = nodes;
  if (!is_alone()) add_far_counts();
}

// Counts of one's own documents become those of all.
void LdaTrainee::add_far_counts() {
  Bytes mine;
  put_all(mine, std::span<const std::int64_t>(state_.totals.committed()));
  for (BlockId block = 0; block < state_.grid.blocks(); ++block) {
    const Bytes packed = state_.words.pack(block);
    put(mine, std::uint64_t{packed.size()});
    put_all(mine, std::span<const std::byte>(packed));
  }
  const std::vector<Bytes> all = nodes_.to_all(std::move(mine));
  std::vector<std::int64_t> totals(state_.topics(), 0);
  Bytes packed;
  for (NodeId node = 0; node < all.size(); ++node) {
    WireReader in(all[node]);
    for (std::int64_t& total : totals) total += in.take<std::int64_t>();
    for (BlockId block = 0; node != map_.this_node() && block < state_.grid.blocks(); ++block) {
      packed.resize(in.take<std::uint64_t>());
      in.take_all(std::span(packed));
      state_.words.add(block, packed);
    }
  }
  state_.totals.reset(std::move(totals));
  words_were_counted();
}

std::vector<double> LdaTrainee::word_parts_of_all(const ParallelFor& parallel) const {
  struct Part {
    std::uint64_t block;
    double value;
  };
  const std::vector<BlockId> blocks = blocks_here();
  const std::vector<double> values = word_parts(state_, blocks, parallel);
  std::vector<Part> here;
  for (std::size_t i = 0; i < blocks.size(); ++i) here.push_back({blocks[i], values[i]});
  std::vector<double> parts(state_.grid.blocks(), 0);
  for (const Part& part : nodes_.joined(std::move(here))) parts[part.block] = part.value;
  return parts;
}

// The first node gets all counts of documents.
void LdaTrainee::gather_documents() {
  Bytes mine;
  const auto for_stripes_of = [&](NodeId node, const auto& visit) {
    for (std::size_t block = 0; block < state_.grid.document_blocks(); ++block) {
      for (WorkerId w = map_.first_worker(node); w < map_.first_worker(node + 1); ++w) {
        visit(state_.grid.stripe_of(block, w));
      }
    }
  };
  if (!nodes_.is_first()) {
    for_stripes_of(map_.this_node(), [&](std::size_t stripe) {
      const Bytes packed = state_.documents[stripe]->pack();
      put_all(mine, std::span<const std::byte>(packed));
    });
  }
  const std::vector<Bytes> all = nodes_.to_first(std::move(mine));
  for (NodeId node = 1; nodes_.is_first() && node < all.size(); ++node) {
    WireReader in(all[node]);
    for_stripes_of(node, [&](std::size_t stripe) {
      state_.make_documents(stripe);
      state_.documents[stripe]->unpack(in);
    });
  }
}

void LdaTrainee::collect_model(Engine& engine) {
  bring_words();
  coherence_ = coherence(state_, freeze(state_), engine.parallel_for_function(), nodes_);
  if (!is_alone() && plan_.keep_documents) gather_documents();
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
  const double joint = joint_log_likelihood(state_, word_parts_of_all(parallel), document_parts) / tokens;
  Evaluation out;
  out.objective = -joint;
  out.extra = {{"log_likelihood", joint},
               {"topics_per_token", topics_per_token},
               {"dense_workers", dense / static_cast<double>(state_.grid.document_blocks())}};
  if (held_out_.tokens() == 0) return out;
  bring_words();
  const double held_out =
      held_out_.log_likelihood(freeze(state_), parallel, nodes_) / static_cast<double>(held_out_.tokens());
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
  if (is_alone()) {
    words_were_counted();
  } else {
    add_far_counts();
  }
  priors_changed();
}

std::vector<StateSection> LdaTrainee::save_state() const {
  std::vector<StateSection> sections = joined(state_.save());
  for (const StateSection& section : joined(best_)) sections.push_back(renamed(section, kBestPrefix + section.name));
  return sections;
}

void LdaTrainee::load_state(const std::vector<StateSection>& sections) {
  if (is_alone()) {
    state_.load(sections, serial_for);
    words_were_counted();
  } else {
    state_.load(part_here(sections), serial_for);
  }
  priors_changed();
  best_.clear();
  for (const StateSection& section : sections) {
    if (!section.name.starts_with(kBestPrefix)) continue;
    best_.push_back(renamed(section, section.name.substr(std::string(kBestPrefix).size())));
    if (section.source) best_.back() = copy_to_disk(best_.back(), plan_.scratch);
  }
  if (!is_alone()) best_ = part_here(best_);
}

// At the first node what all nodes have.
std::vector<StateSection> LdaTrainee::joined(std::vector<StateSection> here) const {
  for (StateSection& section : here) {
    if (is_alone() || section.name != LdaState::kAssignments) continue;
    const std::vector<Bytes> all = nodes_.to_first(std::move(section.bytes));
    section.bytes = nodes_.is_first() ? state_.joined_assignments(map_, all) : Bytes();
  }
  return here;
}

std::vector<StateSection> LdaTrainee::part_here(const std::vector<StateSection>& sections) const {
  std::vector<StateSection> here = sections;
  for (StateSection& section : here) {
    if (section.name == LdaState::kAssignments) section.bytes = state_.assignments_here(section.bytes);
  }
  return here;
}

}  // namespace orrery::lda
