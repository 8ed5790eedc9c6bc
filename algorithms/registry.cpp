// The list of algorithms: a plain array, so that a static library registers as surely as a shared one.
#include <array>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/lasso.h"
#include "algorithms/lda.h"
#include "algorithms/logistic.h"
#include "algorithms/mf.h"
#include "algorithms/pagerank.h"
#include "algorithms/softmax.h"
#include "engine/error.h"
#include "engine/params.h"

namespace orrery {
namespace {

constexpr std::array kAlgorithms{
    AlgorithmEntry{"mf", make_mf, open_mf},
    AlgorithmEntry{"lda", make_lda, open_lda},
    AlgorithmEntry{"lasso", make_lasso, open_lasso},
    AlgorithmEntry{"pagerank", make_pagerank, open_pagerank},
    AlgorithmEntry{"logistic", make_logistic, open_logistic},
    AlgorithmEntry{"softmax", make_softmax, open_softmax},
};

}  // namespace

std::span<const AlgorithmEntry> algorithms() { return kAlgorithms; }

const AlgorithmEntry& find_algorithm(const std::string& name) {
  std::vector<std::string> names;
  for (const AlgorithmEntry& entry : kAlgorithms) {
    if (name == entry.name) return entry;
    names.emplace_back(entry.name);
  }
  throw usage_error("unknown algorithm " + orrery::quoted(name) + suggestion(name, names) +
                    " (`orrery list` names them all)");
}

}  // namespace orrery
