"""A whole race with small shell programs as contenders: order, tuning, targets, failures, and the result's schema."""

import unittest
from pathlib import Path

from support import InFolder
from harness import adapters, cases, datasets, programs, results, runner, schema, tuning
from harness.errors import BenchError, ContenderFailed

# Prints a curve that halves the error each iteration down to a floor of $1; says in LOG that it ran.
kCurve = """
echo "$3" >> "$4"
for i in 1 2 3; do
  echo "{\\"iteration\\": $i, \\"seconds\\": $i.0, \\"quality\\": $(awk "BEGIN {print ($1) + 1 / (2 ^ $i)}")}"
done
exit $2
"""


class Race(InFolder):
    def race(self, contenders, targets, rounds=2):
        program = self.program("curve", kCurve)
        self.log = self.folder / "log"
        self.log.touch()
        self.write("data/t.txt", "1 1 1\n1 2 2\n")
        case = cases.Case("case", 2, "a race", "d", {"name": "error", "better": "lower"}, targets,
                          {"log": str(self.log)}, contenders)
        store = datasets.DataStore(self.folder / "cache", self.folder, "/bin/false", say=lambda text: None)
        tuner = tuning.Tuner(self.folder / "cache", say=lambda text: None)

        def find(contender):
            if contender.peer == "missing":
                raise ContenderFailed("not on PATH")
            return program

        bench = runner.Runner(store, tuner, find, rounds, say=lambda text: None)
        return bench.run_case(case, {"what": "d", "files": {"train": "data/t.txt"}})

    @staticmethod
    def contender(name, floor="0.5", code="0", **more):
        return cases.Contender(name=name, kind="points", command=[floor, code, name, "{log}"], **more)

    def test_contenders_take_turns(self):
        result = self.race([self.contender("a"), self.contender("b")], {}, rounds=3)
        self.assertEqual(self.log.read_text().split(), ["a", "b"] * 3)
        self.assertEqual(result["order"], ["a", "b"] * 3)

    def test_a_round_is_the_seed_unless_the_case_has_one(self):
        mine = self.contender("a")
        mine.command = ["0.5", "0", "{seed}", "{log}"]
        theirs = self.contender("b", values={"seed": 7})
        theirs.command = list(mine.command)
        self.race([mine, theirs], {}, rounds=3)
        self.assertEqual(self.log.read_text().split(), ["1", "7", "2", "7", "3", "7"])

    def test_the_best_of_a_peer_is_the_target_of_the_others(self):
        result = self.race([self.contender("ours", "0.3"), self.contender("peer", "0.5")], {"best": {"best_of": "peer"}})
        self.assertAlmostEqual(result["targets"]["best"], 0.625)
        by_name = {item["name"]: item for item in result["contenders"]}
        self.assertEqual(by_name["ours"]["summary"]["seconds_to_best"]["median"], 2.0)  # 0.3 + 1/4 <= 0.625
        self.assertEqual(by_name["peer"]["summary"]["seconds_to_best"]["median"], 3.0)

    def test_a_target_out_of_reach_is_a_miss_not_a_gap(self):
        result = self.race([self.contender("ours", "0.9")], {"stated": {"value": 0.5}})
        self.assertIsNone(result["contenders"][0]["summary"]["seconds_to_stated"])
        self.assertEqual(results.Measurements([self.wrapped(result)]).values("case/ours/seconds_to_stated"),
                         (None, "not reached"))

    def test_the_grid_is_searched_recorded_and_the_best_races(self):
        peer = cases.Contender("peer", "points", ["{floor}", "0", "peer", "{log}"], grid={"floor": [0.8, 0.2, 0.4]})
        result = self.race([peer], {"best": {"best_of": "peer"}})
        record = result["contenders"][0]
        self.assertEqual(record["settings"]["floor"], 0.2)
        self.assertEqual([trial["settings"]["floor"] for trial in record["tuning"]["trials"]], [0.8, 0.2, 0.4])

    def test_one_that_fails_does_not_stop_the_others(self):
        result = self.race([self.contender("a"), self.contender("bad", code="3")], {})
        by_name = {item["name"]: item for item in result["contenders"]}
        self.assertIn("exit code 3", by_name["bad"]["failed"])
        self.assertEqual(len(by_name["a"]["rounds"]), 2)

    def test_a_missing_peer_is_skipped_with_the_reason(self):
        result = self.race([self.contender("a"), self.contender("p", peer="missing")],
                           {"best": {"best_of": "p", "otherwise": 0.7}})
        self.assertEqual(result["contenders"][1]["skipped"], "not on PATH")
        self.assertEqual(result["targets"]["best"], 0.7)

    def test_a_program_of_our_own_is_looked_for_beside_orrery(self):
        orrery, ours = self.program("orrery", "exit 0"), self.program("orrery_bench_ours", kCurve)
        find = programs.Finder(orrery, {}, {})
        self.assertEqual(Path(find(self.contender("a", program="orrery_bench_ours"))), Path(ours).resolve())
        with self.assertRaisesRegex(ContenderFailed, "orrery_bench_other is not beside orrery"):
            find(self.contender("b", program="orrery_bench_other"))

    def test_the_result_fits_its_schema_and_survives_a_file(self):
        result = self.wrapped(self.race([self.contender("a")], {}))
        path = self.folder / "result.json"
        results.write(result, path)
        self.assertEqual(results.read(path)["cases"][0]["name"], "case")

    @staticmethod
    def wrapped(case):
        result = results.assemble("macro", {"source": {}, "build": {}, "machine": {}, "topology": {}}, [], [case])
        schema.check_result(result, "test")
        return result


class Generated(InFolder):
    """Generated data are made once, whole, and found again."""

    kDefinition = {"what": "g", "generate": [["data", "{dir}/all.txt"]], "files": {"train": "all.txt"}}

    def store(self, text):
        return datasets.DataStore(self.folder / "cache", self.folder, self.program("orrery", text), say=lambda text: None)

    def test_the_generator_runs_once(self):
        store = self.store(f"echo made >> {self.folder}/log; printf '1 2 3\\n4 5 6\\n' > $2\n")
        first, second = store.prepare("g", self.kDefinition), store.prepare("g", self.kDefinition)
        self.assertEqual((self.folder / "log").read_text(), "made\n")
        self.assertEqual((first.items, first.files, first.checksums), (2, second.files, second.checksums))

    def test_a_generator_that_fails_leaves_nothing(self):
        with self.assertRaisesRegex(BenchError, "no memory"):
            self.store("echo half > $2; echo no memory >&2; exit 4\n").prepare("g", self.kDefinition)
        self.assertEqual(list((self.folder / "cache").iterdir()), [])


class Turns(unittest.TestCase):
    def test_every_round_has_every_contender_once_before_the_next_round(self):
        self.assertEqual(runner.turns(2, 2), [(0, 0), (0, 1), (1, 0), (1, 1)])


class Choice(unittest.TestCase):
    kTrials = [
        {"settings": {"r": 1}, "curve": [[1, 1.0, 0.9], [2, 2.0, 0.5]]},
        {"settings": {"r": 2}, "curve": [[1, 1.0, 0.6], [2, 2.0, 0.55]]},
        {"settings": {"r": 3}, "failed": "diverged"},
    ]

    def test_without_a_target_the_best_quality_wins(self):
        self.assertEqual(tuning.choose(self.kTrials, "lower")["settings"], {"r": 1})

    def test_with_a_target_the_quickest_to_it_wins(self):
        self.assertEqual(tuning.choose(self.kTrials, "lower", 0.7)["settings"], {"r": 2})

    def test_of_equal_quality_the_quicker_wins(self):
        slower = {"settings": {"r": 4}, "curve": [[1, 9.0, 0.5]]}
        self.assertEqual(tuning.choose([slower, *self.kTrials], "lower")["settings"], {"r": 1})

    def test_nothing_to_choose_from_is_none(self):
        self.assertIsNone(tuning.choose([self.kTrials[2]], "lower"))


class OrreryOutput(InFolder):
    """The adapter reads what cli.md says stands in the output folder."""

    def test_curve_times_and_throughput_come_from_the_files(self):
        program = self.program("orrery", """
            mkdir -p "$1/model"; head -c 100 /dev/zero > "$1/model/p.npy"
            echo '{"iteration": 1, "seconds": 0.5, "valid": 0.9, "wait_seconds": 0.1}' > "$1/metrics.jsonl"
            echo '{"iteration": 2, "seconds": 1.0, "valid": 0.8, "wait_seconds": 0.2}' >> "$1/metrics.jsonl"
            echo '{"threads": 2, "result": {"iterations": 2, "seconds": 1.0, "seconds_loading": 0.3}}' > "$1/run.json"
            exit 1
            """)
        contender = cases.Contender("ours", "orrery", ["{out}"])
        values = {"out": str(self.folder / "out"), "items": 500}
        found = adapters.make("orrery", program).measure(contender, values, "lower", None)
        self.assertEqual(found["curve"], [[1, 0.5, 0.9], [2, 1.0, 0.8]])
        self.assertEqual(found["items_per_second"], 1000)
        self.assertEqual((found["model_bytes"], found["exit_code"], found["best_quality"]), (100, 1, 0.8))
        self.assertAlmostEqual(found["idle_fraction"], 0.1)

    def test_a_run_that_failed_is_not_measured(self):
        program = self.program("orrery", "echo no such file >&2; exit 3\n")
        with self.assertRaisesRegex(ContenderFailed, "no such file"):
            adapters.make("orrery", program).measure(cases.Contender("o", "orrery", []),
                                                     {"out": str(self.folder / "o"), "items": 1}, "lower", None)

    def test_google_benchmark_becomes_metrics_in_nanoseconds(self):
        found = adapters.Micro.metrics({"name": "unit/empty", "real_time": 0.5, "cpu_time": 0.4, "time_unit": "us",
                                        "iterations": 7, "bytes_per_update": 256.0, "run_type": "iteration"})
        self.assertEqual(found, {"unit/empty.real_time": 500.0, "unit/empty.cpu_time": 400.0,
                                 "unit/empty.bytes_per_update": 256.0})


if __name__ == "__main__":
    unittest.main()
