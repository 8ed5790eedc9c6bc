"""Wrong words: every usage error is exit code 2, says what was expected, and suggests the nearest right word."""

import json
import os
import subprocess
import unittest

from support import CommandLine, DATA, DONE, NOT_REACHED, OUTPUT, USAGE, kBinary


class Usage(CommandLine):
    def refused(self, *words, says):
        done = self.run_orrery(*words, expect=USAGE)
        self.assertIn(says, done.stderr)
        self.assertTrue(done.stderr.startswith("orrery: "), done.stderr)
        self.assertEqual(done.stdout, "")
        return done

    def test_no_command_prints_help(self):
        self.assertIn("Usage: orrery COMMAND", self.run_orrery(expect=USAGE).stderr)

    def test_help_and_version(self):
        self.assertIn("recommend", self.run_orrery("--help").stdout)
        self.assertRegex(self.run_orrery("--version").stdout, r"^orrery \d+\.\d+\.\d+\n$")

    def test_help_of_a_command_is_that_of_the_command(self):
        self.assertEqual(self.run_orrery("help", "train").stdout, self.run_orrery("train", "--help").stdout)
        self.assertEqual(self.run_orrery("help", "train", "lasso").stdout, self.run_orrery("train", "lasso", "--help").stdout)
        self.assertIn("orrery --help", self.run_orrery("help", "fly", expect=USAGE).stderr)

    def test_every_command_has_help(self):
        for command in ("train", "predict", "evaluate", "recommend", "infer", "verify", "topology", "list", "describe"):
            with self.subTest(command):
                self.assertIn(f"Usage: orrery {command}", self.run_orrery(command, "--help").stdout)

    def test_help_of_an_algorithm_lists_its_parameters(self):
        text = self.run_orrery("train", "mf", "--help").stdout
        for option in ("--rank", "--reg", "--solver", "--seed", "--checkpoint-every", "--overwrite"):
            self.assertIn(option, text)

    def test_unknown_command_is_suggested(self):
        self.refused("trian", says="did you mean 'train'?")

    def test_unknown_algorithm_is_suggested(self):
        self.refused("train", "mff", "x", "--out", "y", says="did you mean 'mf'?")
        self.refused("describe", "mv", says="did you mean 'mf'?")

    def test_unknown_option_is_suggested(self):
        data = self.ratings()
        self.refused("train", "mf", data, "--out", self.dir / "r", "--rnak", "8", says="did you mean '--rank'?")
        self.refused("train", "mf", data, "--out", self.dir / "r", "--seeed=8", says="did you mean '--seed'?")
        self.refused("list", "--jsn", says="did you mean '--json'?")
        self.assertFalse((self.dir / "r").exists())

    def test_options_of_later_issues_are_unknown(self):
        data = self.ratings()
        for option in ("--bandwidth",):
            self.refused("train", "mf", data, "--out", self.dir / "r", option, "1", says="unknown option")

    def test_values_out_of_range(self):
        data = self.ratings()
        for words in (("--threads", "0"), ("--threads", "x"), ("--rank", "-1"), ("--rank", "0"), ("--reg", "-0.5"),
                      ("--reg", "nan"), ("--seed", "1.5"), ("--iterations", "-3"), ("--max-seconds", "0"),
                      ("--workers", "0"), ("--consistency", "bps"), ("--simd", "avx3"), ("--memory-limit", "lots"),
                      ("--topology", "numa:0"), ("--solver", "sdg"), ("--format", "ratnigs"),
                      ("--valid-every", "0"), ("--checkpoint-every", "-1"), ("--seed", "99999999999999999999999")):
            with self.subTest(words):
                done = self.train(data, self.dir / "r", *words, expect=USAGE)
                self.assertIn(words[0].lstrip("-"), done.stderr)
                self.assertFalse((self.dir / "r").exists())

    def test_a_value_that_is_missing(self):
        data = self.ratings()
        start = ("train", "mf", data, "--out", self.dir / "r")
        self.refused(*start, "--seed", says="--seed needs a value (integer: of all random numbers), got nothing")
        self.refused(*start, "--rank", says="--rank needs a value (integer [1, 4096]: number of factors")
        self.refused(*start, "--rank=", "5", says="--rank needs a value")
        self.refused(*start, "--config", "--seed", "1", says="--config needs a value")
        self.refused(*start, "--solver", says="--solver needs a value (choice sgd|als: ")
        self.refused("train", "mf", data, "--out", "--seed", "3",
                     says="--out needs a value (text: directory of the run), got option '--seed'")
        self.refused("data", "info", data, "--format", says="--format needs a value")
        self.refused("recommend", "--model", self.dir, "--user", says="--user needs a value")

    def test_workers_out_of_proportion_to_the_data(self):
        data, out = self.ratings(), self.dir / "r"
        done = self.train(data, out, "--workers", "5000", expect=USAGE)
        self.assertIn("25000000 units of work in an iteration, for 1500 ratings", done.stderr)
        self.assertIn("expected at most 1024 workers", done.stderr)
        self.assertFalse(out.exists())
        self.train(data, out, "--workers", "300", "--iterations", "1", timeout=20)

    def test_idle_threads_are_a_warning_only_to_who_chose_a_number(self):
        data = self.ratings()  # so few that there is one worker
        for words, warned in (((), False), (("--threads", "3"), True), (("--workers", "1"), os.cpu_count() > 1)):
            with self.subTest(words):
                done = self.train(data, self.dir / "r", "--iterations", "1", "--overwrite", *words)
                self.assertEqual("more threads" in done.stderr, warned, done.stderr)

    def test_missing_and_surplus_arguments(self):
        data = self.ratings()
        self.refused("train", "mf", says="DATA is missing")
        self.refused("train", says="ALGORITHM is missing")
        self.refused("train", "mf", data, says="--out is missing")
        self.refused("train", "mf", data, "more", "--out", self.dir / "r", says="surplus argument")
        self.refused("predict", data, "--out", self.dir / "p", says="--model is missing")
        self.refused("recommend", "--model", self.dir, says="--user is missing")

    def test_an_option_twice(self):
        start = ("train", "mf", self.ratings(), "--out", self.dir / "r")
        self.refused(*start, "--seed", "1", "--seed=2", says="--seed: expected one value, got two: '1' and '2'")
        self.refused(*start, "--out", "s", says="--out: expected one value, got two: ")
        self.refused(*start, "--clip", "--no-clip", says="--clip and --no-clip exclude each other")
        self.run_orrery("list", "--json", "--json")

    def test_staleness_and_consistency_must_agree(self):
        data = self.ratings()
        self.train(data, self.dir / "r", "--consistency", "bsp", "--staleness", "1", expect=USAGE)
        self.train(data, self.dir / "r", "--consistency", "async", "--staleness", "1", expect=USAGE)
        self.train(data, self.dir / "alone", "--staleness", "1", "--iterations", "2")
        self.assertEqual(self.record(self.dir / "alone")["consistency"], "ssp")
        self.assertEqual(self.record(self.dir / "alone")["staleness"], 1)

    def test_a_schedule_that_the_algorithm_lacks(self):
        done = self.train(self.ratings(), self.dir / "r", "--schedule", "scheduled", expect=USAGE)
        self.assertIn("rotation", done.stderr)

    def test_groups_that_make_no_sense(self):
        data = self.ratings()
        start = ("--out", self.dir / "r")
        for words, says in ((("mf", data, "--groups", "0"), "groups"),
                            (("mf", data, "--groups", "3", "--workers", "8"), "a multiple of 3 workers, got 8"),
                            (("mf", data, "--groups", "64"), "a multiple of 64 workers"),
                            (("mf", data, "--groups", "2", "--schedule", "data"), "got --schedule data"),
                            (("mf", data, "--groups", "2", "--schedule", "rotation"), "got --schedule rotation"),
                            (("mf", data, "--groups", "2", "--solver", "als"), "solver als does not rotate"),
                            (("mf", data, "--groups", "2", "--consistency", "async"), "expected --consistency bsp"),
                            (("mf", data, "--schedule", "hybrid"), "say how many groups"),
                            (("mf", data, "--clocks", "4"), "--clocks needs"),
                            (("lda", data, "--groups", "2", "--start", "sequential"), "every group would number its topics"),
                            (("logistic", data, "--groups", "2"), "nothing rotates in logistic"),
                            (("lasso", data, "--groups", "2"), "nothing rotates in lasso")):
            with self.subTest(says):
                self.refused("train", *words, *start, says=says)
                self.assertFalse((self.dir / "r").exists())

    def test_wrong_words_are_said_before_what_stands_in_out(self):
        data, out = self.ratings(), self.dir / "r"
        self.train(data, out, "--iterations", "1", "--rank", "4")
        for words, says in ((("--topology", "x"), "--topology: "), (("--simd", "avx3"), "--simd: "),
                            (("--format", "ratnigs"), "unknown format 'ratnigs'"),
                            (("--format", "docword"), "not from docword"),
                            (("--init", out, "--rank", "8"), "--init: the model has rank 4, this run has rank 8")):
            with self.subTest(words):
                self.refused("train", "mf", data, "--out", out, *words, says=says)
        done = self.train(data, out, "--init", self.dir / "nowhere", expect=DATA)
        self.assertIn("nowhere: holds no model", done.stderr)

    def test_options_that_do_not_apply_to_the_data(self):
        ratings, table = self.ratings(), self.write("table.csv", "1.5,2.5,3.5\n4.5,5.5,6.5\n")
        edges, words = self.write("graph.txt", "1 2\n2 3\n"), self.write("words.txt", "one\ntwo\n")
        sparse = self.write("rows.txt", "1 1:0.5 2:0.25\n-1 2:0.5\n")
        for data, option, value in ((ratings, "--label", "1"), (ratings, "--vocab", words), (edges, "--label", "1"),
                                    (edges, "--vocab", words), (table, "--vocab", words), (sparse, "--label", "1"),
                                    (sparse, "--vocab", words)):
            with self.subTest((data, option)):
                self.refused("data", "info", data, option, value, says=f"{option}: expected data of format ")
        self.run_orrery("data", "info", table, "--label", "3")
        convert = lambda data, to: ("data", "convert", data, "--to", to, "--out", self.dir / "out")
        self.refused(*convert(ratings, "matrix-market"), "--label", "1", says="--label: expected data of format csv, npy")
        self.refused(*convert(ratings, "matrix-market"), "--vocab", words, says="--vocab: expected data of format")
        self.refused(*convert(table, "npy"), "--label", "1", says="--label: expected --to svmlight, got --to npy")
        self.refused(*convert(sparse, "csv"), "--vocab", words, says="--vocab: expected data of format docword, text")
        self.assertFalse((self.dir / "out").exists())
        self.run_orrery(*convert(table, "svmlight"), "--label", "1")

    def test_resume_and_overwrite_exclude_each_other(self):
        self.train(self.ratings(), self.dir / "r", "--resume", "--overwrite", expect=USAGE)

    def test_out_that_holds_a_run(self):
        data = self.ratings()
        self.train(data, self.dir / "r", "--iterations", "2")
        first = self.checksum(self.dir / "r")
        self.assertIn("holds a run", self.train(data, self.dir / "r", expect=USAGE).stderr)
        self.assertIn("finished", self.train(data, self.dir / "r", "--resume", expect=USAGE).stderr)
        self.assertEqual(self.checksum(self.dir / "r"), first)
        self.train(data, self.dir / "r", "--overwrite", "--iterations", "3")
        self.assertNotEqual(self.checksum(self.dir / "r"), first)

    def test_a_run_that_does_not_fit(self):
        done = self.train(self.ratings(), self.dir / "r", "--memory-limit", "1K", expect=USAGE)
        self.assertIn("--memory-limit", done.stderr)
        self.assertFalse((self.dir / "r").exists())
        done = self.train(self.ratings(), self.dir / "r", "--rank", "4096", "--memory-limit", "100K", expect=USAGE)
        self.assertFalse((self.dir / "r").exists())

    def test_ranks_that_do_not_know_each_other_are_refused(self):
        for variable in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
            environment = dict(os.environ, **{variable: "2"})
            done = self.train(self.ratings(), self.dir / "r", expect=USAGE, env=environment)
            self.assertIn("started as 2 ranks", done.stderr)
            self.assertFalse((self.dir / "r").exists())
        environment = dict(os.environ, OMPI_COMM_WORLD_SIZE="1")
        self.train(self.ratings(), self.dir / "r", "--iterations", "1", env=environment)

    def test_a_flag_with_a_bad_value(self):
        self.refused("train", "mf", self.ratings(), "--out", str(self.dir / "run"), "--clip=maybe",
                     says="--clip: expected true or false, got 'maybe'")

    def test_alternating_least_squares_needs_whole_half_steps(self):
        self.refused_after_loading("--solver", "als", "--staleness", "2", says="needs --consistency bsp")

    def test_a_diverging_rate_is_the_callers_fault(self):
        self.refused_after_loading("--rate", "1e10", says="a smaller --rate helps")
        # What it left is of no use to anybody, so the next try needs no --overwrite.
        self.assertFalse((self.dir / "run/model").exists())
        done = self.train(self.ratings(), self.dir / "run", "--iterations", "1")
        self.assertIn("replacing what a run that came to nothing", done.stderr)
        self.assertEqual(len(self.metrics(self.dir / "run")), 1)

    def refused_after_loading(self, *words, says):
        done = self.run_orrery("train", "mf", self.ratings(), "--out", str(self.dir / "run"), *words, expect=USAGE)
        self.assertIn(says, done.stderr)

    def test_no_output_may_be_the_input_or_another_output(self):
        self.run_orrery("data", "split", self.ratings(), "--out", str(self.dir / "parts"))
        before = (self.dir / "parts/train.txt").read_text()
        self.refused("data", "split", str(self.dir / "parts/train.txt"), "--out", str(self.dir / "parts"), says="is the file to be split")
        self.assertEqual((self.dir / "parts/train.txt").read_text(), before)
        self.refused("data", "generate", "ratings", "--out", str(self.dir / "g"), "--users", "100", "--items", "50",
                     "--ratings", "1000", "--test-share", "0.5", "--test-out", str(self.dir / "g"), says="are both")

    def test_a_stranger_gets_what_all_like_and_is_told_so(self):
        self.run_orrery("train", "mf", self.ratings(), "--out", str(self.dir / "run"))
        done = self.run_orrery("recommend", "--model", str(self.dir / "run"), "--user", "nobody", "--top", "3")
        self.assertIn("'nobody' has no training rating", done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 3)


class Goals(CommandLine):
    def test_a_target_out_of_reach_is_exit_code_1(self):
        out = self.dir / "r"
        self.train(self.ratings(), out, "--target", "1e-9", "--iterations", "2", expect=NOT_REACHED)
        self.assertEqual(self.record(out)["result"]["stopped_by"], "iterations")

    def test_a_target_that_is_reached(self):
        out = self.dir / "r"
        self.train(self.ratings(), out, "--target", "1e9")
        self.assertEqual(self.record(out)["result"]["stopped_by"], "target")

    def test_a_tolerance_out_of_reach_is_exit_code_1(self):
        self.train(self.ratings(), self.dir / "r", "--tolerance", "1e-14", "--iterations", "3", expect=NOT_REACHED)

    def test_a_tolerance_that_is_reached(self):
        out = self.dir / "r"
        self.train(self.ratings(), out, "--tolerance", "0.5", "--iterations", "200")
        self.assertEqual(self.record(out)["result"]["stopped_by"], "tolerance")

    def test_max_seconds_stops_and_can_be_repeated_by_iterations(self):
        data, out = self.ratings(), self.dir / "r"
        self.train(data, out, "--max-seconds", "0.05", "--iterations", "1000000")
        result = self.record(out)["result"]
        self.assertEqual(result["stopped_by"], "seconds")
        self.train(data, self.dir / "again", "--iterations", result["iterations"])
        self.assertEqual(self.checksum(self.dir / "again"), result["model_checksum"])


class StandardOutput(CommandLine):
    def test_a_reader_that_has_seen_enough(self):
        process = self.start("describe", "mf", stdout=subprocess.PIPE)
        process.stdout.close()
        process.stdout = None
        process.wait(timeout=20)
        self.assertIn(process.returncode, (DONE,))

    def test_a_full_device(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([kBinary, "list"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=20)
        self.assertEqual(done.returncode, OUTPUT, done.stderr)

    def test_quiet_says_nothing(self):
        done = self.train(self.ratings(), self.dir / "r", "--quiet", "--iterations", "2", "--threads", "1")
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_progress_can_be_asked_for(self):
        done = self.train(self.ratings(), self.dir / "r", "--progress", "on", "--iterations", "2")
        self.assertRegex(done.stderr, r"iteration \d+/2|loading")
        done = self.train(self.ratings(), self.dir / "s", "--progress", "off", "--iterations", "2")
        self.assertNotIn("iteration 1/2", done.stderr)

    def test_json_is_json(self):
        names = [entry["name"] for entry in json.loads(self.run_orrery("list", "--json").stdout)]
        self.assertIn("mf", names)
        described = json.loads(self.run_orrery("describe", "mf", "--json").stdout)
        self.assertLessEqual({"objective", "reference", "parameters", "options", "schedules"}, set(described))
        json.loads(self.run_orrery("topology", "--json").stdout)
        json.loads(self.run_orrery("topology", "--synthetic", "numa:2 core:4 pu:2", "--json").stdout)


if __name__ == "__main__":
    unittest.main()
