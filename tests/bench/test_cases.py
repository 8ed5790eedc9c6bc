"""Case files: what is read, what is refused, and that the project's own are right."""

import json
import unittest

from support import InFolder, kRoot
from harness import cases, targets, templates
from harness.errors import BenchError


def minimal():
    return {
        "schema": 1, "datasets": {"d": {"what": "data", "files": {"train": "t.txt"}}},
        "cases": [{"name": "c-{rank}", "issue": 2, "what": "rank {rank}", "dataset": "d", "matrix": {"rank": [1, 2]},
                   "quality": {"name": "error", "better": "lower"}, "targets": {"best": {"best_of": "a"}},
                   "contenders": [{"name": "a", "kind": "points", "command": ["{rank}"]}]}],
    }


class CaseFiles(InFolder):
    def load(self, content):
        path = self.folder / "cases.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return cases.load([path])

    def test_a_matrix_becomes_one_case_per_combination(self):
        _, _, found = self.load(minimal())
        self.assertEqual([(case.name, case.values) for case in found], [("c-1", {"rank": 1}), ("c-2", {"rank": 2})])

    def test_refused_with_the_reason(self):
        def broken(change):
            content = minimal()
            change(content["cases"][0])
            return content

        wrong = {
            "unknown key 'colour'": lambda case: case.update(colour=1),
            "'dataset' is missing": lambda case: case.pop("dataset"),
            "no dataset 'x'": lambda case: case.update(dataset="x"),
            "two cases": lambda case: case.update(name="same"),
            "no contender 'b'": lambda case: case.update(targets={"best": {"best_of": "b"}}),
            "lower or higher": lambda case: case.update(quality={"name": "e", "better": "less"}),
            "either 'best_of' or 'value'": lambda case: case.update(targets={"best": {}}),
            "'issue' has the type bool": lambda case: case.update(issue=True),
            "needs a value for 'k'": lambda case: case.update(name="c-{rank}-{k}"),
        }
        for message, change in wrong.items():
            with self.subTest(message), self.assertRaisesRegex(BenchError, message):
                self.load(broken(change))

    def test_broken_json_is_named_with_its_place(self):
        path = self.write("broken.json", '{"schema": 1,\n oops}')
        with self.assertRaisesRegex(BenchError, "broken.json:2"):
            cases.load([path])

    def test_a_shared_contender_is_taken_over_and_changed(self):
        content = minimal()
        content["contenders"] = {"a": content["cases"][0]["contenders"][0] | {"copies": 1}}
        content["cases"][0]["contenders"] = [{"use": "a"}, {"use": "a", "name": "b", "copies": 2}]
        _, _, found = self.load(content)
        self.assertEqual([(item.name, item.copies) for item in found[0].contenders], [("a", 1), ("b", 2)])

    def test_a_pattern_that_matches_nothing_is_an_error(self):
        _, _, found = self.load(minimal())
        self.assertEqual([case.name for case in cases.select(found, ["*-2"])], ["c-2"])
        with self.assertRaises(BenchError):
            cases.select(found, ["lda*"])

    def test_templates_refuse_unknown_names(self):
        self.assertEqual(templates.fill("a{x}{ y }", {"x": 1}), "a1{ y }")
        with self.assertRaises(BenchError):
            templates.fill("{z}", {})


class TheProjectsOwn(unittest.TestCase):
    """A target that names a case or contender that does not exist could never be measured."""

    def test_every_target_refers_to_a_case_and_contender_that_exist(self):
        _, _, found = cases.load(cases.default_files(kRoot))
        known = {(case.name, contender.name) for case in found for contender in case.contenders}
        for entry in targets.load(kRoot / "bench" / "targets.json"):
            for reference in entry.get("ratio", [entry.get("value")]):
                self.assertIn(tuple(reference.split("/", 2)[:2]), known, entry["id"])

    def test_bundled_data_exist(self):
        datasets, _, _ = cases.load(cases.default_files(kRoot))
        for dataset in datasets.values():
            if "generate" not in dataset:
                for path in dataset["files"].values():
                    self.assertTrue((kRoot / path).exists(), path)

    def test_target_seconds_are_only_asked_of_targets_that_the_case_has(self):
        _, _, found = cases.load(cases.default_files(kRoot))
        by_name = {case.name: case for case in found}
        for entry in targets.load(kRoot / "bench" / "targets.json"):
            for reference in entry.get("ratio", [entry.get("value")]):
                case, _, metric = reference.split("/", 2)
                if metric.startswith("seconds_to_"):
                    self.assertIn(metric[len("seconds_to_"):], by_name[case].targets, entry["id"])


if __name__ == "__main__":
    unittest.main()
