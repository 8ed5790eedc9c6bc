"""Targets, the report and comparisons: misses and gaps must be as loud as successes."""

import copy
import json
import unittest

from support import InFolder, point_result
from harness import compare, report, results, schema, targets
from harness.errors import BenchError


def entry(**more):
    return {"id": "t", "issue": 2, "text": "time", "ratio": ["race/orrery/seconds_to_best", "race/peer/seconds_to_best"],
            "at_most": 0.3, **more}


class Judging(unittest.TestCase):
    def judge(self, wanted, result=None):
        return targets.judge(wanted, results.Measurements([result or point_result()]))

    def test_a_bound_that_holds_is_ok(self):
        self.assertEqual(self.judge(entry())["verdict"], "ok")

    def test_a_bound_that_does_not_hold_is_a_miss(self):
        self.assertEqual(self.judge(entry(at_most=0.1))["verdict"], "MISS")
        self.assertEqual(self.judge(entry(at_least=0.25))["verdict"], "MISS")

    def test_a_quality_that_was_not_reached_is_a_miss(self):
        result = point_result()
        result["cases"][0]["contenders"][0]["rounds"][1]["seconds_to_best"] = None
        judged = self.judge(entry(), result)
        self.assertEqual((judged["verdict"], judged["why"]), ("MISS", "orrery: not reached"))

    def test_a_contender_that_failed_is_a_miss(self):
        result = point_result()
        result["cases"][0]["contenders"][0]["failed"] = "crashed"
        self.assertEqual(self.judge(entry(), result)["verdict"], "MISS")

    def test_a_missing_peer_leaves_it_unmeasured_and_says_why(self):
        result = point_result()
        result["cases"][0]["contenders"][1]["skipped"] = "mf-train is not on PATH"
        judged = self.judge(entry(), result)
        self.assertEqual(judged["verdict"], "not measured")
        self.assertIn("mf-train is not on PATH", judged["why"])

    def test_a_case_that_was_never_run_is_not_measured(self):
        self.assertEqual(self.judge(entry(ratio=["none/a/b", "none/a/c"]))["verdict"], "not measured")

    def test_without_a_bound_it_is_reported(self):
        wanted = entry()
        del wanted["at_most"]
        self.assertEqual(self.judge(wanted)["verdict"], "reported")

    def test_the_newest_measurement_of_a_case_counts(self):
        newer = copy.deepcopy(point_result(created="2026-02-02T00:00:00+00:00"))
        newer["cases"][0]["contenders"][0]["rounds"] = [{"seconds_to_best": 9.0}] * 2
        found = targets.judge(entry(), results.Measurements([newer, point_result()]))
        self.assertEqual(found["found"]["median"], 0.9)

    def test_a_reference_that_is_none_is_refused(self):
        with self.assertRaises(BenchError):
            self.judge(entry(ratio=["race", "race"]))


class List(InFolder):
    def load(self, *entries):
        path = self.folder / "targets.json"
        path.write_text(json.dumps({"schema": 1, "targets": list(entries)}), encoding="utf-8")
        return targets.load(path)

    def test_for_makes_one_target_per_set_of_values(self):
        raw = {"id": "t.{k}", "issue": 2, "text": "rank {k}", "value": "c{k}/a/m", "at_most": "{bound}",
               "for": [{"k": 1, "bound": 0.3}, {"k": 2, "bound": 0.5}]}
        found = self.load(raw)
        self.assertEqual([(item["id"], item["value"], item["at_most"]) for item in found],
                         [("t.1", "c1/a/m", 0.3), ("t.2", "c2/a/m", 0.5)])

    def test_doubled_and_shapeless_targets_are_refused(self):
        one = {"id": "t", "issue": 2, "text": "x", "value": "a/b/c"}
        for wrong in ([one, one], [{**one, "ratio": ["a/b/c", "a/b/d"]}], [{**one, "limit": 3}]):
            with self.assertRaises(BenchError):
                self.load(*wrong)


class Page(unittest.TestCase):
    def page(self, *wanted, result=None):
        measurements = results.Measurements([result or point_result()])
        return report.render([targets.judge(item, measurements) for item in wanted], measurements)

    def test_misses_and_gaps_stand_in_the_page_and_in_its_head(self):
        text = self.page(entry(), entry(id="u", at_most=0.1), entry(id="v", ratio=["no/a/b", "no/a/c"]))
        self.assertIn("**1 reached, 1 missed, 1 not measured.**", text)
        self.assertIn("| ≤ 0.1 | 0.2 (0.1 … 0.3) | **MISS** |", text)
        self.assertIn("| not measured |", text)

    def test_machine_commit_and_commands_stand_in_it(self):
        text = self.page(entry())
        for part in ("a processor", "0123456789ab", "`orrery train`", "0.1 … 0.2"):
            self.assertIn(part, text)

    def test_notes_stand_below_their_table(self):
        measurements = results.Measurements([point_result()])
        text = report.render([targets.judge(entry(), measurements)], measurements, {"issue 2": "Why so."})
        self.assertLess(text.index("0.2 (0.1"), text.index("Why so."))

    def test_the_roofline_is_bytes_times_rate_over_bandwidth(self):
        result = point_result()
        micro = copy.deepcopy(result["cases"][0])
        figures = {"bandwidth_rmw/L2.bytes_per_second": 40e9, "mf/k64/avx2.items_per_second": 80e6,
                   "mf/k64/avx2.bytes_per_update": 256.0}
        summary = {key: {"median": value, "min": value, "max": value, "n": 1} for key, value in figures.items()}
        micro.update(name="micro", contenders=[{"name": "micro", "kind": "micro", "command": ["m"], "rounds": [],
                                                "summary": summary}])
        result["cases"].append(micro)
        self.assertIn("| mf/k64/avx2 | 80.0 | 256 | 20.5 | 51 % |", self.page(entry(), result=result))


class Comparison(unittest.TestCase):
    def test_two_results_are_compared_metric_by_metric(self):
        before, after = point_result(), point_result()
        for found in after["cases"][0]["contenders"][0]["rounds"]:
            found["command_seconds"] = 3.0
        rows = compare.table(compare.pairs(before, after, "orrery"), paired=False)
        ratios = {row["metric"]: row["ratio"]["median"] for row in rows}
        self.assertEqual(ratios, {"seconds_to_best": 1.0, "command_seconds": 1.5})
        self.assertIn("<== differs", compare.render(rows, 0.03))

    def test_different_data_are_not_compared(self):
        other = point_result()
        other["cases"][0]["data"]["sha256"] = {"train": "y"}
        with self.assertRaisesRegex(BenchError, "different data"):
            compare.pairs(point_result(), other, "orrery")

    def test_a_side_that_did_not_reach_the_target_is_not_comparable(self):
        other = point_result()
        other["cases"][0]["contenders"][0]["rounds"][0]["seconds_to_best"] = None
        text = compare.render(compare.table(compare.pairs(point_result(), other, "orrery"), paired=False), 0.03)
        self.assertIn("not reached after", text)

    def test_a_difference_whose_range_holds_one_is_noise(self):
        self.assertFalse(compare.differs({"median": 1.2, "min": 0.9, "max": 1.3}, 0.03))
        self.assertTrue(compare.differs({"median": 1.2, "min": 1.1, "max": 1.3}, 0.03))
        self.assertFalse(compare.differs({"median": 1.01, "min": 1.005, "max": 1.02}, 0.03))


class ResultSchema(unittest.TestCase):
    def test_a_result_with_a_wrong_shape_is_refused(self):
        schema.check_result(point_result(), "x")
        for change in ({"schema": 2}, {"cases": {}}, {"colour": 1}):
            with self.assertRaises(BenchError):
                schema.check_result(point_result(**change), "x")


if __name__ == "__main__":
    unittest.main()
