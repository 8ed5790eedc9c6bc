// `orrery list` and `orrery describe`: what the registry and the parameter descriptions say, for people or as JSON.
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "engine/error.h"
#include "engine/json.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/run_options.h"

namespace orrery::tools {

namespace {

Json params_json(const ParamSet& params) {
  Json list = Json::array();
  for (const ParamInfo& info : params.describe()) {
    Json entry{{"name", info.name},
               {"type", info.type},
               {"default", info.default_value},
               {"range", info.range},
               {"doc", info.doc}};
    if (!info.choices.empty()) entry["choices"] = info.choices;
    if (info.optional) entry["optional"] = true;
    list.push_back(std::move(entry));
  }
  return list;
}

Json info_json(const AlgorithmInfo& info) {
  return Json{{"name", info.name},           {"title", info.title},
              {"objective", info.objective}, {"method", info.method},
              {"reference", info.reference}, {"data", info.data},
              {"metric", info.metric},       {"smaller_is_better", info.smaller_is_better},
              {"schedules", info.schedules}};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string description(Algorithm& algorithm, const RunOptions& options) {
  const AlgorithmInfo& info = algorithm.info();
  std::string text = info.name + ": " + info.title + "\n\n";
  text += aligned({{"objective", info.objective},
                   {"method", info.method},
                   {"reference", info.reference},
                   {"data", info.data},
                   {"metric", info.metric + (info.smaller_is_better ? " (smaller is better)" : " (larger is better)")},
                   {"schedules", joined(info.schedules)}});
  text += "\nParameters of " + info.name + " (name, type, default, range):\n" + algorithm.params().table();
  return text + "\nOptions of every training:\n" + options.params.table();
}

}  // namespace

int list_command(Words words) {
  bool json = false;
  ParamSet options;
  options.add("json", json, "as JSON");
  Arguments arguments("list", "Lists the algorithms.");
  if (!arguments.options(options).parse(words)) return kDone;

  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const AlgorithmEntry& entry : algorithms()) {
    const auto algorithm = entry.make();
    list.push_back(info_json(algorithm->info()));
    rows.push_back({entry.name, algorithm->info().title});
  }
  print(json ? json_text(list, 2) + "\n" : aligned(rows));
  return kDone;
}

int describe_command(Words words) {
  std::string name;
  bool json = false;
  ParamSet options;
  options.add("json", json, "as JSON");
  Arguments arguments("describe", "Says what an algorithm minimises, how, and every parameter with default and range.");
  if (!arguments.positional("ALGORITHM", name, "see `orrery list`").options(options).parse(words)) return kDone;

  const auto algorithm = find_algorithm(name).make();
  const RunOptions run(algorithm->default_stop());
  if (json) {
    Json object = info_json(algorithm->info());
    object["parameters"] = params_json(algorithm->params());
    object["options"] = params_json(run.params);
    print(json_text(object, 2) + "\n");
  } else {
    print(description(*algorithm, run));
  }
  return kDone;
}

}  // namespace orrery::tools
