"""`orrery data`: data sets described, generated with a known answer, split, converted and packed."""

import json
import unittest

from support import CommandLine, DATA, USAGE, kReal, ratings_text


class Data(CommandLine):
    def info(self, path, *words):
        return json.loads(self.run_orrery("data", "info", path, "--json", *words).stdout)

    def test_info_of_the_bundled_ratings(self):
        info = self.info(kReal / "anime.train.txt.gz")
        self.assertEqual(info["format"], "ratings")
        self.assertIs(info["gzip"], True)
        self.assertIn("anime", self.run_orrery("data", "info", kReal / "anime.train.txt.gz").stdout + "anime")

    def test_info_knows_each_format_by_its_content(self):
        for name, text, form in (("r", ratings_text(), "ratings"), ("s", "1 1:2 3:4\n-1 2:1\n", "svmlight"),
                                 ("d", "2\n3\n2\n1 1 1\n2 3 1\n", "docword"), ("c", "a,b\n1,2\n3,4\n", "csv"),
                                 ("m", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 3\n", "matrix-market"),
                                 ("e", "# nodes\n1 2\n3 4\n", "edges")):
            with self.subTest(form):
                self.assertEqual(self.info(self.write(name, text))["format"], form)

    def test_generation_is_a_function_of_its_plan(self):
        words = ("data", "generate", "ratings", "--users", "200", "--items", "100", "--ratings", "3000")
        for name, more in (("a", ()), ("b", ("--threads", "3")), ("c", ("--seed", "2"))):
            self.run_orrery(*words, "--out", self.dir / name, *more)
        self.assertEqual((self.dir / "a").read_bytes(), (self.dir / "b").read_bytes())
        self.assertNotEqual((self.dir / "a").read_bytes(), (self.dir / "c").read_bytes())
        self.assertEqual(len((self.dir / "a").read_text().splitlines()), 3000)

    def test_every_kind_is_generated_and_read_back(self):
        for kind, form in (("ratings", "ratings"), ("sparse", "svmlight"), ("corpus", "docword"), ("graph", "edges"), ("dense", "csv")):
            with self.subTest(kind):
                done = self.run_orrery("data", "generate", kind, "--out", self.dir / kind, "--json")
                self.assertTrue(json.loads(done.stdout))
                self.assertEqual(self.info(self.dir / kind)["format"], form)

    def test_counts_are_integers(self):
        for kind, count in (("corpus", "tokens"), ("graph", "edges")):
            answer = json.loads(self.run_orrery("data", "generate", kind, "--out", self.dir / kind, "--json").stdout)
            self.assertIsInstance(answer[count], int)
        data = self.ratings()
        self.train(data, self.dir / "r", "--iterations", "1")
        measured = json.loads(self.run_orrery("evaluate", "--model", self.dir / "r", data, "--json").stdout)
        self.assertIsInstance(measured["ratings"], int)
        self.assertIsInstance(measured["rmse"], float)
        lines = dict(line.split() for line in self.run_orrery("evaluate", "--model", self.dir / "r", data).stdout.splitlines())
        self.assertEqual(lines["ratings"], str(measured["ratings"]))
        self.assertEqual(float(lines["rmse"]), measured["rmse"])

    def test_a_model_comes_near_the_known_answer(self):
        words = ("data", "generate", "ratings", "--users", "500", "--items", "200", "--ratings", "40000", "--rank", "3", "--noise", "0.2")
        done = self.run_orrery(*words, "--out", self.dir / "train", "--test-share", "0.1", "--test-out", self.dir / "test", "--json")
        oracle = json.loads(done.stdout)["oracle_rmse_test"]
        self.train(self.dir / "train", self.dir / "r", "--valid", self.dir / "test", "--iterations", "60")
        value = self.record(self.dir / "r")["result"]["value"]
        self.assertLess(value, 1.6 * oracle)
        self.assertGreater(value, 0.95 * oracle)

    def test_a_split_loses_and_invents_nothing(self):
        data = self.ratings()
        for _ in range(2):
            self.run_orrery("data", "split", data, "--out", self.dir / "parts", "--test-share", "0.25", "--seed", "3")
        train, test = ((self.dir / "parts" / name).read_text().splitlines() for name in ("train.txt", "test.txt"))
        self.assertEqual(sorted(train + test), sorted(data.read_text().splitlines()))
        self.assertTrue(0.15 < len(test) / 1500 < 0.35)

    def test_conversion_keeps_the_content(self):
        self.run_orrery("data", "generate", "ratings", "--out", self.dir / "a", "--users", "100", "--items", "50", "--ratings", "900")
        self.run_orrery("data", "convert", self.dir / "a", "--to", "matrix-market", "--out", self.dir / "b")
        self.run_orrery("data", "convert", self.dir / "b", "--to", "ratings", "--out", self.dir / "c")
        values = lambda path: sorted(tuple(map(float, line.split())) for line in path.read_text().splitlines())
        self.assertEqual(len(values(self.dir / "a")), len(values(self.dir / "c")))
        self.assertEqual([row[2] for row in sorted(values(self.dir / "a"), key=lambda row: row[2])],
                         [row[2] for row in sorted(values(self.dir / "c"), key=lambda row: row[2])])

    def test_wrong_words(self):
        for words, says in ((("data",), "ACTION is missing"), (("data", "infos"), "did you mean 'info'?"),
                            (("data", "merge"), "unknown action"), (("data", "generate"), "KIND is missing"),
                            (("data", "generate", "rating", "--out", "x"), "did you mean 'ratings'?"),
                            (("data", "generate", "ratings"), "--out is missing")):
            self.assertIn(says, self.run_orrery(*words, expect=USAGE).stderr)
        data = self.ratings()
        self.run_orrery("data", "split", data, "--out", self.dir / "p", "--test-share", "1", expect=USAGE)
        self.run_orrery("data", "convert", data, "--to", "npy", "--out", self.dir / "p", expect=USAGE)
        self.run_orrery("data", "convert", data, "--to", "nyp", "--out", self.dir / "p", expect=USAGE)
        self.run_orrery("data", "info", self.dir / "nowhere", expect=DATA)
        self.run_orrery("data", "split", self.dir / "nowhere", "--out", self.dir / "p", expect=DATA)
        self.run_orrery("data", "convert", self.dir / "nowhere", "--to", "csv", "--out", self.dir / "p", expect=DATA)
        self.assertEqual([path.name for path in self.dir.iterdir()], ["train.txt"])


    def test_a_packed_corpus_says_the_same_as_the_one_it_was_made_from(self):
        text = self.write("t.txt", "The cat\tthe dog\n\ncat CAT\n")
        done = json.loads(self.run_orrery("data", "pack", text, "--out", self.dir / "p", "--json").stdout)
        self.assertEqual((done["from"], done["documents"], done["words"], done["tokens"]), ("text", 3, 3, 6))
        self.assertEqual(done["bytes"], (self.dir / "p").stat().st_size)
        packed, plain = self.info(self.dir / "p"), self.info(text)
        for key in ("documents", "words", "cells", "tokens", "checksum", "tokens_of_a_word"):
            self.assertEqual(packed[key], plain[key], key)
        self.assertEqual(packed["format"], "packed")
        self.assertEqual(packed["checksum"], done["checksum"])

    def test_a_corpus_that_is_none_is_not_packed(self):
        bad = self.write("d", "2\n3\n2\n1 1 1\n2 9 1\n")
        self.run_orrery("data", "pack", bad, "--out", self.dir / "p", expect=DATA)
        self.assertFalse((self.dir / "p").exists())
        self.run_orrery("data", "pack", bad, "--out", self.dir / "p", "--format", "csv", expect=USAGE)


if __name__ == "__main__":
    unittest.main()
