"""Logistic regression from the command line: real data, and the edges of the interface that users meet."""

import unittest

from support import CommandLine, DATA, NOT_REACHED, OUTPUT, USAGE, kReal

kTrain, kTest = kReal / "a9a.svm.gz", kReal / "a9a.t.svm.gz"


class Logistic(CommandLine):
    def logistic(self, data, out, *words, **options):
        return self.run_orrery("train", "logistic", data, "--out", out, "--quiet", *words, **options)

    def test_a_plain_run_ends_near_the_minimum_and_is_proven_to(self):
        out = self.dir / "r"
        self.logistic(kTrain, out, "--verify")
        result = self.record(out)["result"]
        self.assertEqual(result["stopped_by"], "tolerance")
        self.assertLess(result["gap"], 1e-6)
        self.run_orrery("verify", out)

    def test_probabilities_and_held_out_metrics_agree(self):
        out, predictions = self.dir / "r", self.dir / "p.txt"
        self.logistic(kTrain, out, "--valid", kTest)
        self.run_orrery("predict", "--model", out, kTest, "--out", predictions)
        values = [float(line) for line in predictions.read_text().splitlines()]
        self.assertEqual(len(values), 16281)
        self.assertTrue(all(0 <= value <= 1 for value in values))
        self.assertIn("auc", self.run_orrery("evaluate", "--model", out, kTest).stdout)
        self.assertGreater(self.record(out)["result"]["accuracy"], 0.84)

    def test_threads_do_not_change_the_model(self):
        sums = set()
        for threads in (1, 2, 4):
            self.logistic(kTrain, self.dir / str(threads), "--threads", threads, "--penalty", "l1")
            sums.add(self.checksum(self.dir / str(threads)))
        self.assertEqual(len(sums), 1)

    def test_steps_on_a_table_keep_their_bits_and_take_any_consistency(self):
        def trained(name, *words):
            self.logistic(kTrain, self.dir / name, "--solver", "sgd", "--iterations", "5", "--verify", *words)
            return self.record(self.dir / name)["result"]

        newton = self.dir / "newton"
        self.logistic(kTrain, newton)
        best = self.record(newton)["result"]["objective"]
        same = [trained("t1", "--threads", "1"), trained("t4", "--threads", "4"),
                trained("numa", "--threads", "4", "--topology", "numa:2 core:2 pu:1")]
        self.assertEqual(len({result["model_checksum"] for result in same}), 1)
        self.assertGreater(same[0]["reads_staleness_0"], 0)
        self.assertNotIn("reads_staleness_1", same[0])
        for result in [*same, trained("ssp", "--staleness", "3"), trained("async", "--consistency", "async")]:
            self.assertLess(result["objective"], 1.03 * best)
        ssp = self.record(self.dir / "ssp")["result"]
        self.assertIn("reads_staleness_3", ssp)
        self.assertNotIn("reads_staleness_4", ssp)
        reads = sum(value for name, value in ssp.items() if name.startswith("reads_staleness_"))
        self.assertEqual(reads, same[0]["reads_staleness_0"])
        self.assertIn("reads_staleness_0", self.metrics(self.dir / "ssp")[-1])

    def test_a_plan_changes_no_bit_and_the_record_says_what_it_did(self):
        for plan in ("on", "off"):
            self.logistic(kTrain, self.dir / plan, "--solver", "sgd", "--iterations", "4", "--plan", plan)
        self.assertEqual(self.checksum(self.dir / "on"), self.checksum(self.dir / "off"))
        on, off = (self.record(self.dir / plan)["plan"] for plan in ("on", "off"))
        self.assertTrue(on["on"])
        table = on["tables"][0]
        self.assertEqual(table["name"], "weights")
        self.assertGreater(table["planned_rows"], 0)
        self.assertLess(table["misses"], table["adds"] / 10)
        self.assertIn("by slot", table["reason"])
        self.assertGreater(on["later_iteration_seconds"], 0)
        self.assertEqual((on["rank"], on["since_iteration"]), (0, 0))
        self.assertEqual(off["tables"][0]["planned_rows"], 0)
        self.assertEqual(off["tables"][0]["reads"], table["reads"])
        self.assertIn("--plan off", off["tables"][0]["reason"])
        done = self.logistic(kTrain, self.dir / "newton", "--plan", "off")
        self.assertIn("--plan: nothing here is in tables", done.stderr)

    def test_a_plan_is_kept_and_followed_for_the_same_data_only(self):
        def sgd(name, *words, **more):
            return self.logistic(kTrain, self.dir / name, "--solver", "sgd", "--iterations", "2", *words, **more)

        plan = self.dir / "plan.bin"
        sgd("learned", "--plan-out", plan)
        sgd("followed", "--plan-in", plan, "--threads", "3")
        self.assertEqual(self.checksum(self.dir / "learned"), self.checksum(self.dir / "followed"))
        learned, followed = (self.record(self.dir / name)["plan"]["tables"][0] for name in ("learned", "followed"))
        self.assertGreaterEqual(followed["planned_rows"], learned["planned_rows"])
        self.assertEqual((followed["misses"], followed["extensions"]), (0, 0))
        done = sgd("other", "--plan-in", plan, "--workers", "3", expect=DATA)
        self.assertIn("--plan-in", done.stderr)
        self.assertIn("workers: ", done.stderr)
        self.assert_no_model(self.dir / "other")
        sgd("nowhere", "--plan-out", self.dir / "none" / "plan.bin", expect=OUTPUT)
        self.assertFalse((self.dir / "nowhere").exists(), "said before the training")
        data = self.write("data.svm", "1 1:1\n-1 2:1\n1 1:2\n-1 2:2\n")
        for file, said in ((data, "is what the command reads"), (plan, "is there"), ("/dev/null", "is no regular file")):
            for more in ((), ("--overwrite",)) if file != plan else ((),):
                with self.subTest(said):
                    before = None if file == "/dev/null" else file.read_bytes()
                    done = self.run_orrery("train", "logistic", data, "--solver", "sgd", "--out", self.dir / "kept",
                                           "--plan-out", file, *more, expect=USAGE)
                    self.assertIn(said, done.stderr)
                    self.assertTrue(before is None or before == file.read_bytes())
        for name in ("model", "model/weights.npy", "run.json", "metrics.jsonl"):
            done = sgd("own", "--plan-out", self.dir / "own" / name, expect=USAGE)
            self.assertIn("is a name that the run itself writes", done.stderr)
            self.assertFalse((self.dir / "own").exists())
        sgd("own", "--plan-out", self.dir / "own" / "plan.bin")
        sgd("of_own", "--plan-in", self.dir / "own" / "plan.bin")
        plan.write_bytes(plan.read_bytes()[:-5])
        self.assertIn("--plan-in", sgd("cut", "--plan-in", plan, expect=DATA).stderr)
        self.assertIn("--plan on", sgd("off", "--plan-in", plan, "--plan", "off", expect=USAGE).stderr)
        done = self.logistic(kTrain, self.dir / "newton", "--plan-out", self.dir / "new.bin", expect=USAGE)
        self.assertIn("nothing here is in tables", done.stderr)

    def test_a_column_that_no_model_knows_costs_no_memory_for_all_below_it(self):
        model, known = self.dir / "m", self.write("known.svm", "1 1:1 3:1\n-1 2:1\n")
        far = self.write("far.svm", "1 1:1 3:1 2000000000:3\n-1 2:1\n")
        self.logistic(kTrain, model, "--iterations", "2", "--valid", far)
        for command, *words in (("predict", "--out", "-"), ("evaluate",)):
            outputs = [self.run_orrery(command, "--model", model, data, *words).stdout.replace(str(data), "")
                       for data in (known, far)]
            self.assertEqual(*outputs)

    def test_no_step_at_all_is_a_model_that_verifies(self):
        for words in ((), ("--penalty", "l1"), ("--solver", "sgd")):
            with self.subTest(words):
                self.logistic(kTrain, self.dir / "r", "--iterations", "0", "--verify", "--overwrite", *words)
                self.assertAlmostEqual(self.record(self.dir / "r")["result"]["objective"], 0.6931472, 6)

    def test_a_training_that_diverges_says_so_and_leaves_no_model(self):
        rows = self.write("f.svm", "1 1:1e30\n-1 1:2\n1 1:1.5\n-1 1:0.5\n")
        done = self.logistic(rows, self.dir / "d", "--solver", "sgd", "--rate", "1e300", "--batch", "1", expect=USAGE)
        self.assertIn("diverged", done.stderr)
        self.assertIn("--rate", done.stderr)
        self.assert_no_model(self.dir / "d")

    def test_a_seed_without_use_is_said_to_have_none(self):
        done = self.logistic(kTrain, self.dir / "r", "--seed", "5", "--iterations", "1", "--threads", "1")
        self.assertIn("--seed", done.stderr)

    def test_a_target_that_rest_ends_before_is_not_reached(self):
        self.logistic(kTrain, self.dir / "r", "--target", "0.01", expect=NOT_REACHED)

    def test_bad_requests_are_refused_by_name(self):
        table = self.write("t.csv", "a,b\n1,0\n2,1\n")
        three = self.write("three.svm", "1 1:1\n2 1:2\n3 1:1\n")
        for data, words, code, text in ((table, (), USAGE, "--label"), (three, (), DATA, "1..3"),
                                        (kTrain, ("--l1-ratio", "0.5"), USAGE, "--penalty elastic"),
                                        (kTrain, ("--staleness", "1"), USAGE, "--consistency bsp"),
                                        (kTrain, ("--label", "1"), USAGE, "--label"),
                                        (kTrain, ("--solver", "sgd", "--penalty", "l1"), USAGE, "--penalty l2 only"),
                                        (kTrain, ("--rate", "1"), USAGE, "--solver sgd")):
            with self.subTest(words=words, data=data.name):
                done = self.logistic(data, self.dir / "bad", *words, expect=code)
                self.assertIn(text, done.stderr)
                self.assert_no_model(self.dir / "bad")


if __name__ == "__main__":
    unittest.main()
