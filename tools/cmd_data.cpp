// `orrery data info | generate | split | convert | pack`: data sets described, made, cut, respelled and packed. The
// work is done by engine/data; what stands here is words in and words out.
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/checksum.h"
#include "engine/data/convert.h"
#include "engine/data/corpus.h"
#include "engine/data/data_info.h"
#include "engine/data/format.h"
#include "engine/data/packed_corpus.h"
#include "engine/data/split.h"
#include "engine/engine.h"
#include "engine/error.h"
#include "engine/json.h"
#include "engine/params.h"
#include "tools/commands.h"
#include "tools/output.h"

namespace orrery::tools {

namespace {

namespace fs = std::filesystem;

/// What every command on a data set takes.
struct DataOptions {
  DataOptions() {
    params.add("format", format, "format of the data (" + format_names() + "); empty: recognised from the content")
        .add("threads", threads, "at most so many threads run; auto: the cores this process may use", between(1, 4096))
        .add("json", json, "as JSON");
  }
  DataOptions(const DataOptions&) = delete;
  DataOptions& operator=(const DataOptions&) = delete;

  std::string format;
  std::optional<int> threads;
  bool json = false;
  ParamSet params;

  std::optional<DataFormat> chosen_format() const {
    return format.empty() ? std::nullopt : std::optional{parse_format(format)};
  }
  EngineOptions engine_options() const {
    EngineOptions options;
    options.threads = threads ? static_cast<unsigned>(*threads) : 0;
    return options;
  }
};

int info_command(Words words) {
  std::string data;
  DataOptions options;
  InfoOptions info;
  options.params.add("label", info.label, "dense data: label column, by name or number from 1")
      .add("vocab", info.vocabulary_path, "corpora: file of words, one a line");
  Arguments arguments("data info", "Reads DATA whole, with the reader that train uses, and says what it is.");
  if (!arguments.positional("DATA", data, "file to read").options(options.params).parse(words)) return kDone;
  Engine engine(options.engine_options());
  info.read.parallel = engine.parallel_for_function();
  info.format = options.chosen_format();
  const DataInfo found = data_info(data, info);
  print(options.json ? found.json + "\n" : found.text);
  return kDone;
}

/// A directory for results: made when it is not there, and gone again when nothing came of it.
class ResultDirectory {
 public:
  explicit ResultDirectory(std::string path) : path_(std::move(path)) {
    std::error_code error;
    made_ = fs::create_directories(path_, error);
    if (error) throw output_error(path_, error.value());
  }
  ~ResultDirectory() {
    std::error_code ignored;  // not empty: then something came of it
    if (made_) fs::remove(path_, ignored);
  }
  ResultDirectory(const ResultDirectory&) = delete;
  ResultDirectory& operator=(const ResultDirectory&) = delete;

 private:
  std::string path_;
  bool made_ = false;
};

int split_command(Words words) {
  std::string data;
  std::string out;
  DataOptions options;
  SplitOptions split;
  options.params.add("out", out, "directory for the two parts, train.* and test.*")
      .add("test-share", split.fraction, "of the items, on average, for the test part",
           {.low = 0, .high = 1, .low_open = true, .high_open = true})
      .add("seed", split.seed, "of the choice");
  Arguments arguments("data split", "Cuts DATA into a training and a test part, item by item at random.");
  arguments.positional("DATA", data, "file to read").options(options.params).require("out");
  if (!arguments.parse(words)) return kDone;
  Engine engine(options.engine_options());
  split.read.parallel = engine.parallel_for_function();
  split.format = options.chosen_format();
  const ResultDirectory directory(out);
  const std::string extension = fs::path(data).extension() == ".npy" ? ".npy" : ".txt";
  const fs::path training = fs::path(out) / ("train" + extension);
  const fs::path test = fs::path(out) / ("test" + extension);
  for (const fs::path& part : {training, test}) {
    std::error_code missing;  // a part that is not there yet is nobody's input
    if (fs::equivalent(data, part, missing)) {
      throw usage_error("--out: " + part.string() + " is the file to be split; choose another directory");
    }
  }
  const SplitResult result = split_data(data, training, test, split);
  if (options.json) {
    const Json object{{"format", format_name(result.recognised.format)},
                      {"training", result.training},
                      {"test", result.test},
                      {"files", {training.string(), test.string()}}};
    print(json_text(object) + "\n");
    return kDone;
  }
  print(aligned({{"format", result.recognised.describe()},
                 {training.string(), std::to_string(result.training) + " items"},
                 {test.string(), std::to_string(result.test) + " items"}}));
  return kDone;
}

int convert_command(Words words) {
  std::string data;
  std::string out;
  std::string target;
  DataOptions options;
  ConvertOptions convert;
  options.params.add("out", out, "file to write")
      .add("to", target, "format to write (" + format_names() + ")")
      .add("label", convert.label, "dense data to svmlight: label column, by name or number from 1")
      .add("vocab", convert.vocabulary_path, "corpora: file of words, one a line");
  Arguments arguments("data convert", "Writes DATA in another format.");
  arguments.positional("DATA", data, "file to read").options(options.params).require("to").require("out");
  if (!arguments.parse(words)) return kDone;
  check_not_read("--out", out, {data, convert.vocabulary_path});
  Engine engine(options.engine_options());
  convert.read.parallel = engine.parallel_for_function();
  convert.from = options.chosen_format();
  convert.to = parse_format(target);
  const ConvertResult result = convert_data(data, out, convert);
  for (const std::string& warning : result.warnings) complain("orrery: warning: " + warning + "\n");
  if (options.json) {
    Json object{{"from", format_name(result.from.format)}, {"to", target}, {"items", result.items}};
    object["files"] = {out};
    for (const fs::path& file : result.also_files) object["files"].push_back(file.string());
    print(json_text(object) + "\n");
    return kDone;
  }
  std::string text =
      result.from.describe() + " to " + target + ": " + std::to_string(result.items) + " items\n" + out + "\n";
  for (const fs::path& file : result.also_files) text += file.string() + "\n";
  print(text);
  return kDone;
}

int pack_command(Words words) {
  std::string data;
  std::string out;
  DataOptions options;
  CorpusOptions reading;
  options.params.add("out", out, "file to write")
      .add("vocab", reading.vocabulary_path, "file of words, one a line: names those of docword, fixes those of text")
      .add("keep-case", reading.keep_case, "text: do not lower the letters A to Z");
  Arguments arguments("data pack", "Writes the corpus DATA as one binary file that is read in place.");
  if (!arguments.positional("DATA", data, "corpus to read").options(options.params).require("out").parse(words)) {
    return kDone;
  }
  check_not_read("--out", out, {data, reading.vocabulary_path});
  Engine engine(options.engine_options());
  reading.read.parallel = engine.parallel_for_function();
  reading.format = options.chosen_format();
  const CorpusData corpus = read_corpus(data, reading);
  for (const std::string& warning : corpus.warnings) complain("orrery: warning: " + warning + "\n");
  const std::uint64_t bytes = pack_corpus(corpus, out);
  const Json object{{"from", format_name(corpus.recognised.format)},
                    {"documents", corpus.corpus.documents()},
                    {"words", corpus.corpus.word_count},
                    {"tokens", corpus.corpus.tokens},
                    {"bytes", bytes},
                    {"checksum", checksum_text(corpus.checksum)},
                    {"files", {out}}};
  if (options.json) {
    print(json_text(object) + "\n");
    return kDone;
  }
  print(corpus.recognised.describe() + " to packed: " + std::to_string(corpus.corpus.documents()) + " documents, " +
        std::to_string(corpus.corpus.word_count) + " words, " + std::to_string(corpus.corpus.tokens) + " tokens, " +
        std::to_string(bytes) + " bytes\n" + out + "\n");
  return kDone;
}

}  // namespace

int data_command(Words words) {
  struct Action {
    const char* name;
    const char* summary;
    int (*run)(Words);
  };
  constexpr Action kActions[] = {{"info", "what a data set is", info_command},
                                 {"generate", "synthetic data with a known answer", generate_command},
                                 {"split", "a training and a test part", split_command},
                                 {"convert", "another format", convert_command},
                                 {"pack", "a corpus as one binary file, read in place", pack_command}};
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
  for (const Action& action : kActions) {
    names.emplace_back(action.name);
    rows.push_back({std::string{"  "} + action.name, action.summary});
    if (!words.empty() && words.front() == action.name) return action.run(words.subspan(1));
  }
  const std::string usage =
      "Usage: orrery data ACTION …      (orrery data ACTION --help says more)\n\n" + aligned(rows);
  if (words.empty()) throw usage_error("ACTION is missing\n" + usage);
  if (words.front() == "--help" || words.front() == "-h") {
    print(usage);
    return kDone;
  }
  throw usage_error("unknown action " + orrery::quoted(words.front()) + suggestion(words.front(), names) + "\n" +
                    usage);
}

}  // namespace orrery::tools
