/// Mean of log(1 + exp(−y x·w)) + lambda |w|₁. Columns x are dense here, to be short; y is −1 or 1.
class L1Logistic final : public Program, public CoordinateModel {
 public:
  L1Logistic(std::vector<std::vector<double>> columns, std::vector<double> y, double lambda, WorkerId workers)
      : x_(std::move(columns)),
        y_(std::move(y)),
        lambda_(lambda),
        w_(x_.size()),
        margins_(y_.size()),
        moves_(workers) {}

  // schedule: which coordinates may move together, and what each costs
  std::uint32_t coordinates() const override { return static_cast<std::uint32_t>(x_.size()); }
  std::uint64_t cost(std::uint32_t) const override { return y_.size(); }
  double dependence(std::uint32_t a, std::uint32_t b) const override {
    return std::abs(dot(x_[a], x_[b])) / std::sqrt(dot(x_[a], x_[a]) * dot(x_[b], x_[b]));
  }
  void pick(Clock round, std::span<std::vector<std::uint32_t>> bins) { scheduler_.pick(round, bins); }

  // push: what each coordinate of a bin would do alone, from the margins that the last pull left
  void run_unit(const WorkUnit& unit, UnitContext&) override {
    moves_[unit.worker].clear();
    for (const std::uint32_t j : unit.items) moves_[unit.worker].emplace_back(j, best_step(j));
  }

  // pull: the steps are taken, in unit order
  void commit(Clock, std::span<const Bytes>) override {
    for (const auto& moves : moves_) {
      for (const auto& [j, step] : moves) {
        w_[j] += step;
        for (std::size_t i = 0; i < y_.size(); ++i) margins_[i] += step * x_[j][i];
        source_.told(j, step);
      }
    }
    scheduler_.pulled();
  }

  std::span<const double> weights() const { return w_; }
  double slope(std::uint32_t j) const {
    double sum = 0;
    for (std::size_t i = 0; i < y_.size(); ++i) sum -= y_[i] * x_[j][i] / (1 + std::exp(y_[i] * margins_[i]));
    return sum / static_cast<double>(y_.size());
  }

 private:
  static double dot(std::span<const double> a, std::span<const double> b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  }
  double best_step(std::uint32_t j) const {
    const double curvature = dot(x_[j], x_[j]) / (4 * static_cast<double>(y_.size()));  // at most
    const double to = w_[j] - slope(j) / curvature;
    return std::copysign(std::max(std::abs(to) - lambda_ / curvature, 0.0), to) - w_[j];
  }

  std::vector<std::vector<double>> x_;
  std::vector<double> y_;
  double lambda_;
  std::vector<double> w_, margins_;
  std::vector<std::vector<std::pair<std::uint32_t, double>>> moves_;  // by worker
  DynamicSource source_{coordinates()};
  CoordinateScheduler scheduler_{*this, source_, {.width = 32, .most_dependence = 0.2}};
};
