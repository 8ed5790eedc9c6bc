"""The commands on finished runs and on data sets, end to end, with the files that cli.md promises."""

import json
import math
import unittest

from support import CommandLine, NOT_REACHED, USAGE, kReal, ratings_text


class Train(CommandLine):
    def test_the_files_and_keys_of_a_run(self):
        data, out = self.ratings(), self.dir / "r"
        held_out = self.ratings("test.txt", ratings=200, seed=1)
        self.train(data, out, "--valid", held_out, "--iterations", "4", "--checkpoint-every", "2")
        record = self.record(out)
        self.assertLessEqual({"orrery", "command", "algorithm", "parameters", "data", "topology", "threads", "workers", "ranks",
                              "consistency", "staleness", "schedule", "warnings", "result", "simd", "seed"}, set(record))
        self.assertLessEqual({"iterations", "seconds", "seconds_loading", "metric", "value", "stopped_by",
                              "peak_rss_bytes", "model_checksum"}, set(record["result"]))
        self.assertEqual(record["algorithm"], "mf")
        self.assertEqual(record["schedule"], "rotation")
        self.assertEqual(record["result"]["iterations"], 4)
        self.assertEqual(record["parameters"]["iterations"], 4)
        self.assertIn("checksum", record["data"])
        points = self.metrics(out)
        self.assertEqual([point["iteration"] for point in points], [1, 2, 3, 4])
        for point in points:
            self.assertLessEqual({"iteration", "seconds", "objective", "valid", "staleness_mean", "staleness_max",
                                  "wait_seconds", "bytes_sent", "rmse"}, set(point))
        self.assertEqual(points, sorted(points, key=lambda point: point["seconds"]))
        manifest = json.loads((out / "model" / "manifest.json").read_text())
        self.assertTrue(manifest)
        self.assertTrue(list((out / "model").glob("*.npy")))
        self.assertTrue(list((out / "checkpoint").glob("clock-*.ckpt")))
        self.assert_no_temporaries(out)
        self.assertFalse((out / ".lock").exists())

    def test_valid_every_thins_the_metrics(self):
        out = self.dir / "r"
        self.train(self.ratings(), out, "--iterations", "7", "--valid-every", "3")
        self.assertEqual([point["iteration"] for point in self.metrics(out)], [3, 6, 7])

    def test_warm_start_goes_on_from_a_model(self):
        data = self.ratings()
        self.train(data, self.dir / "a", "--iterations", "30")
        self.train(data, self.dir / "b", "--iterations", "1", "--init", self.dir / "a")
        self.train(data, self.dir / "cold", "--iterations", "1")
        warm, cold = (self.metrics(self.dir / name)[0]["objective"] for name in ("b", "cold"))
        self.assertLess(warm, cold)

    def test_early_stopping_keeps_the_best_model(self):
        data = self.ratings(ratings=400)
        held_out = self.ratings("test.txt", ratings=300, seed=2)
        out = self.dir / "r"
        self.train(data, out, "--valid", held_out, "--iterations", "300", "--patience", "2", "--reg", "0")
        result = self.record(out)["result"]
        self.assertEqual(result["stopped_by"], "validation")
        best = min(point["valid"] for point in self.metrics(out))
        self.assertAlmostEqual(result["value"], best, places=6)

    def test_a_table_of_items_keeps_its_bits_and_takes_any_consistency(self):
        data = self.ratings(ratings=2000)
        held_out = self.ratings("test.txt", ratings=300, seed=2)

        def trained(name, *words):
            self.train(data, self.dir / name, "--schedule", "data", "--clocks", "4", "--workers", "6", *words)
            return self.record(self.dir / name)["result"]

        same = [trained("t1", "--threads", "1", "--verify"), trained("t4", "--threads", "4"),
                trained("numa", "--threads", "4", "--topology", "numa:2 core:2 pu:1")]
        self.assertEqual(len({result["model_checksum"] for result in same}), 1)
        self.assertEqual(self.record(self.dir / "t1")["schedule"], "data")
        self.assertNotIn("reads_staleness_1", same[0])
        for words in (("--staleness", "2"), ("--consistency", "essp", "--staleness", "2"), ("--consistency", "async")):
            result = trained("stale", "--overwrite", *words)
            self.assertLess(result["train_rmse"], 1.1 * same[0]["train_rmse"])
            self.assertIn("reads_staleness_0", self.metrics(self.dir / "stale")[-1])
        model = ("--model", self.dir / "t1")
        self.assertIn("rmse", self.run_orrery("evaluate", *model, held_out).stdout)
        self.assertEqual(len(self.run_orrery("recommend", *model, "--user", "u1", "--top", "3").stdout.split("\n")), 4)

    def test_what_is_said_of_a_table_needs_one(self):
        data = self.ratings(ratings=200)
        for words in (("--clocks", "4"), ("--solver", "als", "--clocks", "4"), ("--solver", "als", "--schedule", "rotation")):
            self.train(data, self.dir / "r", *words, expect=USAGE)
        self.assertIn("units", self.train(data, self.dir / "r", "--schedule", "data", "--clocks", "65536", "--workers",
                                          "16", expect=USAGE).stderr)

    def test_both_solvers_learn_and_verify(self):
        data = self.ratings(ratings=2000)
        for solver in ("sgd", "als"):
            out = self.dir / solver
            self.train(data, out, "--solver", solver, "--verify", "--iterations", "30", "--rank", "4")
            points = self.metrics(out)
            self.assertLess(points[-1]["objective"], points[0]["objective"])
            self.assertIn("ok", self.run_orrery("verify", out).stdout)

    def test_paths_with_blanks_and_quotes(self):
        data = self.ratings("a folder/it's \"data\".txt")
        out = self.dir / "my run's"
        self.train(data, out, "--iterations", "1")
        self.run_orrery("verify", out)


class Model(CommandLine):
    def setUp(self):
        super().setUp()
        self.data = self.ratings(ratings=1800)
        self.out = self.dir / "r"
        self.train(self.data, self.out, "--iterations", "20", "--rank", "4")

    def test_predictions_are_those_of_evaluate(self):
        self.run_orrery("predict", "--model", self.out, self.data, "--out", self.dir / "p")
        predicted = [float(text) for text in (self.dir / "p").read_text().split()]
        wanted = [float(line.split()[2]) for line in self.data.read_text().splitlines()]
        self.assertEqual(len(predicted), len(wanted))
        rmse = math.sqrt(sum((a - b) ** 2 for a, b in zip(predicted, wanted)) / len(wanted))
        mae = sum(abs(a - b) for a, b in zip(predicted, wanted)) / len(wanted)
        found = json.loads(self.run_orrery("evaluate", "--model", self.out, self.data, "--json").stdout)
        self.assertEqual(list(found)[0], "rmse")
        self.assertAlmostEqual(found["rmse"], rmse, places=4)
        self.assertAlmostEqual(found["mae"], mae, places=4)

    def test_evaluate_for_people(self):
        self.assertRegex(self.run_orrery("evaluate", "--model", self.out, self.data).stdout, r"(?m)^rmse +\d")

    def test_pairs_without_a_rating_can_be_predicted(self):
        pairs = self.write("pairs.txt", "u1 i1\nu2 i3\n")
        done = self.run_orrery("predict", "--model", self.out, pairs, "--out", "-")
        self.assertEqual(len(done.stdout.split()), 2)

    def test_recommendations_are_best_first_and_not_rated_before(self):
        done = self.run_orrery("recommend", "--model", self.out, "--user", "u3", "--top", "5")
        rows = [line.split() for line in done.stdout.splitlines()]
        rated = {line.split()[1] for line in self.data.read_text().splitlines() if line.startswith("u3 ")}
        self.assertTrue(rows)
        self.assertLessEqual(len(rows), 5)
        scores = [float(score) for _, score in rows]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertFalse(rated & {item for item, _ in rows})
        json.loads(self.run_orrery("recommend", "--model", self.out, "--user", "u3", "--json").stdout)

    def test_infer_gives_a_row_for_each_new_user(self):
        lines = [line for line in self.data.read_text().splitlines() if line.startswith(("u1 ", "u2 "))]
        new = self.write("new.txt", "\n".join("new-" + line for line in lines) + "\n")
        self.run_orrery("infer", "--model", self.out, new, "--out", self.dir / "factors")
        rows = [line.split() for line in (self.dir / "factors").read_text().splitlines() if not line.startswith("#")]
        self.assertEqual({row[0] for row in rows}, {"new-u1", "new-u2"})
        for row in rows:
            for value in row[1:]:
                self.assertTrue(math.isfinite(float(value)))

    def test_the_model_directory_itself_is_a_model(self):
        a = self.run_orrery("evaluate", "--model", self.out, self.data).stdout
        self.assertEqual(self.run_orrery("evaluate", "--model", self.out / "model", self.data).stdout, a)

    def test_verify_needs_the_data_it_was_trained_on(self):
        self.run_orrery("verify", self.out)
        self.data.write_text(ratings_text(seed=9))
        self.assertNotEqual(self.run_orrery("verify", self.out, expect=None).returncode, 0)

    def test_output_is_replaced_whole(self):
        target = self.write("p", "old\n")
        self.run_orrery("predict", "--model", self.out, self.data, "--out", target)
        self.assertNotIn("old", target.read_text())

    def test_output_through_a_link_goes_where_it_leads(self):
        real = self.write("real", "old\n")
        (self.dir / "link").symlink_to(real)
        self.run_orrery("predict", "--model", self.out, self.data, "--out", self.dir / "link")
        self.assertTrue((self.dir / "link").is_symlink())
        self.assertNotIn("old", real.read_text())


class Topology(CommandLine):
    def test_a_synthetic_machine(self):
        found = json.loads(self.run_orrery("topology", "--synthetic", "numa:2 core:4 pu:2", "--json").stdout)
        self.assertEqual(len(found["domains"]), 2)
        self.run_orrery("topology", "--synthetic", "numa:2 core:x", expect=2)
        self.run_orrery("topology", "--synthetic", "numa:2", "--xml", "x", expect=2)
        self.run_orrery("topology", "--xml", self.dir / "nowhere.xml", expect=3)
        self.run_orrery("topology", "--xml", self.write("bad.xml", "<nonsense"), expect=3)


class Real(CommandLine):
    def test_the_bundled_ratings_with_default_settings(self):
        out = self.dir / "r"
        self.train(kReal / "anime.train.txt.gz", out, "--valid", kReal / "anime.test.txt.gz")
        # The best constant is at 1.57 and user and item means at 1.20; a peer's tuned best is 1.153.
        self.assertLess(self.record(out)["result"]["value"], 1.17)


if __name__ == "__main__":
    unittest.main()
