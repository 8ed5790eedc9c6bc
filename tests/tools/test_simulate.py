"""Training on a simulated cluster: the same bits at staleness 0, virtual time, and clear refusals."""

import unittest

from support import CommandLine, LOST, USAGE, kReal

kRows, kRatings = kReal / "a9a.svm.gz", kReal / "anime.train.txt.gz"
kLogistic = ("logistic", kRows, "--solver", "sgd", "--workers", "8", "--iterations", "2")
kGroups = ("mf", kRatings, "--groups", "4", "--rank", "8", "--workers", "8", "--iterations", "2")
kFactors = ("mf", kRatings, "--schedule", "data", "--rank", "8", "--workers", "8", "--iterations", "2")


class Simulate(CommandLine):
    def trained(self, name, *words, **options):
        out = self.dir / name
        finished = self.run_orrery("train", *words, "--out", out, "--quiet", **options)
        return finished if options else self.record(out)

    def test_nodes_change_no_bit_at_staleness_0(self):
        for name, job in (("rows", kLogistic), ("items", kFactors), ("groups", kGroups)):
            with self.subTest(name):
                one = self.trained(name, *job)["result"]
                record = self.trained(name + "5", *job, "--simulate", "nodes:5 delay:2ms jitter:5ms")
                several = record["result"]
                self.assertEqual(one["model_checksum"], several["model_checksum"])
                self.assertEqual(one.get("reads_staleness_0"), None if name == "groups" else several["reads_staleness_0"])
                self.assertEqual(record["ranks"], 5)
                self.assertGreater(several["reads_checked"], 0)
                metrics = self.metrics(self.dir / (name + "5"))
                times = [line["virtual_seconds"] for line in metrics]
                self.assertEqual(times, sorted(times))

    def test_slack_hides_bursts_of_slowness(self):
        cluster = ("--simulate", "nodes:8 delay:1ms straggler:burst:4x")
        barrier = self.trained("bsp", *kLogistic, *cluster)["result"]
        slack = self.trained("ssp", *kLogistic, *cluster, "--staleness", "3")["result"]
        self.assertLess(slack["virtual_seconds"], 0.8 * barrier["virtual_seconds"])
        self.assertIn("reads_staleness_3", slack)
        reads = [slack[f"reads_staleness_{k}"] for k in range(4)]
        last = self.metrics(self.dir / "ssp")[-1]
        self.assertAlmostEqual(last["staleness_mean"], sum(k * n for k, n in enumerate(reads)) / sum(reads), 6)
        again = self.trained("again", *kLogistic, *cluster, "--staleness", "3")["result"]
        for key in ("model_checksum", "virtual_seconds", "virtual_bytes_sent", "reads_staleness_3"):
            self.assertEqual(slack[key], again[key], key)

    def test_a_slow_node_is_helped_without_another_bit(self):
        job = ("mf", kRatings, "--rank", "16", "--workers", "16", "--iterations", "3")
        one = self.trained("one", *job)["result"]
        cluster = "nodes:4 delay:200us rate:10Gb compute:10ms"
        run = lambda name, words, *more: self.trained(name, *job, "--simulate", cluster + words, *more)["result"]
        even, slow = run("even", ""), " straggler:node:2x"
        alone, helped = run("alone", slow, "--reassign", "off"), run("helped", slow)
        wild = run("wild", " jitter:40ms spread:0.8 straggler:burst:5x", "--reassign", "always")
        for result in (even, alone, helped, wild):
            self.assertEqual(result["model_checksum"], one["model_checksum"])
        self.assertEqual((even["units_lent"], alone["units_lent"]), (0, 0))
        self.assertGreater(helped["units_lent"], 0)
        ideal = even["virtual_seconds"] * 4 / 3.5
        self.assertLess(helped["virtual_seconds"], 1.15 * ideal)
        self.assertGreater(alone["virtual_seconds"], 1.5 * ideal)

    def test_help_that_nobody_can_give_is_refused(self):
        for words in ((), ("--simulate", "nodes:2", "--groups", "2"), ("--simulate", "nodes:2", "--schedule", "data")):
            done = self.run_orrery("train", "mf", kRatings, "--reassign", "always", *words, "--out", self.dir / "vain", expect=2)
            self.assertIn("expected several nodes (mpirun or --simulate) and mf by rotation", done.stderr)
        self.assertFalse((self.dir / "vain").exists())

    def test_a_lost_node_ends_the_run_by_name_and_its_checkpoint_goes_on_elsewhere(self):
        job = (*kLogistic[:-1], "4", "--checkpoint-every", "1")
        whole = self.trained("whole", *job)["result"]
        lost = self.trained("lost", *job, "--simulate", "nodes:4 lost:1@2s", expect=LOST)
        self.assertIn("node 1", lost.stderr)
        self.assertIn("--resume", lost.stderr)
        resumed = self.trained("lost", *job, "--simulate", "nodes:2", "--resume")["result"]
        self.assertEqual(whole["model_checksum"], resumed["model_checksum"])
        self.assertEqual(resumed["iterations"], 4)
        times = [line["virtual_seconds"] for line in self.metrics(self.dir / "lost")]
        self.assertEqual(times, sorted(times), "virtual time goes on over a resume")
        self.assertGreaterEqual(resumed["virtual_seconds"], times[-1])

    def test_measured_units_cost_what_they_take_and_change_no_bit(self):
        job = ("mf", kRatings, "--rank", "16", "--workers", "8", "--iterations", "2")
        one = self.trained("one", *job)["result"]
        here = self.trained("here", *job, "--simulate", "nodes:2 compute:measured delay:0us rate:1000GB")["result"]
        far = self.trained("far", *job, "--simulate", "nodes:2 compute:measured delay:20ms")["result"]
        for result in (here, far):
            self.assertEqual(result["model_checksum"], one["model_checksum"])
            self.assertGreater(result["virtual_compute_seconds"], 0)
            self.assertLessEqual(result["virtual_compute_seconds"], result["virtual_seconds"])
        # Either node has half of the work, and nothing but the work takes time; with a delay every clock waits for some.
        self.assertLess(here["virtual_seconds"], 2 * here["virtual_compute_seconds"])
        self.assertGreater(far["virtual_seconds"], far["virtual_compute_seconds"] + 0.08)

    def test_what_cannot_be_simulated_is_refused_with_the_way_out(self):
        for words, said in (
            (("mf", kRatings, "--solver", "als", "--simulate", "nodes:4"), "runs on one node only"),
            ((*kLogistic, "--simulate", "nodes:9"), "9 nodes need as many workers"),
            ((*kLogistic, "--simulate", "nodes:4 dealy:1ms"), "did you mean 'delay'"),
            ((*kLogistic, "--simulate", "delay:1ms"), "nodes"),
            ((*kLogistic, "--simulate", "nodes:2 nodes:3"), "each word once"),
        ):
            with self.subTest(said):
                self.assertIn(said, self.trained("no", *words, expect=USAGE).stderr)
                self.assertFalse((self.dir / "no").exists())


if __name__ == "__main__":
    unittest.main()
