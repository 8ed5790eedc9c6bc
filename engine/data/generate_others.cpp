// Generators of corpora and graphs.
#include <algorithm>
#include <map>
#include <numeric>

#include "engine/data/generate.h"
#include "engine/data/generate_parts.h"
#include "engine/data/id_map.h"
#include "engine/data/portable_math.h"

namespace orrery {

namespace {

// What a part of the documents adds to the header and the oracle.
struct CorpusSums {
  std::uint64_t cells = 0;
  std::uint64_t tokens = 0;
  double log_likelihood = 0;
};

class CorpusGenerator {
 public:
  CorpusGenerator(const CorpusPlan& plan, const ParallelFor& parallel) : plan_(plan), tables_(plan.topics) {
    truth_.topics.resize(static_cast<std::size_t>(plan.topics) * plan.words);
    std::vector<double> parameters(plan.words, plan.beta);
    if (plan.zipf > 0) {
      parameters = zipf_weights(plan.words, plan.zipf);
      const double sum = std::accumulate(parameters.begin(), parameters.end(), 0.0);
      for (double& parameter : parameters) parameter *= plan.beta * plan.words / sum;
    }
    parallel(plan.topics, [&](std::size_t k) {
      RandomStream random = draws_of(plan.seed, Draw::topics, k);
      const std::vector<double> topic = draw_dirichlet(parameters, random);
      std::copy(topic.begin(), topic.end(), truth_.topics.begin() + static_cast<std::ptrdiff_t>(k * plan.words));
      tables_[k] = AliasTable(topic);
    });
  }

  void document(std::uint64_t d, TextBuffer& text, CorpusSums& sums) const {
    RandomStream random = draws_of(plan_.seed, Draw::documents, d);
    const std::vector<double> mixture = draw_dirichlet(plan_.topics, plan_.alpha, random);
    const AliasTable topics(mixture);
    std::map<std::uint32_t, std::uint32_t> counts;
    for (std::uint64_t left = draw_poisson(plan_.mean_length, random) + 1; left > 0; --left) {
      ++counts[tables_[topics.draw(random)].draw(random)];
    }
    for (const auto& [word, count] : counts) {
      text << d + 1 << ' ' << word + 1 << ' ' << count << '\n';
      double probability = 0;
      for (std::uint32_t k = 0; k < plan_.topics; ++k) {
        probability += mixture[k] * truth_.topics[static_cast<std::size_t>(k) * plan_.words + word];
      }
      sums.log_likelihood += count * portable_log(probability);
      sums.tokens += count;
    }
    sums.cells += counts.size();
  }

  CorpusTruth truth(const CorpusSums& sums) {
    truth_.tokens = sums.tokens;
    truth_.oracle_log_likelihood = sums.log_likelihood / static_cast<double>(sums.tokens);
    return std::move(truth_);
  }

 private:
  const CorpusPlan& plan_;
  std::vector<AliasTable> tables_;
  CorpusTruth truth_;
};

}  // namespace

CorpusTruth write_corpus(const CorpusPlan& plan, const std::filesystem::path& path,
                         const std::filesystem::path& vocabulary_path, const ParallelFor& parallel) {
  require(plan.documents > 0 && plan.words > 0 && plan.topics > 0, "documents, words and topics must be positive");
  require(plan.alpha > 0 && plan.beta > 0, "alpha and beta must be positive");
  require(plan.zipf >= 0, "the exponent of Zipf's law is not negative");
  require(plan.mean_length >= 0 && plan.mean_length < 1e6, "the mean length lies in [0, 1000000)");
  CorpusGenerator generator(plan, parallel);
  constexpr std::size_t kPart = 64;
  const std::size_t parts = (plan.documents + kPart - 1) / kPart;
  std::vector<CorpusSums> sums(parts);
  std::vector<TextBuffer> texts(parts);  // the header needs the number of cells, so the body waits in memory
  parallel(parts, [&](std::size_t part) {
    const std::size_t end = std::min<std::size_t>(plan.documents, (part + 1) * kPart);
    for (std::size_t d = part * kPart; d < end; ++d) generator.document(d, texts[part], sums[part]);
  });
  CorpusSums total;
  for (const CorpusSums& part : sums) {
    total.cells += part.cells;
    total.tokens += part.tokens;
    total.log_likelihood += part.log_likelihood;
  }
  TextWriter out(path);
  out << plan.documents << '\n' << plan.words << '\n' << total.cells << '\n';
  for (const TextBuffer& text : texts) out.append(text.text());
  out.commit();
  if (!vocabulary_path.empty()) {
    TextWriter words(vocabulary_path);
    for (std::uint32_t w = 1; w <= plan.words; ++w) words << 'w' << w << '\n';
    words.commit();
  }
  return generator.truth(total);
}

void write_graph(const GraphPlan& plan, const std::filesystem::path& path, const ParallelFor& parallel) {
  require(plan.scale >= 1 && plan.scale <= 31, "the scale lies in 1 to 31");
  require(plan.edges > 0, "edges must be positive");
  require(plan.a >= 0 && plan.b >= 0 && plan.c >= 0 && plan.a + plan.b + plan.c <= 1 + 1e-12,
          "a, b and c are probabilities that add up to at most 1");
  constexpr std::uint64_t kPart = 4096;
  TextWriter out(path);
  out << "# R-MAT: scale " << plan.scale << ", " << plan.edges << " edges, a " << plan.a << ", b " << plan.b << ", c "
      << plan.c << ", seed " << plan.seed << '\n';
  write_parts(out, static_cast<std::size_t>((plan.edges + kPart - 1) / kPart), parallel,
              [&](std::size_t part, TextBuffer& text) {
                RandomStream random = draws_of(plan.seed, Draw::edges, part);
                const std::uint64_t count = std::min(kPart, plan.edges - part * kPart);
                for (std::uint64_t e = 0; e < count; ++e) {
                  std::uint32_t source = 0, target = 0;
                  for (std::uint32_t bit = 0; bit < plan.scale; ++bit) {
                    const double u = random.uniform();
                    const bool down = u >= plan.a + plan.b;
                    const bool right = down ? u >= plan.a + plan.b + plan.c : u >= plan.a;
                    source = source << 1 | (down ? 1U : 0U);
                    target = target << 1 | (right ? 1U : 0U);
                  }
                  text << source << '\t' << target << '\n';
                }
              });
  out.commit();
}

}  // namespace orrery
