"""The Lasso from the command line: one penalty, a path, and the edges of the interface that users meet."""

import json
import signal
import unittest

from support import CommandLine, DATA, INTERRUPTED, NOT_REACHED, USAGE, checkpoints


class Lasso(CommandLine):
    def setUp(self):
        super().setUp()
        self.data = self.dir / "rows.svm"
        self.run_orrery("data", "generate", "sparse", "--rows", 600, "--columns", 900, "--nonzero-weights", 20, "--out",
                        self.data)

    def lasso(self, out, *words, data=None, **options):
        return self.run_orrery("train", "lasso", data or self.data, "--out", self.dir / out, "--quiet", *words, **options)

    def test_one_penalty_ends_proven_and_is_verified_from_the_files(self):
        self.lasso("r", "--lambda", "0.05", "--verify")
        result = self.record(self.dir / "r")["result"]
        self.assertEqual(result["stopped_by"], "tolerance")
        self.assertLessEqual(result["gap"], 1e-6)
        self.assertEqual(result["lambda"], 0.05)
        self.assertGreater(result["nonzeros"], 10)
        self.assertLess(result["nonzeros"], 200)
        last = self.metrics(self.dir / "r")[-1]
        self.assertTrue({"objective", "gap", "nonzeros"} <= last.keys())
        self.run_orrery("verify", self.dir / "r")

    def test_a_path_has_a_table_and_held_out_rows_choose_from_it(self):
        other = self.dir / "parts"
        self.run_orrery("data", "split", self.data, "--out", other)
        parts = sorted(other.iterdir())
        train = next(part for part in parts if "train" in part.name)
        test = next(part for part in parts if "test" in part.name)
        self.lasso("r", "--path", "30", "--valid", test, "--verify", data=train)
        result = self.record(self.dir / "r")["result"]
        table = (self.dir / "r" / "model" / "path_table.txt").read_text().splitlines()
        self.assertEqual(table[0].split("\t")[:3], ["lambda", "intercept", "nonzeros"])
        lambdas = [float(line.split("\t")[0]) for line in table[1:]]
        self.assertEqual(lambdas, sorted(lambdas, reverse=True))
        self.assertIn(result["lambda"], lambdas)
        scores = self.run_orrery("evaluate", "--model", self.dir / "r", test).stdout
        self.assertIn("rmse", scores)
        self.assertIn("r2", scores)
        self.run_orrery("predict", "--model", self.dir / "r", test, "--out", self.dir / "p.txt")
        self.assertEqual(len((self.dir / "p.txt").read_text().splitlines()), len(test.read_text().splitlines()))

    def test_cross_validation_chooses_from_the_path_and_says_so(self):
        self.lasso("r", "--path", "20", "--cv", "5", "--verify")
        result = self.record(self.dir / "r")["result"]
        header, *lines = (line.split("\t") for line in
                          (self.dir / "r" / "model" / "path_table.txt").read_text().splitlines())
        rows = [dict(zip(header, line)) for line in lines]
        best = min(rows, key=lambda row: float(row["cv_error"]))
        most = float(best["cv_error"]) + float(best["cv_se"])
        simplest = next(row for row in rows if float(row["cv_error"]) <= most)
        self.assertIn("min", best["cv_choice"])
        self.assertIn("1se", simplest["cv_choice"])
        self.assertEqual(result["lambda_min"], float(best["lambda"]))
        self.assertEqual(result["lambda_1se"], float(simplest["lambda"]))
        self.assertEqual(result["lambda"], result["lambda_1se"])
        self.run_orrery("verify", self.dir / "r")
        self.lasso("other", "--path", "20", "--cv", "5", "--seed", "2")
        self.assertNotEqual(self.record(self.dir / "other")["result"]["cv_error"], result["cv_error"])

    def goes_on_to_the_same_bits(self, words):
        self.lasso("whole", *words)
        process = self.start("train", "lasso", self.data, "--out", self.dir / "killed", "--quiet", *words,
                             "--checkpoint-every", "1")
        self.wait_for(lambda: checkpoints(self.dir / "killed") or process.poll() is not None, "a checkpoint")
        process.send_signal(signal.SIGINT)
        process.wait()
        if process.returncode == INTERRUPTED:
            self.lasso("killed", *words, "--checkpoint-every", "1", "--resume")
        self.assertEqual(self.checksum(self.dir / "whole"), self.checksum(self.dir / "killed"))
        self.run_orrery("verify", self.dir / "killed")

    def test_an_interrupted_cross_validation_goes_on_to_the_same_bits(self):
        words = ("--path", "40", "--cv", "4", "--tolerance", "1e-9")
        self.goes_on_to_the_same_bits(words)

    def test_classes_are_fitted_verified_and_predicted_as_probabilities(self):
        data = self.dir / "two.svm"
        self.run_orrery("data", "generate", "sparse", "--rows", 500, "--columns", 200, "--nonzero-weights", 15,
                        "--classes", 2, "--weight-scale", 3, "--out", data)
        self.lasso("r", "--family", "binomial", "--path", "20", "--cv", "4", "--verify", data=data)
        result = self.record(self.dir / "r")["result"]
        self.assertLessEqual(result["gap"], 1e-6)
        self.assertLess(result["cv_error"], 0.69)
        scores = json.loads(self.run_orrery("evaluate", "--model", self.dir / "r", data, "--json").stdout)
        self.assertTrue({"log_loss", "accuracy", "auc"} <= scores.keys())
        self.assertGreater(scores["auc"], 0.7)
        self.run_orrery("predict", "--model", self.dir / "r", data, "--out", self.dir / "p.txt")
        probabilities = [float(line) for line in (self.dir / "p.txt").read_text().split()]
        self.assertEqual(len(probabilities), 500)
        self.assertTrue(all(0 < p < 1 for p in probabilities))
        self.assertIn("labels", self.lasso("bad", "--family", "binomial", expect=DATA).stderr)
        self.lasso("s", "--family", "binomial", "--lambda", "0.05", data=data)
        refused = self.lasso("t", "--lambda", "0.05", "--init", self.dir / "s", data=data, expect=USAGE)
        self.assertIn("--family", refused.stderr)

    def test_threads_do_not_change_the_model(self):
        sums = set()
        for threads in (1, 2, 4):
            self.lasso(str(threads), "--path", "20", "--threads", threads)
            sums.add(self.checksum(self.dir / str(threads)))
        self.assertEqual(len(sums), 1)

    def test_an_interrupted_path_goes_on_to_the_same_bits(self):
        words = ("--path", "60", "--path-ratio", "0.001", "--tolerance", "1e-10")
        done = self.lasso("cut", *words, "--checkpoint-every", "1", "--iterations", "20", expect=NOT_REACHED)
        self.assertEqual(done.returncode, NOT_REACHED)
        self.goes_on_to_the_same_bits(words)

    def test_a_dense_table_is_read_with_its_label(self):
        table = self.dir / "t.csv"
        self.run_orrery("data", "generate", "dense", "--rows", 100, "--columns", 30, "--correlation", 0.8, "--out", table)
        last = len(table.read_text().splitlines()[0].split(","))
        self.lasso("r", "--lambda", "0.05", "--label", last, "--verify", data=table)
        self.assertGreater(self.record(self.dir / "r")["result"]["r2"], 0.5)

    def test_bad_requests_are_refused_by_name(self):
        table = self.write("t.csv", "a,b\n1,0\n2,1\n")
        words_as_labels = self.write("bad.svm", "1 1:1\nred 1:1\n")
        too_wide = self.write("wide.svm", "1 1:1\n2 3000000000:1\n")
        for data, words, code, text in ((self.data, ("--lambda", "-1"), USAGE, "lambda"),
                                        (self.data, ("--lambda", "0.1", "--path", "5"), USAGE, "--path"),
                                        (self.data, ("--l1-ratio", "2"), USAGE, "l1-ratio"),
                                        (self.data, ("--cv", "5", "--lambda", "1"), USAGE, "--cv"),
                                        (self.data, ("--cv", "1"), USAGE, "2 folds"),
                                        (self.data, ("--cv", "601"), USAGE, "600"),
                                        (self.data, ("--staleness", "1"), USAGE, "--consistency bsp"),
                                        (self.data, ("--schedule", "rotation"), USAGE, "scheduled"),
                                        (table, (), USAGE, "--label"), (words_as_labels, (), DATA, "red"),
                                        (too_wide, (), DATA, "at most 2147483647 columns")):
            with self.subTest(words=words, data=data.name):
                done = self.lasso("bad", *words, data=data, expect=code)
                self.assertIn(text, done.stderr)
                self.assert_no_model(self.dir / "bad")


if __name__ == "__main__":
    unittest.main()
