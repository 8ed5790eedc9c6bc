// Metropolis-Hastings steps towards p(z = k) ∝ (n_dk + α_k) φ_k that cost the same for any number of topics (Yuan et
// al., WWW 2015, LightLDA). A token makes a step from a proposal of its word and one of its document, in turn:
//
//   word:      q(k) = f_k + β_w r, with f_k = n_kw / (n_k + β̄) frozen when the visit began and drawn by an alias table,
//              and r = 1 / (N / K + β̄) the same for all topics. A step s → t is accepted with probability
//              min(1, p(t) q(s) / (p(s) q(t))), with the q that was drawn from, not with that of the counts as they are
//              now: with the latter the steps would not have p as their fixed point.
//   document:  q(k) ∝ n_dk + α_k without the token itself, so p(t) q(s) / (p(s) q(t)) is just φ_t / φ_s.
//
// The token is out of all counts meanwhile. What is not exact: the frozen f still holds the token's own old topic, one
// count among those of its word. Where that would matter, in visits of few tokens or words of few topics, f is taken
// from the counts as they are and drawn by a scan: then every step keeps p exactly.
#include <algorithm>
#include <numeric>
#include <vector>

#include "algorithms/lda_alias.h"
#include "algorithms/lda_sampler.h"

namespace orrery::lda {
namespace {

#include "algorithms/lda_list.inc"

constexpr std::size_t kFewTokens = 4;   // a table is not worth making for fewer
constexpr std::size_t kFewTopics = 16;  // a scan is as quick as a table

class MhSampler final : public Sampler {
 public:
  explicit MhSampler(const SamplerOptions& options)
      : steps_(options.mh_steps), frozen_(padded_topics(options.topics), 0.0F) {}

  SamplerKind kind() const override { return SamplerKind::mh; }
  double word_acceptance() const override {
    return proposed_ == 0 ? 1 : 1 - static_cast<double>(refused_) / static_cast<double>(proposed_);
  }
  DocumentForm form() const override { return DocumentForm::listed; }

  void begin_clock(TopicView& view) override {
    const auto topics = static_cast<double>(view.topics);
    const double tokens = static_cast<double>(std::accumulate(view.totals, view.totals + view.topics, std::int64_t{0}));
    rate_ = 1.0 / (tokens / topics + view.beta_sum);
    rate_sum_ = topics * rate_;
    const std::span alpha(view.alpha, view.topics);
    alpha_sum_ = sum(alpha);
    symmetric_ = std::all_of(alpha.begin(), alpha.end(), [&](float a) { return a == alpha[0]; });
    if (!symmetric_) alpha_table_.build(alpha);
  }

  void sample(Visit& visit, TopicView& view, DocumentTopics& documents, RandomStream& draws) override {
    const ListedRows lists = documents.listed();
    list_topics(visit, view);
    freeze_ = visit.tokens > kFewTokens && topics_.size() > kFewTopics;
    if (freeze_) freeze_row(visit, view);
    for (std::size_t i = 0; i < visit.tokens; ++i) {
      List list = open_list(lists, visit.documents[i]);
      const std::uint32_t others = documents.length(visit.documents[i]) - 1;
      Token token{visit, view, list, others, draws};
      const Topic old = visit.topics[i];
      Topic now = old;
      if (old == kNoTopic) {
        now = static_cast<Topic>(draws.below(view.topics));
      } else {
        take_out(token, old);
      }
      for (int step = 0; step < steps_; ++step) {
        now = freeze_ ? step_by_frozen_word(token, now) : step_by_word(token, now);
        now = step_by_document(token, now);
      }
      put_in(token, now);
      visit.topics[i] = now;
    }
    if (freeze_) {
      for (std::size_t j = 0; j < frozen_topics_; ++j) frozen_[topics_[j]] = 0;
    }
  }

 private:
  /// A token that is out of all counts, and what it is drawn from.
  struct Token {
    Visit& visit;
    TopicView& view;
    List& list;
    std::uint32_t others;  ///< tokens of its document beside it
    RandomStream& draws;
  };

  static double sum(std::span<const float> values) {
    double sum = 0;
    for (const float value : values) sum += double{value};
    return sum;
  }
  static Topic any_topic(Token& token) { return static_cast<Topic>(token.draws.below(token.view.topics)); }
  static double phi(const Token& token, Topic k) {
    return (token.visit.counts[k] + double{token.visit.beta}) * double{token.view.inverse[k]};
  }
  static double in_document(const Token& token, Topic k) {
    const std::uint32_t place = place_of(token.list, k);
    const bool has = place < token.list.size && token.list.topics[place] == k;
    return (has ? token.list.counts[place] : 0) + double{token.view.alpha[k]};
  }

  /// The topics of the word, to draw from: grows as topics are added.
  void list_topics(const Visit& visit, const TopicView& view) {
    topics_.clear();
    if (visit.listed) {
      topics_.assign(visit.row, visit.row + visit.row_size);
      return;
    }
    for (Topic k = 0; k < view.topics; ++k) {
      if (visit.counts[k] != 0) topics_.push_back(k);
    }
  }

  void freeze_row(const Visit& visit, const TopicView& view) {
    frozen_topics_ = topics_.size();
    weights_.resize(frozen_topics_);
    for (std::size_t j = 0; j < frozen_topics_; ++j) {
      weights_[j] = static_cast<float>(visit.counts[topics_[j]]) * view.inverse[topics_[j]];
      frozen_[topics_[j]] = weights_[j];
    }
    frozen_sum_ = sum(weights_);
    word_table_.build(weights_);
  }

  void change(Token& token, Topic topic, int by) {
    token.visit.counts[topic] += by;
    token.view.totals[topic] += by * token.view.step;
    token.view.inverse[topic] =
        static_cast<float>(1.0 / (static_cast<double>(token.view.totals[topic]) + token.view.beta_sum));
  }
  void take_out(Token& token, Topic topic) {
    change(token, topic, -1);
    const std::uint32_t place = place_of(token.list, topic);
    if (--token.list.counts[place] == 0) erase(token.list, place);
  }
  void put_in(Token& token, Topic topic) {
    note_topic(token.visit, topic);
    change(token, topic, 1);
    const std::uint32_t place = place_of(token.list, topic);
    if (place < token.list.size && token.list.topics[place] == topic) {
      ++token.list.counts[place];
    } else {
      insert(token.list, place, topic);
    }
  }
  void note_topic(Visit& visit, Topic topic) {
    if (visit.listed && visit.present[topic] == 0) {
      visit.present[topic] = 1;
      visit.added[visit.added_size++] = topic;
      topics_.push_back(topic);
    } else if (!visit.listed && !freeze_ && visit.counts[topic] == 0 &&
               std::find(topics_.begin(), topics_.end(), topic) == topics_.end()) {
      topics_.push_back(topic);  // a dense row keeps no marks
    }
  }

  Topic step_by_frozen_word(Token& token, Topic now) {
    const double smoothing = double{token.visit.beta} * rate_sum_;
    const bool from_row = token.draws.uniform() * (frozen_sum_ + smoothing) < frozen_sum_;
    const Topic next = from_row ? topics_[word_table_.draw(token.draws)] : any_topic(token);
    const auto proposed = [&](Topic k) { return double{frozen_[k]} + double{token.visit.beta} * rate_; };
    return accept(token, now, next, proposed(now), proposed(next));
  }

  Topic step_by_word(Token& token, Topic now) {
    const auto weight = [&](Topic k) { return token.visit.counts[k] * double{token.view.inverse[k]}; };
    double in_row = 0;
    for (const Topic k : topics_) in_row += weight(k);
    const double smoothing = double{token.visit.beta} * rate_sum_;
    double target = token.draws.uniform() * (in_row + smoothing);
    Topic next = kNoTopic;
    for (std::size_t j = 0; j < topics_.size() && target < in_row; ++j) {
      target -= weight(topics_[j]);
      next = topics_[j];
      if (target < 0) break;
    }
    if (next == kNoTopic) next = any_topic(token);
    const auto proposed = [&](Topic k) { return weight(k) + double{token.visit.beta} * rate_; };
    return accept(token, now, next, proposed(now), proposed(next));
  }

  Topic accept(Token& token, Topic now, Topic next, double proposed_now, double proposed_next) {
    ++proposed_;
    if (next == now) return now;
    const double gain = in_document(token, next) * phi(token, next) * proposed_now;
    const double loss = in_document(token, now) * phi(token, now) * proposed_next;
    if (gain >= loss || token.draws.uniform() * loss < gain) return next;
    ++refused_;
    return now;
  }

  Topic step_by_document(Token& token, Topic now) {
    const double target = token.draws.uniform() * (token.others + alpha_sum_);
    Topic next = kNoTopic;
    if (target < token.others) {
      auto left = static_cast<std::int64_t>(target);
      for (std::uint32_t j = 0; j < token.list.size && left >= 0; ++j) {
        left -= token.list.counts[j];
        next = token.list.topics[j];
      }
    }
    if (next == kNoTopic) {
      next = symmetric_ ? any_topic(token) : alpha_table_.draw(token.draws);
    }
    if (next == now) return now;
    const double gain = phi(token, next), loss = phi(token, now);
    return gain >= loss || token.draws.uniform() * loss < gain ? next : now;
  }

  const int steps_;
  double rate_ = 0, rate_sum_ = 0;  ///< r, K r
  AliasTable alpha_table_, word_table_;
  double alpha_sum_ = 0;
  bool symmetric_ = true, freeze_ = false;
  std::vector<Topic> topics_;
  std::vector<float> weights_;
  std::vector<float> frozen_;  ///< f by topic; 0 outside a visit
  double frozen_sum_ = 0;
  std::size_t frozen_topics_ = 0;
  std::uint64_t proposed_ = 0, refused_ = 0;  ///< topics, by words
};

}  // namespace

std::unique_ptr<Sampler> make_mh_sampler(const SamplerOptions& options) { return std::make_unique<MhSampler>(options); }

}  // namespace orrery::lda
