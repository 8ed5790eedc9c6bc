"""A whole run from one TOML file, and back."""

import tomllib
import unittest

from support import CommandLine, DATA, USAGE


class Config(CommandLine):
    def test_the_round_trip_gives_the_same_bits(self):
        data = self.ratings('it\'s "data".txt')
        held_out = self.ratings("test.txt", ratings=100)
        file = self.dir / "run.toml"
        words = ("--rank", "5", "--reg", "0.3", "--seed", "42", "--iterations", "4", "--valid", held_out, "--solver", "sgd",
                 "--workers", "6", "--valid-every", "2")
        self.train(data, self.dir / "a", *words, "--dump-config", file)
        self.run_orrery("train", "--config", file, "--out", self.dir / "b")
        self.assertEqual(self.checksum(self.dir / "a"), self.checksum(self.dir / "b"))
        again = self.dir / "again.toml"
        self.run_orrery("train", "--config", file, "--out", self.dir / "c", "--dump-config", again)
        a, c = tomllib.loads(file.read_text()), tomllib.loads(again.read_text())
        self.assertEqual(a.pop("out"), str(self.dir / "a"))
        self.assertEqual(c.pop("out"), str(self.dir / "c"))
        self.assertEqual(a, c)
        self.assertEqual(a["mf"]["rank"], 5)
        self.assertEqual(a["seed"], 42)

    def test_results_are_not_written_over_what_is_read(self):
        data = self.write("rows.0", "1 1:1\n-1 2:1\n1 1:2\n-1 2:2\n")
        before = data.read_bytes()
        self.run_orrery("train", "logistic", data, "--out", self.dir / "m")
        parts = self.dir / "rows.%r"
        for words in (("predict", "--model", self.dir / "m", data, "--out", data),
                      ("data", "convert", data, "--to", "csv", "--out", data),
                      ("train", "logistic", parts, "--out", self.dir / "r", "--dump-config", data),
                      ("train", "logistic", parts, "--solver", "sgd", "--out", self.dir / "r", "--plan-out", data, "--overwrite")):
            with self.subTest(words):
                self.assertIn("is what the command reads", self.run_orrery(*words, expect=USAGE).stderr)
                self.assertEqual(data.read_bytes(), before)

    def test_results_are_not_written_into_a_model(self):
        data = self.ratings()
        self.train(data, self.dir / "m", "--iterations", "1", "--schedule", "data", "--plan-out", self.dir / "m" / "plan.bin")
        before = self.checksum(self.dir / "m")
        init = ("--init", self.dir / "m", "--schedule", "data", "--out", self.dir / "r")
        for words in (("predict", "--model", self.dir / "m", data, "--out", self.dir / "m" / "run.json"),
                      ("predict", "--model", self.dir / "m" / "model", data, "--out", min((self.dir / "m" / "model").iterdir())),
                      ("train", "mf", data, *init, "--dump-config", self.dir / "m" / "model" / "x"),
                      ("train", "mf", data, *init, "--plan-out", self.dir / "m" / "metrics.jsonl", "--overwrite")):
            with self.subTest(words):
                self.assertIn("is a file of the run or model in", self.run_orrery(*words, expect=USAGE).stderr)
        self.assertEqual(before, self.checksum(self.dir / "m"))
        self.run_orrery("predict", "--model", self.dir / "m", data, "--out", self.dir / "m" / "predictions")
        done = self.train(data, self.dir / "m", "--schedule", "data", "--plan-in", self.dir / "m" / "plan.bin", "--overwrite",
                          expect=USAGE)
        self.assertIn("belongs to the run that --overwrite removes", done.stderr)

    def test_a_run_that_is_refused_leaves_no_config(self):
        self.train(self.write("bad.txt", "u1 i1 much\n"), self.dir / "r", "--dump-config", self.dir / "c", expect=DATA)
        self.assertFalse((self.dir / "c").exists())

    def test_a_config_repeats_a_run_that_wrote_its_plan(self):
        words = ("--iterations", "2", "--schedule", "data", "--plan-out", self.dir / "plan", "--dump-config", self.dir / "c")
        self.train(self.ratings(), self.dir / "r", *words)
        self.run_orrery("train", "--config", self.dir / "c", "--out", self.dir / "again")
        self.assertEqual(self.checksum(self.dir / "r"), self.checksum(self.dir / "again"))

    def test_a_plan_has_a_file_of_its_own(self):
        for words in (("--dump-config", self.dir / "x"), ()):
            plan = self.dir / ("x" if words else "r")
            done = self.train(self.ratings(), self.dir / "r", "--schedule", "data", "--plan-out", plan, *words, expect=USAGE)
            self.assertIn("is also what", done.stderr)
            self.assertFalse((self.dir / "x").exists() or (self.dir / "r").exists())

    def test_a_plan_of_no_iteration_is_said_to_be_empty(self):
        done = self.train(self.ratings(), self.dir / "r", "--schedule", "data", "--iterations", "0", "--plan-out", self.dir / "p")
        self.assertIn("no iteration was run by this process", done.stderr)

    def test_a_plan_goes_to_a_mere_name(self):
        data = self.write("rows.0", "1 1:1\n-1 2:1\n1 1:2\n-1 2:2\n")
        for words in (("--out", "r", "--plan-out", "my.plan"), ("--out", "s", "--plan-in", "my.plan")):
            self.run_orrery("train", "logistic", data, "--solver", "sgd", "--iterations", "2", *words, cwd=self.dir)

    def test_a_config_is_not_written_over_what_is_read(self):
        data, before = self.ratings(), self.ratings().read_bytes()
        again = self.dir / "link"
        again.symlink_to(data)
        for words in ((), ("--valid", data)):
            done = self.train(data, self.dir / "r", *words, "--dump-config", again, expect=USAGE)
            self.assertIn("is what the command reads", done.stderr)
            self.assertEqual(data.read_bytes(), before)
            self.assertFalse((self.dir / "r").exists())

    def test_a_file_that_spells_out_everything_is_taken_back_by_every_algorithm(self):
        edges = self.write("graph.txt", "0 1\n1 2\n2 0\n")
        rows = self.write("rows.svm", "1 1:1 2:0.5\n-1 1:0.2 3:1\n1 2:1\n-1 3:0.4\n" * 20)
        text = self.write("corpus.txt", "red green blue\nblue green sky\nred rose\n" * 10)
        for algorithm, data in (("mf", self.ratings()), ("pagerank", edges), ("logistic", rows), ("softmax", rows),
                                ("lasso", rows), ("lda", text)):
            with self.subTest(algorithm):
                file = self.dir / f"{algorithm}.toml"
                self.run_orrery("train", algorithm, data, "--iterations", "2", "--out", self.dir / algorithm, "--dump-config",
                                file)
                again = self.dir / f"{algorithm}-again"
                # Defaults that are spelled out are no wishes: no goal is missed, no option is said to have no effect.
                done = self.run_orrery("train", "--config", file, "--out", again)
                self.assertNotIn("--plan", done.stderr)
                self.assertEqual(self.checksum(self.dir / algorithm), self.checksum(again))

    def test_a_staleness_alone_is_taken_back_as_what_it_meant(self):
        rows = self.write("rows.svm", "1 1:1 2:0.5\n-1 1:0.2 3:1\n1 2:1\n-1 3:0.4\n" * 20)
        file = self.dir / "run.toml"
        self.run_orrery("train", "logistic", rows, "--solver", "sgd", "--staleness", "2", "--iterations", "1", "--out",
                        self.dir / "a", "--dump-config", file)
        self.assertEqual(tomllib.loads(file.read_text())["consistency"], "ssp")
        self.run_orrery("train", "--config", file, "--out", self.dir / "b")
        self.assertEqual(self.record(self.dir / "b")["consistency"], "ssp")

    def test_the_command_line_wins(self):
        data = self.ratings()
        file = self.write("run.toml", f'algorithm = "mf"\ndata = "{data}"\niterations = 3\nseed = 9\n[mf]\nrank = 4\n')
        self.run_orrery("train", "--config", file, "--out", self.dir / "r", "--rank", "6", "--seed", "3")
        parameters = self.record(self.dir / "r")["parameters"]
        self.assertEqual((parameters["rank"], parameters["seed"], parameters["iterations"]), (6, 3, 3))

    def refused(self, text, says, expect=USAGE):
        file = self.write("run.toml", text)
        done = self.run_orrery("train", "mf", self.ratings(), "--config", file, "--out", self.dir / "r", expect=expect)
        self.assertIn(says, done.stderr)
        self.assertIn(f"{file}", done.stderr)
        self.assertFalse((self.dir / "r").exists())

    def test_unknown_keys_are_suggested(self):
        self.refused("itreations = 3\n", "did you mean 'iterations'?")
        self.refused("[mf]\nrnak = 3\n", "did you mean 'rank'?")
        self.refused("[lda]\ntopics = 3\n", "[lda]")

    def test_bad_values_name_their_line(self):
        self.refused("seed = 1\niterations = -3\n", "run.toml:2:")
        self.refused('[mf]\nsolver = "sdg"\n', "run.toml:2:")

    def test_what_is_no_toml(self):
        self.refused("seed 1\n", "run.toml:1:", DATA)
        self.refused("seed = \n", "run.toml:1:", DATA)
        self.refused('valid = "open\n', "run.toml:1:", DATA)
        self.refused("seed = 1\nseed = 2\n", "again", DATA)
        self.refused("seed = [1, 2]\n", "run.toml:1:", DATA)

    def test_a_file_that_is_not_there(self):
        done = self.train(self.ratings(), self.dir / "r", "--config", self.dir / "nowhere.toml", expect=DATA)
        self.assertIn("nowhere.toml", done.stderr)

    def test_calls_are_not_part_of_a_run(self):
        self.refused("resume = true\n", "resume")
        file = self.dir / "run.toml"
        self.train(self.ratings(), self.dir / "r", "--overwrite", "--iterations", "1", "--dump-config", file)
        self.assertNotIn("overwrite", file.read_text())


if __name__ == "__main__":
    unittest.main()
