#include "engine/params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/random.h"
#include "tests/engine/files.h"

namespace orrery {
namespace {

using test::expect_error;

enum class Solver { sgd, als };

struct ToyParams {
  int rank = 16;
  std::uint64_t seed = 1;
  double reg = 0.05;
  float decay = 0.9F;
  bool clip = false;
  std::string label;
  Solver solver = Solver::sgd;
  std::optional<double> rate;
  std::optional<std::int64_t> workers;
};

struct Described {
  ToyParams params;
  ParamSet set{"toy"};
  Described() {
    set.add("rank", params.rank, "number of factors", between(1, 4096))
        .add("seed", params.seed, "seed of everything random")
        .add("reg", params.reg, "weight of the penalty", at_least(0))
        .add("decay", params.decay, "decay of the step", above_to(0, 1))
        .add("clip", params.clip, "clip predictions to the range seen")
        .add("label", params.label, "a name")
        .add_choice("solver", params.solver, "how factors are found", {{"sgd", Solver::sgd}, {"als", Solver::als}})
        .add("rate", params.rate, "step size", above(0))
        .add("workers", params.workers, "logical workers", at_least(1));
  }
};

TEST(Params, SettingChangesTheFieldAndOnlyIt) {
  Described toy;
  toy.set.set("rank", "32");
  toy.set.set("solver", "als");
  toy.set.set("rate", "0.25");
  toy.set.set("clip", "true");
  toy.set.set("seed", "18446744073709551615");
  EXPECT_EQ(toy.params.rank, 32);
  EXPECT_EQ(toy.params.solver, Solver::als);
  EXPECT_EQ(toy.params.rate, 0.25);
  EXPECT_TRUE(toy.params.clip);
  EXPECT_EQ(toy.params.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(toy.params.reg, 0.05);
  EXPECT_FALSE(toy.params.workers);
  EXPECT_TRUE(toy.set.was_set("rank"));
  EXPECT_FALSE(toy.set.was_set("reg"));
}

TEST(Params, AutoEmptiesAnOptional) {
  Described toy;
  toy.set.set("rate", "0.5");
  toy.set.set("rate", "auto");
  EXPECT_FALSE(toy.params.rate);
  expect_error(ErrorKind::usage, {"--rank", "'auto'"}, [&] { toy.set.set("rank", "auto"); });
}

TEST(Params, ValuesOutsideTheRangeAreRefusedWithRangeAndValue) {
  Described toy;
  for (const char* bad : {"0", "4097", "-1"}) {
    expect_error(ErrorKind::usage, {"--rank", "[1, 4096]", bad}, [&] { toy.set.set("rank", bad); });
  }
  expect_error(ErrorKind::usage, {"--reg", ">= 0", "-0.1"}, [&] { toy.set.set("reg", "-0.1"); });
  expect_error(ErrorKind::usage, {"--decay", "(0, 1]", "0"}, [&] { toy.set.set("decay", "0"); });
  expect_error(ErrorKind::usage, {"--rate", "> 0"}, [&] { toy.set.set("rate", "0"); });
  EXPECT_EQ(toy.params.rank, 16) << "a refused value must not stick";
  toy.set.set("decay", "1");
  EXPECT_EQ(toy.params.decay, 1.0F);
}

TEST(Params, WhatIsNoNumberIsRefused) {
  Described toy;
  for (const char* bad : {"", " 3", "3 ", "3.5", "1e3", "x", "0x10", "99999999999999999999", "--3", "+-3"}) {
    expect_error(ErrorKind::usage, {"--rank", "integer"}, [&] { toy.set.set("rank", bad); });
  }
  for (const char* bad : {"", "nan", "inf", "-inf", "1e999", "1,5", "1.5x"}) {
    expect_error(ErrorKind::usage, {"--reg"}, [&] { toy.set.set("reg", bad); });
  }
  expect_error(ErrorKind::usage, {"--seed"}, [&] { toy.set.set("seed", "-1"); });
  expect_error(ErrorKind::usage, {"--clip", "true or false"}, [&] { toy.set.set("clip", "maybe"); });
}

TEST(Params, UnknownNamesAndChoicesGetASuggestion) {
  Described toy;
  expect_error(ErrorKind::usage, {"'rnak'", "toy", "did you mean 'rank'?"}, [&] { toy.set.set("rnak", "1"); });
  expect_error(ErrorKind::usage, {"sgd, als", "'sdg'", "did you mean 'sgd'?"}, [&] { toy.set.set("solver", "sdg"); });
  expect_error(ErrorKind::usage, {"'zzzzzz'"}, [&] { toy.set.get("zzzzzz"); });
}

TEST(Params, DescriptionHoldsNameTypeDefaultRangeAndDoc) {
  Described toy;
  toy.set.set("rank", "99");
  const std::vector<ParamInfo> all = toy.set.describe();
  ASSERT_EQ(all.size(), 9U);
  EXPECT_EQ(all[0].name, "rank");
  EXPECT_EQ(all[0].type, "integer");
  EXPECT_EQ(all[0].default_value, "16") << "the default, not the value";
  EXPECT_EQ(all[0].range, "[1, 4096]");
  EXPECT_EQ(all[0].doc, "number of factors");
  EXPECT_EQ(all[6].type, "choice");
  EXPECT_THAT(all[6].choices, testing::ElementsAre("sgd", "als"));
  EXPECT_EQ(all[7].default_value, "auto");
  EXPECT_TRUE(all[7].optional);
  for (const ParamInfo& info : all) EXPECT_NE(toy.set.table().find("--" + info.name), std::string::npos);
}

TEST(Params, TextAndJsonGiveTheSameBitsBack) {
  RandomStream draws = Random(1, Purpose::test).stream(0, 0);
  for (int round = 0; round < 200; ++round) {
    Described from;
    from.params.reg = std::ldexp(draws.uniform(), static_cast<int>(draws.below(400)) - 200);
    from.params.decay = draws.uniform_float() + 0x1p-30F;
    from.params.seed = draws.next64();
    from.params.rank = static_cast<int>(1 + draws.below(4096));
    from.params.label = "with \"quotes\", \\ and\ttabs";
    if (draws.below(2) == 0) from.params.rate = draws.uniform() + 0x1p-60;
    Described by_json;
    by_json.set.set_from_json(from.set.to_json());
    Described by_text;
    for (const std::string& name : from.set.names()) by_text.set.set(name, from.set.get(name));
    for (const Described* to : {&by_json, &by_text}) {
      EXPECT_EQ(to->params.reg, from.params.reg);
      EXPECT_EQ(to->params.decay, from.params.decay);
      EXPECT_EQ(to->params.seed, from.params.seed);
      EXPECT_EQ(to->params.rank, from.params.rank);
      EXPECT_EQ(to->params.label, from.params.label);
      EXPECT_EQ(to->params.rate, from.params.rate);
    }
  }
}

TEST(Params, JsonHoldsNumbersAsNumbersAndUnsetAsNull) {
  Described toy;
  EXPECT_EQ(
      toy.set.to_json(),
      R"({"rank":16,"seed":1,"reg":0.05,"decay":0.9,"clip":false,"label":"","solver":"sgd","rate":null,"workers":null})");
  expect_error(ErrorKind::usage, {"JSON object"}, [&] { toy.set.set_from_json("[1]"); });
  expect_error(ErrorKind::usage, {"'rang'", "rank"}, [&] { toy.set.set_from_json(R"({"rang":1})"); });
}

TEST(Params, DescribingTwiceIsOurFault) {
  int a = 0;
  ParamSet set;
  set.add("a", a, "");
  expect_error(ErrorKind::internal, {"'a'"}, [&] { set.add("a", a, ""); });
}

TEST(Closest, FindsSlipsAndNothingElse) {
  const std::vector<std::string> names{"iterations", "staleness", "seed", "threads", "topology"};
  EXPECT_EQ(closest("iteration", names), "iterations");
  EXPECT_EQ(closest("stalness", names), "staleness");
  EXPECT_EQ(closest("thraeds", names), "threads");
  EXPECT_EQ(closest("sede", names), "seed");
  EXPECT_EQ(closest("lambda", names), std::nullopt);
  EXPECT_EQ(closest("x", {}), std::nullopt);
}

TEST(ParseBytes, KnowsTheUsualWaysToWriteSizes) {
  EXPECT_EQ(parse_bytes("--m", "123"), 123U);
  EXPECT_EQ(parse_bytes("--m", "64K"), 65536U);
  EXPECT_EQ(parse_bytes("--m", "1.5g"), std::uint64_t{3} << 29);
  EXPECT_EQ(parse_bytes("--m", "2GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_bytes("--m", "100MB"), std::uint64_t{100} << 20);
  EXPECT_EQ(parse_bytes("--m", "5B"), 5U);
  for (const char* bad : {"", "G", "-1G", "1X", "1GG", "1 G", "nan", "1e30", "infG"}) {
    expect_error(ErrorKind::usage, {"--m", "size"}, [&] { parse_bytes("--m", bad); });
  }
}

}  // namespace
}  // namespace orrery
