// A trained linear classifier read back from the files: what does not depend on its loss.
#pragma once

#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/certificate.h"
#include "engine/data/sparse_rows.h"

namespace orrery {

class LinearModel : public Model {
 public:
  std::vector<Check> verify(const Run& run, Engine& engine) const override;

 protected:
  explicit LinearModel(const ModelReader& reader);
  /// Rows of any file, with a warning for columns that training did not have.
  SparseData read(const std::string& data, const std::string& format, Engine& engine) const;

  virtual std::size_t columns() const = 0;
  virtual bool is_finite() const = 0;
  /// The held-out metric of run.json, as evaluate() calls it.
  virtual std::string metric() const { return "log_loss"; }
  /// The proof for the training data. @throws Error (data) for classes that the model does not have
  virtual Certificate certify_on(const SparseData& data, const std::string& path, Engine& engine) const = 0;
  /// What else can be checked against the training data.
  virtual std::vector<Check> more_checks(const SparseData& /*data*/, const std::string& /*path*/,
                                         Engine& /*engine*/) const {
    return {};
  }

  newton::Penalty penalty_;
  Certificate certificate_;  ///< as the training ended

 private:
  std::string label_;  ///< --label of the training
};

}  // namespace orrery
