// Latent Dirichlet allocation by rotation (Griffiths, Steyvers 2004 for the chain; Yu et al., WWW 2015 and STRADS, Kim
// et al., EuroSys 2016, for the rotation).
//
//   θ_d ~ Dirichlet(α),  φ_k ~ Dirichlet(β),  z_i ~ θ_d,  w_i ~ φ_z;  θ and φ are integrated out, z is sampled
//
// A unit is the tokens of one worker's documents and one block of words. Units that run together share neither
// documents nor words, so no count has two writers; the only shared state is how many tokens a topic has (TopicTotals),
// of which every worker has a copy that is brought up to date between clocks. One clock visits the tokens of a document
// block once, one iteration those of all.
//
// On several nodes documents stay with theirs and blocks of words travel. What depends on all documents (the first
// counts of words, totals, likelihood, coherence) is made of what the nodes have counted in their own: whole numbers,
// or sums by stripe and block that are added in the order of one node.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/lda_likelihood.h"
#include "algorithms/lda_sampler.h"
#include "algorithms/lda_state.h"
#include "engine/collective.h"
#include "engine/profile_source.h"
#include "engine/training.h"
#include "numa/memory.h"

namespace orrery::lda {

struct TrainingPlan {
  std::optional<SamplerKind> sampler;  ///< empty: chosen by each worker at the beginning of each clock
  int mh_steps = 2;
  bool sequential = false;  ///< tokens get their first topics in clock 0, from those before them
  bool fit_priors = false;
  std::uint64_t seed = 1;
  bool keep_documents = true;  ///< the topics of documents go with the model
  const Kernels* kernels = nullptr;
  std::filesystem::path scratch = {};  ///< where the best state goes while documents are streamed
};

class LdaTrainee final : public Trainee, public ShowsBlocks {
 public:
  /// Borrows state, topology and held-out documents (which may be empty).
  LdaTrainee(LdaState& state, const Topology& topology, const WorkerMap& map, const Completion& held_out,
             const TrainingPlan& plan);
  ~LdaTrainee() override;

  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  void worker_ended(WorkerId worker, Clock clock) override;
  Bytes pack_partial(Clock clock) override;
  void commit(Clock clock, std::span<const Bytes> partials) override;
  Bytes pack_block(BlockId block) override;
  void unpack_block(BlockId block, std::span<const std::byte> bytes) override;

  /// Collective on several nodes: they tell each other what they have counted.
  void join(const Collective& nodes) override;
  Evaluation evaluate(Engine& engine, bool exact) override;
  std::vector<StateSection> save_state() const override;
  void load_state(const std::vector<StateSection>& sections) override;
  void keep_best() override;
  void restore_best() override;
  void collect_model(Engine& engine) override;
  /// Of the topics, once the model was collected.
  const std::vector<double>& topic_coherence() const noexcept { return coherence_; }
  /// Sections of save_state() that may be larger than memory, where documents are streamed.
  std::vector<std::string> sections_on_disk() const;
  std::size_t block_bytes(BlockId block) const override;

 private:
  struct Worker;
  /// What is kept of a stripe that is not in memory.
  struct Summary {
    double log_likelihood = 0, topics_per_token = 0;
    bool dense = false;
  };
  std::size_t stripe_at(WorkerId worker, Clock clock) const;
  void begin_clock(Worker& worker, WorkerId id, Clock clock);
  Sampler& sampler_for(Worker& worker, std::size_t stripe);
  void summarise(std::size_t stripe);
  void share_summaries();
  void summarise_all(const ParallelFor& parallel);
  void priors_changed();
  bool is_alone() const { return map_.nodes() == 1; }
  /// Those that this node answers for: its own or, before any was visited, all at the first.
  std::vector<BlockId> blocks_here() const;
  std::vector<double> word_parts_of_all(const ParallelFor& parallel) const;
  void add_far_counts();
  void gather_words();
  void gather_documents();
  std::vector<StateSection> joined(std::vector<StateSection> here) const;
  std::vector<StateSection> part_here(const std::vector<StateSection>& sections) const;

  LdaState& state_;
  const WorkerMap map_;
  Collective nodes_;
  const Completion& held_out_;
  const TrainingPlan plan_;
  Buffer alpha_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::optional<DocumentLogs> logs_;
  std::vector<Summary> summaries_;     ///< by stripe
  bool summarised_ = false;            ///< those of streamed stripes are of their states on disk and of these priors
  std::vector<std::uint8_t> visited_;  ///< by block, its owner's: it is here, as its last visitor left it
  std::vector<StateSection> best_;
  std::vector<double> coherence_;
};

}  // namespace orrery::lda
