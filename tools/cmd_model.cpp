// The commands on a finished model: predict, infer, evaluate, recommend, topics, verify.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/error.h"
#include "engine/json.h"
#include "engine/params.h"
#include "engine/run_record.h"
#include "tools/commands.h"
#include "tools/model_access.h"
#include "tools/output.h"
#include "tools/run_options.h"
#include "tools/train_observer.h"

namespace orrery::tools {

namespace {

/// One line for each warning that has come up, on standard error.
void say_warnings(const Engine& engine) {
  for (const std::string& text : engine.warnings()) complain("orrery: warning: " + text + "\n");
}

/// What predict and infer have in common: a model, data, and a file to fill.
template <class Fill>
int fill_file(const char* command, const char* summary, Words words, Fill fill) {
  std::string data;
  std::string out;
  ModelOptions options;
  options.params.add("out", out, "file to write; - is standard output");
  Arguments arguments(command, summary);
  arguments.positional("DATA", data, "file to read").options(options.params).require("model").require("out");
  if (!arguments.parse(words)) return kDone;
  check_not_read("--out", out, {data});
  check_not_of_run("--out", out, options.model);
  const auto model = open_model(options.model);
  Engine engine(options.engine_options());
  write_result(out, [&](std::ostream& stream) { fill(*model, data, options.format, engine, stream); });
  say_warnings(engine);
  return kDone;
}

std::string topics_json(const std::vector<TopicSummary>& topics) {
  auto list = Json::array();
  for (const TopicSummary& topic : topics) {
    auto words = Json::array();
    for (const auto& [word, probability] : topic.words) words.push_back({{"word", word}, {"probability", probability}});
    list.push_back({{"topic", topic.id}, {"share", topic.share}, {"coherence", topic.coherence}, {"words", words}});
  }
  return json_text(list) + "\n";
}

std::string topics_text(const std::vector<TopicSummary>& topics) {
  std::string text;
  for (const TopicSummary& topic : topics) {
    text += "topic " + std::to_string(topic.id) + "  share " + fixed_text(100 * topic.share, 2) + " %  coherence " +
            fixed_text(topic.coherence, 3) + "\n ";
    for (const auto& [word, probability] : topic.words) text += " " + word + " " + fixed_text(probability, 4);
    text += "\n";
  }
  return text;
}

}  // namespace

int predict_command(Words words) {
  return fill_file("predict", "Writes one prediction a line, in the order of DATA.", words,
                   [](const Model& model, const std::string& data, const std::string& format, Engine& engine,
                      std::ostream& out) { model.predict(data, format, engine, out); });
}

int infer_command(Words words) {
  return fill_file("infer", "Writes the latent state of unseen data, one row a line: id value value …", words,
                   [](const Model& model, const std::string& data, const std::string& format, Engine& engine,
                      std::ostream& out) { model.infer(data, format, engine, out); });
}

int evaluate_command(Words words) {
  std::string data;
  bool json = false;
  ModelOptions options;
  options.params.add("json", json, "as JSON");
  Arguments arguments("evaluate", "Prints the held-out metrics of a model on DATA, the primary one first.");
  arguments.positional("DATA", data, "file to read").options(options.params).require("model");
  if (!arguments.parse(words)) return kDone;
  const auto model = open_model(options.model);
  Engine engine(options.engine_options());
  const ValueList values = model->evaluate(data, options.format, engine);
  say_warnings(engine);
  print_values(values, json);
  return kDone;
}

int recommend_command(Words words) {
  std::string model_directory;
  std::string user;
  std::uint64_t top = 10;
  bool json = false;
  ParamSet options;
  options.add("model", model_directory, "directory of a run or of a model")
      .add("user", user, "id of the user, as in the data")
      .add("top", top, "how many items", at_least(1))
      .add("json", json, "as JSON");
  Arguments arguments("recommend", "Prints the best items for a user with their scores, without those it has rated.");
  arguments.options(options).require("model").require("user");
  if (!arguments.parse(words)) return kDone;
  const auto model = open_model(model_directory);
  if (!model->knows_user(user)) {
    complain("orrery: warning: user " + orrery::quoted(user) +
             " has no training rating; these are the items that all like best\n");
  }
  const auto items = model->recommend(user, top);
  if (json) {
    auto list = Json::array();
    for (const auto& [item, score] : items) list.push_back({{"item", item}, {"score", score}});
    print(json_text(list) + "\n");
    return kDone;
  }
  std::string text;
  for (const auto& [item, score] : items) text += item + " " + shortest_text(score) + "\n";
  print(text);
  return kDone;
}

int topics_command(Words words) {
  std::string model_directory;
  std::uint64_t top = 10;
  bool json = false;
  ParamSet options;
  options.add("model", model_directory, "directory of a run or of a model")
      .add("top", top, "how many words of each topic", at_least(1))
      .add("json", json, "as JSON");
  Arguments arguments("topics", "Prints the most probable words of each topic, the largest topic first.");
  arguments.options(options).require("model");
  if (!arguments.parse(words)) return kDone;
  std::vector<TopicSummary> topics = open_model(model_directory)->topics(top);
  std::stable_sort(topics.begin(), topics.end(),
                   [](const TopicSummary& a, const TopicSummary& b) { return a.share > b.share; });
  print(json ? topics_json(topics) : topics_text(topics));
  return kDone;
}

int verify_command(Words words) {
  std::string directory;
  ModelOptions model_options;  // for its way to an engine; the model comes with the run
  ParamSet options;
  options.add("threads", model_options.threads, "at most so many threads run; auto: the cores this process may use",
              between(1, 4096));
  Arguments arguments("verify", "Re-checks the defining property of a finished run from its files.");
  arguments.positional("DIR", directory, "directory of the run").options(options);
  if (!arguments.parse(words)) return kDone;
  Engine engine(model_options.engine_options());
  const bool passed = verify_run(directory, engine, false);
  say_warnings(engine);
  return passed ? kDone : kVerifyFailed;
}

}  // namespace orrery::tools
