#include "algorithms/algorithm.h"

#include "engine/error.h"

namespace orrery {
namespace {

Error refusal(const char* command) { return usage_error(std::string("this algorithm's models cannot ") + command); }

}  // namespace

void Model::predict(const std::string&, const std::string&, Engine&, std::ostream&) const { throw refusal("predict"); }

ValueList Model::evaluate(const std::string&, const std::string&, Engine&) const { throw refusal("evaluate"); }

void Model::infer(const std::string&, const std::string&, Engine&, std::ostream&) const { throw refusal("infer"); }

std::vector<std::pair<std::string, double>> Model::recommend(const std::string&, std::size_t) const {
  throw refusal("recommend");
}

std::vector<TopicSummary> Model::topics(std::size_t) const { throw refusal("list topics"); }

}  // namespace orrery
