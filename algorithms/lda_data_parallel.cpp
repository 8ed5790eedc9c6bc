#include "algorithms/lda_data_parallel.h"

#include <algorithm>
#include <numeric>

#include "engine/assert.h"
#include "engine/engine.h"
#include "engine/random.h"
#include "numa/access_section.h"

namespace orrery::lda {
namespace {

constexpr std::uint32_t kOnlyRow = 0;

/// A row of the table as the kernels want it. Only as long as the table keeps its promise is none negative.
void copy_counts(std::span<const std::int32_t> row, std::span<std::int32_t> counts) {
  std::copy(row.begin(), row.end(), counts.begin());
  ORRERY_HEAVY_CHECK(std::all_of(row.begin(), row.end(), [](std::int32_t count) { return count >= 0; }));
}

}  // namespace

DataParallelTrainee::DataParallelTrainee(const Engine& engine, LdaState& state, const WorkerMap& map,
                                         const Completion& held_out, const TrainingPlan& plan)
    : OnTables(engine, map, state, engine.topology(), map, held_out, plan),
      visits_(state.grid.stripes()),
      scratch_(map.workers()),
      words_(tables().add<std::int32_t>({.name = "words",
                                         .rows = static_cast<std::uint32_t>(state.grid.words().size()),
                                         .width = static_cast<std::uint32_t>(state.topics())})),
      totals_(tables().add<std::int64_t>(
          {.name = "totals", .rows = 1, .width = static_cast<std::uint32_t>(state.topics())})) {
  const TokenGrid& grid = state.grid;
  for (std::size_t s = 0; s < grid.stripes(); ++s) {
    if (!grid.is_here(s)) continue;
    for_each_run(grid.stripe(s), [&](std::size_t block, const Run& run, std::size_t) {
      visits_[s].words.push_back(grid.words().begin[block] + run.word);
    });
    words_.will_read(visits_[s].words);
    visits_[s].rows.emplace(words_.stream(static_cast<WorkerId>(s % grid.workers()), visits_[s].words));
  }
  totals_.will_read({&kOnlyRow, 1});
  for (std::size_t w = grid.first_here(); w < grid.end_here(); ++w) {
    const auto worker = static_cast<WorkerId>(w);
    scratch_[w].counts =
        Buffer::local(padded_topics(state.topics()) * sizeof(std::int32_t), map.domain_of(worker), engine.topology());
    scratch_[w].before.resize(grid.longest_run());
  }
  words_were_counted();
}

void DataParallelTrainee::run_unit(const WorkUnit& unit, UnitContext& context) {
  Worker& worker = *workers_[unit.worker];
  const std::span<const std::int64_t> totals = totals_.read(context, kOnlyRow);
  worker.started.assign(totals.begin(), totals.end());
  begin_clock(worker, unit.worker, unit.clock);
  RandomStream draws = Random(plan_.seed, Purpose::sampling).stream(unit.clock, unit.worker);
  {
    StreamCursor<std::int32_t> rows = words_.along(context, *visits_[worker.stripe].rows);
    Scratch& scratch = scratch_[unit.worker];
    sample_runs(worker, scratch.counts.as<std::int32_t>(), scratch.before, rows, draws);
  }
  for (std::size_t k = 0; k < worker.started.size(); ++k) worker.started[k] = worker.view.totals[k] - worker.started[k];
  totals_.add(context, kOnlyRow, worker.started);
}

void DataParallelTrainee::sample_runs(Worker& worker, std::span<std::int32_t> counts, std::vector<Topic>& before,
                                      StreamCursor<std::int32_t>& rows, RandomStream& draws) {
  Stripe& stripe = state_.grid.stripe(worker.stripe);
  DocumentTopics& documents = *state_.documents[worker.stripe];
  const std::span<const std::uint32_t> words = visits_[worker.stripe].words;
  const AccessSection inner_loop;
  std::size_t token = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    copy_counts(rows.read(i), counts);
    Visit visit = visit_of(stripe, token, stripe.runs[i].tokens, words[i]);
    visit.counts = counts.data();
    std::copy_n(visit.topics, visit.tokens, before.begin());
    worker.sampler->sample(visit, worker.view, documents, draws);
    for (std::size_t t = 0; t < visit.tokens; ++t) {
      if (visit.topics[t] == before[t]) continue;
      rows.add(i, before[t], -1);
      rows.add(i, visit.topics[t], 1);
    }
    token += visit.tokens;
  }
}

void DataParallelTrainee::commit(Clock clock, std::span<const Bytes> partials) {
  OnTables::commit(clock, partials);
  fit_priors_if_due(clock);
}

void DataParallelTrainee::words_were_counted() {
  const Axis& axis = state_.grid.words();
  std::vector<std::int32_t> row(state_.topics());
  for (BlockId block = 0; block < state_.grid.blocks(); ++block) {
    for (std::uint32_t word = 0; word < axis.part_size(block); ++word) {
      std::fill(row.begin(), row.end(), 0);
      state_.words.for_each_topic(block, word, [&](Topic topic, std::int32_t count) { row[topic] = count; });
      words_.set(axis.begin[block] + word, row);
    }
  }
  totals_.set(kOnlyRow, state_.totals.committed());
}

// The table has what all nodes added.
void DataParallelTrainee::bring_words() {
  const Axis& axis = state_.grid.words();
  for (BlockId block = 0; block < state_.grid.blocks(); ++block) {
    for (std::uint32_t word = 0; word < axis.part_size(block); ++word) {
      state_.words.set(block, word, words_.row(axis.begin[block] + word));
    }
  }
  const std::span<const std::int64_t> totals = totals_.row(kOnlyRow);
  state_.totals.reset({totals.begin(), totals.end()});
}

std::vector<BlockId> DataParallelTrainee::blocks_here() const {
  std::vector<BlockId> blocks(nodes_.is_first() ? state_.grid.blocks() : 0);
  std::iota(blocks.begin(), blocks.end(), BlockId{0});
  return blocks;
}

Evaluation DataParallelTrainee::evaluate(Engine& engine, bool exact) {
  bring_words();
  Evaluation evaluation = LdaTrainee::evaluate(engine, exact);
  tables().report(evaluation);
  return evaluation;
}

}  // namespace orrery::lda
