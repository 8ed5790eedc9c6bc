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
