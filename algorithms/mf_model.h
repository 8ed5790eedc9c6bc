// A factorisation on disk and read back: predictions, held-out metrics, recommendations, factors of new users.
//
// Arrays, in the order of users.txt and items.txt and in rating units: prediction = mean + user_bias[u] + item_bias[i]
// + user_factors[u]·item_factors[i]. `constants` = {mean, scale, lowest, highest, clip, reg, reg-power,
// bias-damping}; `seen_begin`,
// `seen_items`: the items that each user rated, ascending.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/mf.h"
#include "algorithms/mf_holdout.h"
#include "algorithms/mf_seen.h"
#include "algorithms/mf_state.h"
#include "engine/data/id_map.h"
#include "engine/data/ratings.h"

namespace orrery::mf {

/// Writes the state, of which all rows must be here. Peak memory: 4 bytes a rating for the list of what was rated (with
/// keep_seen), and 8 for those of one stripe a thread.
void write_mf_model(ModelWriter& writer, const MfState& state, const CellGrid& grid, const IdMap& users,
                    const IdMap& items, const Scaling& scaling, const MfParams& params, const FarSeen& far_seen,
                    const ParallelFor& parallel);

/// Without reading more than the manifest and the headers of its arrays. @throws Error (data) for another kind of
/// model.
std::size_t rank_of_model(const ModelReader& reader);

class MfModel final : public Model {
 public:
  /// Reads the whole model. @throws Error (data) when arrays are missing or do not fit together.
  explicit MfModel(const ModelReader& reader);

  std::size_t rank() const noexcept { return rank_; }
  /// For external indices, or IdMap::kUnseen: then what is known of the other side, and the mean.
  double predict(std::uint32_t user, std::uint32_t item) const;

  void predict(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const override;
  ValueList evaluate(const std::string& data, const std::string& format, Engine& engine) const override;
  /// Factors of users by ridge regression on their ratings of known items: `user bias f1 … fk` a line, in the order of
  /// the ids' indices. Users that the model knows are inferred anew from the given ratings alone.
  void infer(const std::string& data, const std::string& format, Engine& engine, std::ostream& out) const override;
  /// A user without training ratings gets the items with the highest mean and bias.
  bool knows_user(const std::string& user) const override { return users_.ids.find(user) != IdMap::kUnseen; }
  std::vector<std::pair<std::string, double>> recommend(const std::string& user, std::size_t top) const override;
  std::vector<Check> verify(const Run& run, Engine& engine) const override;

  /// Starts a training from this model where ids are the same, as far as rows are here. @return how many users and
  /// items were known.
  std::pair<std::size_t, std::size_t> copy_into(MfState& state, const CellGrid& grid, const IdMap& users,
                                                const IdMap& items, const Scaling& scaling) const;

 private:
  struct Side {
    IdMap ids;
    std::vector<float> factors, bias;  ///< ids × rank, ids
  };
  void read_side(const ModelReader& reader, const char* name, Side& side) const;
  /// bias, then factors: ridge regression on one user's ratings with everything else fixed.
  std::vector<double> ridge(const std::vector<std::pair<std::uint32_t, float>>& ratings) const;
  /// Over ratings whose indices are those of this model.
  ErrorSums measure(const RatingsData& read, Engine& engine) const;

  std::size_t rank_ = 0;
  Side users_, items_;
  Scaling scaling_;
  double bias_damping_ = 0, factor_variance_ = 0;
  std::vector<std::int64_t> seen_begin_;
  std::vector<std::int32_t> seen_items_;
};

}  // namespace orrery::mf
