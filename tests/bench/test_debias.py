"""Ratings without biases: what the fairness of the factorisation race stands on."""

import os
import unittest
from pathlib import Path

from support import InFolder
from harness import debias
from harness.errors import BenchError

kTrain = "a x 5\na y 3\nb x 4\nb z 1\n# a comment\nc y 2\n"
kTest = "a z 2\nnew x 4\nc brandnew 3\n"


class Debias(InFolder):
    def files(self, names):
        return [self.folder / name for name in names]

    def removed(self, tool=None, damping=1.0):
        train, test = self.write("train.txt", kTrain), self.write("test.txt", kTest)
        outputs = self.files((f"{bool(tool)}.train", f"{bool(tool)}.test", f"{bool(tool)}.offsets"))
        return debias.remove_fast(tool, train, test, damping, 4, outputs), outputs

    def test_offset_plus_residual_is_the_rating(self):
        _, (_, test, offsets) = self.removed()
        residuals = [value for _, _, value in debias.read_ratings(test)]
        added = [float(line) for line in offsets.read_text().split()]
        for residual, offset, (_, _, rating) in zip(residuals, added, debias.read_ratings(self.folder / "test.txt")):
            self.assertAlmostEqual(residual + offset, rating, places=5)

    def test_additive_data_leave_nothing(self):
        lines = "".join(f"{user} {item} {3 + user - 2 * item}\n" for user in range(5) for item in range(4))
        train = self.write("train.txt", lines)
        found = debias.remove(train, train, 0.0, 3)
        self.assertLess(found["rmse"], 1e-9)

    def test_unknown_ids_get_no_bias(self):
        train, test = self.write("train.txt", kTrain), self.write("test.txt", "new brandnew 3\n")
        found = debias.remove(train, test, 1.0, 4)
        self.assertAlmostEqual(found["rmse"], abs(3 - found["mean"]))

    def test_the_damping_with_the_lowest_held_out_error_is_chosen(self):
        train, test = self.write("train.txt", kTrain), self.write("test.txt", kTest)
        chosen, tried = debias.choose(None, train, test, [0, 1, 100], 4)
        self.assertEqual(tried[chosen], min(tried.values()))

    def test_the_compiled_tool_writes_the_same(self):
        tool = os.environ.get("ORRERY_BENCH_DEBIAS")
        if not tool or not Path(tool).exists():
            self.skipTest("orrery_bench_debias is not built (ORRERY_BENCH=OFF)")
        slow, slow_files = self.removed()
        fast, fast_files = self.removed(tool)
        self.assertAlmostEqual(slow["rmse"], fast["rmse"], places=7)
        for one, other in zip(slow_files, fast_files):
            self.assertEqual(one.read_text(), other.read_text())

    def test_a_line_that_is_no_rating_is_named(self):
        path = self.write("bad.txt", "1 2 3\n1 2\n")
        with self.assertRaisesRegex(BenchError, "bad.txt:2"):
            list(debias.read_ratings(path))


if __name__ == "__main__":
    unittest.main()
