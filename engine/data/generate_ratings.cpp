#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/data/generate.h"
#include "engine/data/generate_parts.h"
#include "engine/data/id_map.h"
#include "engine/data/portable_math.h"

namespace orrery {

namespace {

void check(const RatingsPlan& plan) {
  require(plan.users > 0 && plan.items > 1 && plan.ratings > 0,
          "users, items (at least 2) and ratings must be positive");
  require(plan.users < IdMap::kUnseen && plan.items < IdMap::kUnseen, "at most 4294967294 users and items");
  const double pairs = static_cast<double>(plan.users) * (plan.items / 2);
  require(static_cast<double>(plan.ratings) <= pairs, "ratings may be at most half of all pairs");
  require(plan.test_fraction >= 0 && plan.test_fraction < 1, "the test fraction lies in [0, 1)");
  require(plan.decimals >= 0 && plan.decimals <= 9, "decimals lie in 0 to 9");
  require(plan.lowest < plan.highest, "the lowest rating lies below the highest");
  require(plan.noise >= 0 && plan.activity >= 0, "standard deviations are not negative");
}

// How many ratings each user gives: shares of a log-normal law, rounded so that the sum is exact, at most half of the
// items; what is above goes to the users that follow.
std::vector<std::uint64_t> user_ends(const RatingsPlan& plan) {
  std::vector<double> shares(plan.users);
  double total = 0;
  for (std::uint32_t u = 0; u < plan.users; ++u) {
    RandomStream random = draws_of(plan.seed, Draw::activity, u);
    total += shares[u] = portable_exp(plan.activity * random.normal());
  }
  const std::uint64_t most = plan.items / 2;
  std::vector<std::uint64_t> counts(plan.users);
  double cumulated = 0;
  std::uint64_t given = 0, excess = 0;
  for (std::uint32_t u = 0; u < plan.users; ++u) {
    cumulated += shares[u];
    const double exact = cumulated / total * static_cast<double>(plan.ratings);
    const std::uint64_t upto =
        u + 1 == plan.users ? plan.ratings : std::min(plan.ratings, static_cast<std::uint64_t>(exact));
    const std::uint64_t wanted = upto - given + excess;
    given = upto;
    counts[u] = std::min(wanted, most);
    excess = wanted - counts[u];
  }
  for (std::uint32_t u = 0; excess > 0; ++u) {  // fits: there are at least as many places as ratings
    const std::uint64_t more = std::min(excess, most - counts[u]);
    counts[u] += more;
    excess -= more;
  }
  for (std::uint32_t u = 1; u < plan.users; ++u) counts[u] += counts[u - 1];
  return counts;
}

// Which item has which popularity rank: ids tell nothing about popularity.
std::vector<std::uint32_t> items_by_rank(const RatingsPlan& plan) {
  return Random(plan.seed, Purpose::generator).permutation(plan.items, static_cast<Clock>(Draw::popularity), 0);
}

void draw_model(std::uint32_t count, std::uint32_t rank, double bias, double scale, Draw draw, const RatingsPlan& plan,
                std::vector<double>& biases, std::vector<double>& factors, const ParallelFor& parallel) {
  biases.resize(count);
  factors.resize(static_cast<std::size_t>(count) * rank);
  constexpr std::size_t kPart = 1024;
  parallel((count + kPart - 1) / kPart, [&](std::size_t part) {
    for (std::size_t i = part * kPart; i < std::min<std::size_t>(count, (part + 1) * kPart); ++i) {
      RandomStream random = draws_of(plan.seed, draw, i);
      biases[i] = bias * random.normal();
      for (std::uint32_t k = 0; k < rank; ++k) factors[i * rank + k] = scale * random.normal();
    }
  });
}

class RatingsGenerator {
 public:
  RatingsGenerator(const RatingsPlan& plan, const ParallelFor& parallel)
      : plan_(plan), parallel_(parallel), ends_(user_ends(plan)), items_(items_by_rank(plan)) {
    popularity_ = AliasTable(zipf_weights(plan.items, plan.zipf));
    // Each of the two factors has variance interaction / √rank, so that p·q has variance interaction².
    const double scale = plan.rank == 0 ? 0 : std::sqrt(plan.interaction / std::sqrt(static_cast<double>(plan.rank)));
    RatingsTruth& truth = out_.truth;
    draw_model(plan.users, plan.rank, plan.user_bias, scale, Draw::user, plan, truth.user_bias, truth.user_factors,
               parallel);
    draw_model(plan.items, plan.rank, plan.item_bias, scale, Draw::item, plan, truth.item_bias, truth.item_factors,
               parallel);
    step_ = 1;
    for (int i = 0; i < plan.decimals; ++i) step_ *= 10;
  }

  GeneratedRatings run() {
    out_.ratings.grow(plan_.ratings);
    constexpr std::size_t kPart = 256;
    parallel_((plan_.users + kPart - 1) / kPart, [&](std::size_t part) {
      std::vector<std::uint32_t> last_user(plan_.items, IdMap::kUnseen);
      const std::size_t end = std::min<std::size_t>(plan_.users, (part + 1) * kPart);
      for (std::size_t u = part * kPart; u < end; ++u) user(static_cast<std::uint32_t>(u), last_user);
    });
    shuffle();
    const double test = plan_.test_fraction * static_cast<double>(plan_.ratings);
    out_.training = plan_.ratings - static_cast<std::uint64_t>(test + 0.5);
    out_.truth.oracle_rmse = oracle(0, plan_.ratings);
    out_.truth.oracle_rmse_test = oracle(out_.training, plan_.ratings);
    return std::move(out_);
  }

 private:
  Rating& at(std::uint64_t i) {
    return out_.ratings.chunk(static_cast<std::size_t>(i / RatingStore::kChunk))[i % RatingStore::kChunk];
  }

  void user(std::uint32_t u, std::vector<std::uint32_t>& last_user) {
    RandomStream random = draws_of(plan_.seed, Draw::ratings, u);
    for (std::uint64_t i = u == 0 ? 0 : ends_[u - 1]; i < ends_[u];) {
      const std::uint32_t item = items_[popularity_.draw(random)];
      if (last_user[item] == u) continue;
      last_user[item] = u;
      const double exact = prediction(u, item) + plan_.noise * random.normal();
      const double cut = std::clamp(exact, plan_.lowest, plan_.highest);
      at(i) = {u, item, static_cast<float>(std::floor(cut * step_ + 0.5) / step_)};
      ++i;
    }
  }

  double prediction(std::uint32_t u, std::uint32_t i) const {
    const RatingsTruth& truth = out_.truth;
    double sum = plan_.mean + truth.user_bias[u] + truth.item_bias[i];
    const double* p = truth.user_factors.data() + static_cast<std::size_t>(u) * plan_.rank;
    const double* q = truth.item_factors.data() + static_cast<std::size_t>(i) * plan_.rank;
    for (std::uint32_t k = 0; k < plan_.rank; ++k) sum += p[k] * q[k];
    return sum;
  }

  void shuffle() {
    RandomStream random = draws_of(plan_.seed, Draw::order, 0);
    for (std::uint64_t left = plan_.ratings; left > 1; --left) std::swap(at(left - 1), at(random.below(left)));
  }

  double oracle(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return 0;
    const std::size_t first = begin / RatingStore::kChunk, last = (end - 1) / RatingStore::kChunk;
    std::vector<double> sums(last - first + 1, 0.0);
    parallel_(sums.size(), [&](std::size_t c) {
      const std::uint64_t from = std::max<std::uint64_t>(begin, (first + c) * RatingStore::kChunk);
      const std::uint64_t to = std::min<std::uint64_t>(end, (first + c + 1) * RatingStore::kChunk);
      for (std::uint64_t i = from; i < to; ++i) {
        const Rating& r = at(i);
        const double guess = std::clamp(prediction(r.user, r.item), plan_.lowest, plan_.highest);
        const double error = static_cast<double>(r.value) - guess;
        sums[c] += error * error;
      }
    });
    return std::sqrt(sum_in_order(sums) / static_cast<double>(end - begin));
  }

  const RatingsPlan& plan_;
  const ParallelFor& parallel_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> items_;
  AliasTable popularity_;
  GeneratedRatings out_;
  double step_ = 1;
};

void write_part(const RatingsPlan& plan, const RatingStore& ratings, std::uint64_t begin, std::uint64_t end,
                const std::filesystem::path& path, const ParallelFor& parallel) {
  constexpr std::uint64_t kPart = std::uint64_t{1} << 15;
  TextWriter out(path);
  write_parts(out, static_cast<std::size_t>((end - begin + kPart - 1) / kPart), parallel,
              [&](std::size_t part, TextBuffer& text) {
                const std::uint64_t from = begin + part * kPart;
                for (std::uint64_t i = from; i < std::min(end, from + kPart); ++i) {
                  const Rating& r = ratings[i];
                  text << r.user + 1 << ' ' << r.item + 1 << ' ';
                  text.fixed(static_cast<double>(r.value), plan.decimals) << '\n';
                }
              });
  out.commit();
}

}  // namespace

GeneratedRatings generate_ratings(const RatingsPlan& plan, const ParallelFor& parallel) {
  check(plan);
  return RatingsGenerator(plan, parallel).run();
}

RatingsTruth write_ratings(const RatingsPlan& plan, const std::filesystem::path& path,
                           const std::filesystem::path& test_path, const ParallelFor& parallel) {
  check(plan);
  require((plan.test_fraction > 0) == !test_path.empty(), "a test fraction and a file for it go together");
  GeneratedRatings made = generate_ratings(plan, parallel);
  write_part(plan, made.ratings, 0, made.training, path, parallel);
  if (!test_path.empty()) write_part(plan, made.ratings, made.training, plan.ratings, test_path, parallel);
  return std::move(made.truth);
}

}  // namespace orrery
