"""Softmax regression from the command line: a run, its proof, its predictions, and labels that are none."""

import unittest

from support import CommandLine, DATA


class Softmax(CommandLine):
    def test_a_run_is_proven_and_predicts_labels_and_probabilities(self):
        data, out, predictions = self.dir / "five.svm", self.dir / "r", self.dir / "p.txt"
        self.run_orrery("data", "generate", "sparse", "--classes", "5", "--rows", "1000", "--columns", "50", "--out", data)
        self.run_orrery("train", "softmax", data, "--out", out, "--quiet", "--verify", "--valid", data)
        result = self.record(out)["result"]
        self.assertLess(result["gap"], 1e-5)
        self.run_orrery("verify", out)
        self.run_orrery("predict", "--model", out, data, "--out", predictions)
        rows = [line.split() for line in predictions.read_text().splitlines()]
        labels = [line.split()[0] for line in data.read_text().splitlines() if not line.startswith("#")]
        self.assertTrue(all(len(row) == 6 and abs(sum(map(float, row[1:])) - 1) < 1e-9 for row in rows))
        right = sum(row[0] == label for row, label in zip(rows, labels, strict=True))
        self.assertAlmostEqual(right / len(rows), result["accuracy"])
        self.assertIn("log_loss", self.run_orrery("evaluate", "--model", out, data).stdout)

    def test_labels_must_be_integers(self):
        for label in ("0.5", "9007199254740993"):  # the second is not told from its neighbour
            data = self.write("labels.svm", f"{label} 1:1\n2 1:2\n")
            result = self.run_orrery("train", "softmax", data, "--out", self.dir / "r", "--quiet", expect=DATA)
            self.assertIn("integer", result.stderr)


if __name__ == "__main__":
    unittest.main()
