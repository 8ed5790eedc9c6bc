// Small corpora and a topic model over them, for tests: everything between a corpus in memory and single clocks.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "algorithms/lda_data_parallel.h"
#include "algorithms/lda_hybrid.h"
#include "algorithms/lda_layout.h"
#include "algorithms/lda_rotation.h"
#include "algorithms/lda_state.h"
#include "engine/clock.h"
#include "engine/engine.h"
#include "engine/executor.h"
#include "engine/random.h"
#include "engine/schedule.h"

namespace orrery::lda {

/// Documents as lists of words.
inline Corpus corpus_of(const std::vector<std::vector<std::uint32_t>>& documents, std::uint32_t words) {
  Corpus corpus;
  corpus.word_count = words;
  for (const auto& document : documents) {
    for (std::uint32_t word = 0; word < words; ++word) {
      const auto count = std::count(document.begin(), document.end(), word);
      if (count == 0) continue;
      corpus.words.push_back(word);
      corpus.counts.push_back(static_cast<std::uint32_t>(count));
      corpus.tokens += static_cast<std::uint64_t>(count);
    }
    corpus.starts.push_back(corpus.words.size());
  }
  return corpus;
}

/// Griffiths and Steyvers' bars: a topic is a row or a column of a side × side picture; a document mixes two of them.
inline Corpus bars(std::uint32_t side, std::size_t documents, std::size_t length, std::uint64_t seed) {
  const Random random(seed, Purpose::test);
  std::vector<std::vector<std::uint32_t>> out(documents);
  for (std::size_t d = 0; d < documents; ++d) {
    RandomStream draws = random.stream(0, d);
    const std::uint64_t topics[] = {draws.below(2 * side), draws.below(2 * side)};
    for (std::size_t i = 0; i < length; ++i) {
      const auto topic = static_cast<std::uint32_t>(topics[draws.below(2)]);
      const auto place = static_cast<std::uint32_t>(draws.below(side));
      out[d].push_back(topic < side ? topic * side + place : place * side + (topic - side));
    }
  }
  return corpus_of(out, side * side);
}

inline Priors symmetric_priors(std::size_t topics, double alpha = 0.1, double beta = 0.05) {
  Priors priors;
  priors.alpha.assign(topics, alpha);
  priors.beta = beta;
  return priors;
}

enum class By { rotation, tables };

/// A model in training; run() runs clocks on the engine.
class Fixture {
 public:
  Fixture(const Corpus& corpus, std::size_t topics, WorkerId workers, const TrainingPlan& given, Priors priors,
          const EngineOptions& options = {}, std::size_t document_blocks = 1, const Streaming* streaming = nullptr,
          By by = By::rotation, std::uint32_t groups = 1)
      : engine_(options),
        map_(workers, 1, 0, engine_.domains()),
        plan_(given),
        state_(TokenGrid(corpus, {.document_blocks = document_blocks, .workers = workers, .blocks = workers},
                         engine_.parallel_for_function()),
               engine_.topology(), map_, topics, std::move(priors), streaming) {
    if (plan_.kernels == nullptr) plan_.kernels = &kernels(engine_.simd());
    for (std::size_t block = 0; block < document_blocks; ++block) {
      state_.admit(block);
      if (!plan_.sequential) assign_at_random(state_, block, plan_.seed, engine_.parallel_for_function());
      state_.store(block);
    }
    state_.count(engine_.parallel_for_function());
    if (groups > 1) {
      schedule_ = std::make_unique<HybridSchedule>(workers, groups, workers, 1);
      trainee_ = std::make_unique<HybridTrainee>(state_, engine_.topology(), map_, groups, engine_.clock_bound(),
                                                 held_out_, plan_);
    } else if (by == By::rotation) {
      schedule_ = std::make_unique<RotationSchedule>(workers, workers, 1);
      trainee_ = std::make_unique<RotatingTrainee>(state_, engine_.topology(), map_, held_out_, plan_);
    } else {
      schedule_ = std::make_unique<DataParallelSchedule>(std::vector<std::uint32_t>(workers, 1));
      trainee_ = std::make_unique<DataParallelTrainee>(engine_, state_, map_, held_out_, plan_);
    }
    start(0);
  }
  /// The next clock to run, after a state was loaded.
  void start(Clock clock) {
    executor_ = std::make_unique<Executor>(engine_, *schedule_, *trainee_, map_.workers(),
                                           ExecutorOptions{.start = clock, .record_trace = false, .should_stop = {}});
  }
  void run(Clock iterations) { executor_->run(iterations * static_cast<Clock>(state_.grid.document_blocks())); }
  LdaState& state() { return state_; }
  LdaTrainee& trainee() { return *trainee_; }
  Engine& engine() { return engine_; }
  double joint() { return joint_log_likelihood(state_, engine_.parallel_for_function()); }

 private:
  Engine engine_;
  WorkerMap map_;
  TrainingPlan plan_;
  LdaState state_;
  std::unique_ptr<Schedule> schedule_;
  Completion held_out_;
  std::unique_ptr<LdaTrainee> trainee_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace orrery::lda
