// Metropolis-Hastings steps towards p(z = k) ∝ (n_dk + α_k) φ_k that cost the same for any number of topics (Yuan et
// al., WWW 2015, LightLDA). A token makes a step from a proposal of its word and one of its document, in turn:
//
//   word:      q(k) = f_k + β_w r, with f_k = n_kw / (n_k + β̄) frozen when the visit began and drawn by an alias table,
//              and r = 1 / (N / K + β̄) the same for all topics. A step s → t is accepted with probability
//              min(1, p(t) q(s) / (p(s) q(t))), with the q that was drawn from, not with that of the counts as they are
//              now: with the latter the steps would not have p as their fixed point.
//   document:  q(k) ∝ n_dk + α_k without the token itself, so p(t) q(s) / (p(s) q(t)) is just φ_t / φ_s. It is drawn as
//              the topic of another token of the document, any of them, so the tokens of each document are listed.
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
  bool draws_tokens() const override { return true; }

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
      Token token{visit,           view, open_list(lists, visit.documents[i]), documents.tokens_of(visit.documents[i]),
                  visit.first + i, draws};
      Topic now = begin(token, visit.topics[i]);
      for (int step = 0; step < steps_; ++step) {
        now = freeze_ ? step_by_frozen_word(token, now) : step_by_word(token, now);
        now = step_by_document(token, now);
      }
      end(token, now);
      visit.topics[i] = now;
    }
    if (freeze_) {
      for (std::size_t j = 0; j < frozen_topics_; ++j) frozen_[topics_[j]] = 0;
    }
  }

 private:
  /// A token that is out of the counts of its word and of all, and what it is drawn from. The list of its document
  /// still counts it: most tokens end where they were.
  struct Token {
    Visit& visit;
    TopicView& view;
    List list;
    std::span<const std::uint32_t> tokens;  ///< of its document
    std::size_t number;                     ///< its own
    RandomStream& draws;
    Topic old = kNoTopic;
    std::uint32_t old_place = 0;
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
  double in_document(const Token& token, Topic k) const {
    const double alpha{token.view.alpha[symmetric_ ? 0 : k]};  // a place that is in the cache, however many topics
    if (k == token.old) return token.list.counts[token.old_place] - 1 + alpha;
    const std::uint32_t place = place_of(token.list, k);
    const bool has = place < token.list.size && token.list.topics[place] == k;
    return (has ? token.list.counts[place] : 0) + alpha;
  }

  /// The topics of the word, to draw from: grows as topics are added.
  void list_topics(const Visit& visit, const TopicView& view) {
    topics_.clear();
    if (visit.listed) {
      topics_.assign(visit.row, visit.row + visit.row_size);
      return;
    }
    topics_.resize(view.topics);
    std::size_t size = 0;
    for (Topic k = 0; k < view.topics; ++k) {  // without a branch: which topics a word has cannot be foreseen
      topics_[size] = k;
      size += visit.counts[k] != 0 ? 1 : 0;
    }
    topics_.resize(size);
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
  /// Takes a token out; returns the topic from which its steps begin.
  Topic begin(Token& token, Topic old) {
    if (old == kNoTopic) return any_topic(token);
    token.old = old;
    token.old_place = place_of(token.list, old);
    change(token, old, -1);
    return old;
  }
  void end(Token& token, Topic now) {
    note_topic(token.visit, now);
    change(token, now, 1);
    if (now == token.old) return;
    if (token.old != kNoTopic && --token.list.counts[token.old_place] == 0) erase(token.list, token.old_place);
    const std::uint32_t place = place_of(token.list, now);
    if (place < token.list.size && token.list.topics[place] == now) {
      ++token.list.counts[place];
    } else {
      insert(token.list, place, now);
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

  /// While tokens get their first topics, others may have none yet: those that have stand for all.
  static Topic topic_from_list(Token& token) {
    std::int64_t left = 0;
    for (std::uint32_t j = 0; j < token.list.size; ++j) left += token.list.counts[j];
    if (left == 0) return kNoTopic;
    left = static_cast<std::int64_t>(token.draws.below(static_cast<std::uint64_t>(left)));
    std::uint32_t place = 0;
    while ((left -= token.list.counts[place]) >= 0) ++place;
    return token.list.topics[place];
  }
  /// The topic of another token of the document.
  static Topic topic_of_another(Token& token) {
    std::size_t number = token.number;
    while (number == token.number) number = token.tokens[token.draws.below(token.tokens.size())];
    return token.visit.all_topics[number];
  }

  Topic step_by_document(Token& token, Topic now) {
    const auto others = static_cast<double>(token.tokens.size() - 1);
    Topic next = kNoTopic;
    if (token.draws.uniform() * (others + alpha_sum_) < others) {
      next = token.old == kNoTopic ? topic_from_list(token) : topic_of_another(token);
    }
    if (next == kNoTopic) next = symmetric_ ? any_topic(token) : alpha_table_.draw(token.draws);
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
