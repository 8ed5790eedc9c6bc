#include "algorithms/lasso_folds.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "algorithms/lasso_logistic.h"
#include "algorithms/lasso_model.h"
#include "algorithms/lasso_state.h"

namespace orrery::lasso {
namespace {

/// The rows outside of the fold, or those inside.
SparseRows rows_of(const FoldSetup& setup, std::uint32_t fold, bool is_inside) {
  const SparseRows& all = setup.rows;
  SparseRows some;
  some.column_count = all.column_count;
  for (std::uint64_t r = 0; r < all.rows(); ++r) {
    if ((setup.fold_of[r] == fold) != is_inside) continue;
    const auto first = static_cast<std::ptrdiff_t>(all.starts[r]),
               last = static_cast<std::ptrdiff_t>(all.starts[r + 1]);
    some.labels.push_back(all.labels[r]);
    some.columns.insert(some.columns.end(), all.columns.begin() + first, all.columns.begin() + last);
    some.values.insert(some.values.end(), all.values.begin() + first, all.values.begin() + last);
    some.starts.push_back(some.columns.size());
  }
  return some;
}

std::vector<float> signs_in(const FoldSetup& setup, std::uint32_t fold, bool is_inside) {
  std::vector<float> some;
  for (std::size_t r = 0; r < setup.signs.size(); ++r) {
    if ((setup.fold_of[r] == fold) == is_inside) some.push_back(setup.signs[r]);
  }
  return some;
}

std::string prefix_of(std::size_t fold) { return "fold-" + std::to_string(fold) + "/"; }

}  // namespace

Fold::Fold(const FoldSetup& setup, std::uint32_t fold) : setup_(setup), fold_(fold) {
  const SparseRows outside = rows_of(setup, fold, false);
  design_ = std::make_unique<Design>(outside, setup.has_intercept, setup.standardise, setup.kernels, serial_for);
  response_ = setup.signs.empty() ? std::make_unique<Response>(outside.labels, setup.has_intercept)
                                  : std::make_unique<Response>(signs_in(setup, fold, false), setup.has_intercept);
  trainee_ = std::make_unique<LassoTrainee>(*design_, *response_, setup.request, 1, std::vector<double>{}, nullptr,
                                            LassoTrainee::Report{}, LassoTrainee::Choose{});
  trainee_->take_stop_rules(setup.stop);
}

void Fold::step() {
  const std::size_t before = trainee_->points().size();
  while (!is_done() && trainee_->points().size() == before) trainee_->run_alone();
  if (is_done()) judge();
}

void Fold::judge() {
  const SparseRows inside = rows_of(setup_, fold_, true);
  const std::vector<float> signs = signs_in(setup_, fold_, true);
  errors_.clear();
  for (const PathPoint& point : trainee_->points()) {
    const std::vector<double> predicted = predict(inside, fitted_of(point, *design_), serial_for);
    const double rmse = signs.empty() ? score(predicted, inside.labels).rmse : 0.0;
    errors_.push_back(signs.empty() ? rmse * rmse : mean_log_loss(predicted, signs));
  }
  errors_.resize(setup_.request.lambdas.size(), errors_.back());
}

void Fold::save(std::vector<StateSection>& sections, const std::string& prefix) const {
  for (StateSection& section : trainee_->save_state()) {
    sections.push_back({prefix + section.name, std::move(section.bytes)});
  }
}

void Fold::load(const std::vector<StateSection>& sections, const std::string& prefix) {
  std::vector<StateSection> own;
  for (const StateSection& section : sections) {
    if (section.name.starts_with(prefix)) own.push_back({section.name.substr(prefix.size()), section.bytes});
  }
  trainee_->load_state(own);
  if (is_done()) judge();
}

CrossValidation::CrossValidation(LassoTrainee& path, FoldSetup setup, std::uint32_t folds, WorkerId workers)
    : path_(path), setup_(std::move(setup)), workers_(workers), folds_(folds) {}

void CrossValidation::take_stop_rules(const StopRules& rules) {
  setup_.stop = rules;
  path_.take_stop_rules(rules);
}

void CrossValidation::run_unit(const WorkUnit& unit, UnitContext& context) {
  if (!is_path_done()) {
    path_.run_unit(unit, context);
    return;
  }
  for (std::size_t f = unit.worker; f < folds_.size(); f += workers_) {
    if (folds_[f] == nullptr) folds_[f] = std::make_unique<Fold>(setup_, static_cast<std::uint32_t>(f));
    if (!folds_[f]->is_done()) folds_[f]->step();
  }
}

void CrossValidation::commit(Clock clock, std::span<const Bytes> partials) {
  if (!is_path_done()) {
    path_.commit(clock, partials);
    if (is_path_done()) setup_.request.lambdas = path_.lambdas();
    return;
  }
  take_folds();
}

void CrossValidation::take_folds() {
  is_done_ = std::all_of(folds_.begin(), folds_.end(), [](const auto& fold) { return fold->is_done(); });
  if (!is_done_) return;
  std::vector<std::vector<double>> errors;
  for (const auto& fold : folds_) errors.push_back(fold->errors());
  std::vector<double> weights(folds_.size(), 0.0);
  for (const std::uint32_t fold : setup_.fold_of) weights[fold] += 1;
  table_ = summarise(errors, weights);
}

Evaluation CrossValidation::evaluate(Engine& engine, bool exact) {
  Evaluation out = path_.evaluate(engine, exact);
  if (is_done_) {
    const std::vector<double>& lambdas = setup_.request.lambdas;
    out.extra.emplace_back("lambda_min", lambdas[table_.least]);
    out.extra.emplace_back("lambda_1se", lambdas[table_.one_se]);
    out.extra.emplace_back("cv_error", table_.points[table_.least].error);
    out.extra.emplace_back("cv_se", table_.points[table_.least].standard_error);
    return out;
  }
  out.is_final = false;
  out.residual = std::numeric_limits<double>::infinity();
  return out;
}

std::vector<StateSection> CrossValidation::save_state() const {
  std::vector<StateSection> sections = path_.save_state();
  for (std::size_t f = 0; f < folds_.size(); ++f) {
    if (folds_[f] != nullptr) folds_[f]->save(sections, prefix_of(f));
  }
  return sections;
}

void CrossValidation::load_state(const std::vector<StateSection>& sections) {
  path_.load_state(sections);
  if (!is_path_done()) return;
  setup_.request.lambdas = path_.lambdas();
  const bool has_folds = std::any_of(sections.begin(), sections.end(), [](const StateSection& section) {
    return section.name.starts_with(prefix_of(0));
  });
  if (!has_folds) return;
  for (std::size_t f = 0; f < folds_.size(); ++f) {
    folds_[f] = std::make_unique<Fold>(setup_, static_cast<std::uint32_t>(f));
    folds_[f]->load(sections, prefix_of(f));
  }
  take_folds();
}

}  // namespace orrery::lasso
