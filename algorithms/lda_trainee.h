// What the schedules of topic models share: the objective, what a worker has for a clock, and how a state is evaluated,
// saved and kept as the best.
//
//   θ_d ~ Dirichlet(α),  φ_k ~ Dirichlet(β),  z_i ~ θ_d,  w_i ~ φ_z;  θ and φ are integrated out, z is sampled
//   (Griffiths, Steyvers, PNAS 2004)
//
// Documents stay with their worker under every schedule. One clock visits the tokens of a document block once, one
// iteration those of all. What differs is where the counts of words are while units run: in blocks that rotate
// (lda_rotation.h) or on a table that all share (lda_data_parallel.h); between clocks they are in the state.
//
// What depends on all documents (the first counts of words, totals, likelihood, coherence) is made of what the nodes
// have counted in their own: whole numbers, or sums by stripe and block that are added in the order of one node.
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

class LdaTrainee : public Trainee {
 public:
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

 protected:
  /// Borrows state, topology and held-out documents (which may be empty).
  LdaTrainee(LdaState& state, const Topology& topology, const WorkerMap& map, const Completion& held_out,
             const TrainingPlan& plan);

  /// What a worker has for itself: its copy of the totals, scratch, and its sampler.
  struct Worker {
    Worker(const LdaState& state, const Topology& topology, DomainId domain);
    Clock clock = -1;
    TopicView view;
    Buffer memory;
    std::vector<std::int64_t> started;  ///< totals at the beginning of the clock
    OpenRow row;
    std::size_t stripe = 0;
    Sampler* sampler = nullptr;                        ///< of this clock
    std::array<std::unique_ptr<Sampler>, 3> samplers;  ///< by kind, once made
  };

  /// Every count of a word came anew from the assignments, into the state.
  virtual void words_were_counted() = 0;
  /// Makes the counts of words and the totals in the state those of all nodes. Collective; between clocks.
  virtual void bring_words() = 0;
  /// Blocks of words whose likelihood this node answers for.
  virtual std::vector<BlockId> blocks_here() const = 0;

  /// The worker's stripe, and all that its sampler starts from, with the totals in `started`.
  void begin_clock(Worker& worker, WorkerId id, Clock clock);
  /// Of a run of a stripe that begins at a token, without the counts of its word.
  Visit visit_of(Stripe& stripe, std::size_t token, std::uint32_t tokens, std::uint32_t word) const;
  /// Once a clock is committed and no unit runs.
  void fit_priors_if_due(Clock clock);
  void summarise(std::size_t stripe);
  bool is_alone() const { return map_.nodes() == 1; }

  LdaState& state_;
  const WorkerMap map_;
  Collective nodes_;
  const TrainingPlan plan_;
  std::vector<std::unique_ptr<Worker>> workers_;
  bool summarised_ = false;  ///< summaries of streamed stripes are of their states on disk and of these priors

 private:
  /// What is kept of a stripe that is not in memory.
  struct Summary {
    double log_likelihood = 0, topics_per_token = 0;
    bool dense = false;
  };
  std::size_t stripe_at(WorkerId worker, Clock clock) const;
  Sampler& sampler_for(Worker& worker, std::size_t stripe);
  void share_summaries();
  void summarise_all(const ParallelFor& parallel);
  void priors_changed();
  std::vector<double> word_parts_of_all(const ParallelFor& parallel) const;
  void add_far_counts();
  void gather_documents();
  std::vector<StateSection> joined(std::vector<StateSection> here) const;
  std::vector<StateSection> part_here(const std::vector<StateSection>& sections) const;

  const Completion& held_out_;
  Buffer alpha_;
  std::optional<DocumentLogs> logs_;
  std::vector<Summary> summaries_;  ///< by stripe
  std::vector<StateSection> best_;
  std::vector<double> coherence_;
};

}  // namespace orrery::lda
