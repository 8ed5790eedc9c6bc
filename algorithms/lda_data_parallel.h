// Topic models data parallel: collapsed Gibbs sampling with the counts of words on a table that all workers share under
// bounded staleness, instead of in blocks that rotate.
//
// A unit is one worker's documents of one document block. It takes the tokens word by word: it reads the word's row,
// gives its tokens topics with any of the samplers of lda_sampler.h on a copy, and adds to the row what its own tokens
// have moved, one less here, one more there. The totals n_k are a table of one row, of which a unit reads and adds
// once. Tokens of different workers thus sample from counts that lack what the others moved meanwhile: the
// approximation of Newman et al., JMLR 2009, which the table bounds in clocks (design section 5) and which
// `document-blocks` makes finer.
//
// A count is never negative, at any staleness. What a worker sees is, for each other worker, the sum of what it added
// up to the end of one of its clocks, and everything that it added itself; each of these sums is the number of tokens
// that the worker had in the topic at a moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/lda_trainee.h"
#include "engine/table_store.h"

namespace orrery::lda {

class DataParallelTrainee final : public OnTables<LdaTrainee> {
 public:
  /// Borrows everything. Documents are in memory and have topics; counts start as they are in the state.
  DataParallelTrainee(const Engine& engine, LdaState& state, const WorkerMap& map, const Completion& held_out,
                      const TrainingPlan& plan);

  /// Beside the sampler it costs a pass over the rows of its words and a table access for each word and each move.
  void run_unit(const WorkUnit& unit, UnitContext& context) override;
  void commit(Clock clock, std::span<const Bytes> partials) override;
  Evaluation evaluate(Engine& engine, bool exact) override;

 private:
  /// The words of a stripe in the order of its runs, and where the worker is among their rows.
  struct Visits {
    std::vector<std::uint32_t> words;
    std::optional<RowStream> rows;
  };
  /// What a worker samples on.
  struct Scratch {
    Buffer counts;              ///< of the word at hand, by topic, padded
    std::vector<Topic> before;  ///< of its tokens
  };

  void sample_runs(Worker& worker, std::span<std::int32_t> counts, std::vector<Topic>& before,
                   StreamCursor<std::int32_t>& rows, RandomStream& draws);
  void words_were_counted() override;
  void bring_words() override;
  std::vector<BlockId> blocks_here() const override;

  std::vector<Visits> visits_;    ///< by stripe
  std::vector<Scratch> scratch_;  ///< by worker
  Table<std::int32_t>& words_;
  Table<std::int64_t>& totals_;
};

}  // namespace orrery::lda
