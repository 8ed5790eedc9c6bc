"""Runs that are killed, interrupted or damaged, and go on: the same bits as the run that was left alone (design,
sections 5 and 11)."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from support import (CommandLine, INTERRUPTED, OUTPUT, USAGE, checkpoints, kBinary, line_count)

kIterations = 40
kShape = dict(users=120, items=90, ratings=5000)
kWords = ("--iterations", kIterations, "--rank", "16", "--workers", "8", "--checkpoint-every", "1", "--quiet")


class Killed(CommandLine):
    def test_50_kills_at_random_moments_resume_to_the_same_bits(self):
        data, whole = self.ratings(**kShape), self.dir / "whole"
        self.train(data, whole, *kWords)
        expected, lines = self.checksum(whole), self.metrics(whole)
        draw = random.Random(int(os.environ.get("ORRERY_TEST_SEED", "7")))
        landed = 0
        for attempt in range(50):
            out = self.dir / f"killed-{attempt}"
            process = self.start("train", "mf", data, "--out", out, *kWords, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # An iteration drawn at random, and a moment within it: whatever the machine's load, kills hit all of the run.
            line, pause = draw.randrange(1, kIterations), draw.random() * 0.004
            self.wait_for(lambda: line_count(out / "metrics.jsonl") >= line or process.poll() is not None, "that iteration")
            until = time.monotonic() + pause
            while time.monotonic() < until:
                pass
            process.kill()
            process.wait()
            finished = process.returncode == 0
            landed += bool(checkpoints(out)) and not finished
            if finished:
                continue
            with self.subTest(attempt=attempt, line=line):
                self.train(data, out, *kWords, "--resume", "--threads", draw.choice((1, 2, 3)))
                self.assertEqual(self.checksum(out), expected)
                stripped = [self.without_times(point) for point in self.metrics(out)]
                self.assertEqual(stripped, [self.without_times(point) for point in lines])
                self.assert_no_temporaries(out)
            shutil.rmtree(out)
        self.assertGreaterEqual(landed, 30, "too few kills landed between the first checkpoint and the end")

    @staticmethod
    def without_times(point):
        return {key: value for key, value in point.items() if key not in ("seconds", "wait_seconds")}

    def test_items_on_a_table_go_on_to_the_same_bits(self):
        data, out = self.ratings(**kShape), self.dir / "r"
        words = ("--schedule", "data", "--clocks", "4", "--checkpoint-every", "2")
        process = self.start("train", "mf", data, "--out", out, *words, "--iterations", "100000000",
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(lambda: checkpoints(out), "a checkpoint", process)
        process.kill()
        process.wait()
        ends = ("--iterations", int(checkpoints(out)[-1].stem.split("-")[1]) + 3)
        self.train(data, out, *words, *ends, "--resume", "--threads", "1")
        self.train(data, self.dir / "whole", *words, *ends)
        self.assertEqual(self.checksum(out), self.checksum(self.dir / "whole"))

    def test_killed_before_the_first_checkpoint_starts_anew_and_says_so(self):
        data, out = self.ratings(**kShape), self.dir / "r"
        words = ("--iterations", "30", "--checkpoint-every", "1000000")
        self.train(data, self.dir / "whole", *words)
        process = self.start("train", "mf", data, "--out", out, "--iterations", "100000000", *words[2:],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(lambda: line_count(out / "metrics.jsonl") >= 3, "third iteration", process)
        process.kill()
        process.wait()
        self.assert_no_model(out)
        done = self.train(data, out, *words, "--resume")
        self.assertIn("starting anew", done.stderr)
        self.assertTrue(any("starting anew" in text for text in self.record(out)["warnings"]))
        self.assertEqual(self.checksum(out), self.checksum(self.dir / "whole"))


class Unfinished(CommandLine):
    """A run that was killed late, as material."""

    def setUp(self):
        super().setUp()
        self.data = self.ratings(**kShape)
        self.whole, self.out = self.dir / "whole", self.dir / "killed"
        self.train(self.data, self.whole, *kWords)
        process = self.start("train", "mf", self.data, "--out", self.out, *kWords[2:], "--iterations", "100000000",
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(lambda: len(checkpoints(self.out)) >= 2 and line_count(self.out / "metrics.jsonl") >= 5,
                      "two checkpoints", process)
        process.send_signal(signal.SIGSTOP)
        process.kill()
        process.wait()
        self.files = checkpoints(self.out)
        self.assertGreaterEqual(len(self.files), 2)
        self.newest = int(self.files[-1].stem.split("-")[1])

    def resumed(self, *words, expect=0):
        # Far enough beyond the newest checkpoint, whichever that is.
        return self.train(self.data, self.out, "--iterations", self.newest + 3, *kWords[2:-1], *words, "--resume", expect=expect)

    def reference(self):
        out = self.dir / "reference"
        self.train(self.data, out, "--iterations", self.newest + 3, *kWords[2:])
        return self.checksum(out)

    def check_previous_is_used(self, says):
        done = self.resumed()
        self.assertIn("checkpoint not used", done.stderr)
        self.assertIn(self.files[-1].name, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertTrue(any("checkpoint not used" in text for text in self.record(self.out)["warnings"]))
        self.assertEqual(self.checksum(self.out), self.reference())

    def test_a_truncated_checkpoint_is_refused_and_the_previous_one_used(self):
        whole = self.files[-1].read_bytes()
        self.files[-1].write_bytes(whole[: len(whole) * 2 // 3])
        self.check_previous_is_used("truncated")

    def test_a_corrupted_checkpoint_is_refused_and_the_previous_one_used(self):
        content = bytearray(self.files[-1].read_bytes())
        content[len(content) // 2] ^= 1
        self.files[-1].write_bytes(bytes(content))
        self.check_previous_is_used("corrupted")

    def test_a_foreign_checkpoint_is_refused_and_the_previous_one_used(self):
        other = self.dir / "other"
        self.train(self.data, other, "--iterations", "3", *kWords[2:], "--seed", "99")
        shutil.copy(checkpoints(other)[-1], self.files[-1])
        self.check_previous_is_used("seed")

    def test_with_no_usable_checkpoint_it_starts_anew(self):
        for file in self.files:
            file.write_bytes(b"")
        done = self.resumed()
        self.assertIn("starting anew", done.stderr)
        self.assertEqual(self.checksum(self.out), self.reference())

    def test_what_changes_bits_is_refused_with_the_reason(self):
        for words, says in ((("--seed", "5"), "seed: 1 there, 5 here"), (("--reg", "0.123"), "reg"), (("--workers", "3"), "workers"),
                            (("--rank", "8"), "rank: 16 there, 8 here")):
            with self.subTest(words):
                plain = [word for word in map(str, kWords[2:-1])]
                if words[0] in plain:
                    place = plain.index(words[0])
                    del plain[place:place + 2]
                done = self.train(self.data, self.out, "--iterations", "50", *plain, *words, "--resume", expect=USAGE)
                self.assertIn(says, done.stderr)
        other = self.ratings("other.txt", **dict(kShape, seed=4))
        done = self.train(other, self.out, "--iterations", "50", *kWords[2:-1], "--resume", expect=USAGE)
        self.assertIn("data", done.stderr)

    def test_what_changes_no_bits_is_free(self):
        self.resumed("--threads", "3", "--topology", "numa:2 core:2 pu:1", "--valid-every", "2")
        self.assertEqual(self.checksum(self.out), self.reference())

    def test_a_run_that_is_not_resumed_is_refused(self):
        done = self.train(self.data, self.out, *kWords, expect=USAGE)
        self.assertIn("--resume", done.stderr)


class Interrupted(CommandLine):
    def begin(self, *words, iterations="100000000"):
        self.data, self.out = self.ratings(**kShape), self.dir / f"r{len(list(self.dir.iterdir()))}"
        process = self.start("train", "mf", self.data, "--out", self.out, "--iterations", iterations, *words)
        self.wait_for(lambda: line_count(self.out / "metrics.jsonl") >= 3, "third iteration", process)
        return process

    def test_ctrl_c_and_sigterm_write_a_checkpoint_and_say_how_to_go_on(self):
        # An iteration of several clocks is finished, too: a stop within it must not show.
        several = ("--schedule", "data", "--clocks", "5")
        for number, words in ((signal.SIGINT, ()), (signal.SIGTERM, ()), (signal.SIGINT, several)):
            with self.subTest(number, words=words):
                process = self.begin("--checkpoint-every", "1000000", "--overwrite", *words)
                process.send_signal(number)
                _, errors = process.communicate(timeout=60)
                self.assertEqual(process.returncode, INTERRUPTED, errors)
                self.assertIn("--resume", errors)
                self.assertNotIn("--overwrite", errors.split("go on with:")[1])
                self.assertEqual(len(checkpoints(self.out)), 1)
                self.assert_no_model(self.out)
                done = self.record(self.out)["result"]["iterations"]
                self.assertEqual(self.record(self.out)["result"]["stopped_by"], "interrupt")
                more = done + 2
                self.train(self.data, self.out, *words, "--iterations", more, "--checkpoint-every", "1000000", "--resume")
                self.train(self.data, self.dir / "whole", *words, "--iterations", more, "--overwrite")
                evaluated = [line["iteration"] for line in self.metrics(self.out)]
                self.assertEqual(evaluated, list(range(1, more + 1)))
                self.assertEqual(self.checksum(self.out), self.checksum(self.dir / "whole"))

    def test_without_checkpoints_it_says_that_nothing_is_kept(self):
        process = self.begin()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertIn("checkpoints were off", errors)
        self.assert_no_model(self.out)

    def test_while_loading_it_stops_without_a_trace_and_says_what_it_was_doing(self):
        text = self.ratings(users=300, items=200, ratings=20000).read_bytes()
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                pipe, out = self.dir / f"pipe{number}", self.dir / "nested" / "r"
                os.mkfifo(pipe)
                process = self.start("train", "mf", pipe, "--format", "ratings", "--out", out)
                # It reads from the pipe until we close it: the signal surely comes while it is loading.
                with open(pipe, "wb") as data:
                    data.write(text[: len(text) // 2])
                    data.flush()
                    self.wait_for(lambda: out.exists(), "run directory", process)
                    process.send_signal(number)
                    data.write(text[len(text) // 2 :])
                _, errors = process.communicate(timeout=20)
                self.assertEqual(process.returncode, INTERRUPTED, errors)
                self.assertIn("orrery: interrupted, stopping", errors)
                self.assertIn(f"interrupted while loading {pipe}; nothing was written", errors)
                self.assertNotIn("finishing the iteration", errors)
                self.assertFalse((self.dir / "nested").exists())

    def test_an_older_run_survives_an_overwriting_one_that_is_interrupted_while_loading(self):
        out = self.dir / "r"
        self.train(self.ratings(), out, "--iterations", "2")
        before, pipe = self.checksum(out), self.dir / "pipe"
        os.mkfifo(pipe)
        process = self.start("train", "mf", pipe, "--format", "ratings", "--out", out, "--overwrite")
        with open(pipe, "wb") as data:
            process.send_signal(signal.SIGINT)
            data.write(b"a b 1\n" * 100)
        _, errors = process.communicate(timeout=20)
        self.assertEqual(process.returncode, INTERRUPTED, errors)
        self.assertEqual(self.checksum(out), before)

    def test_a_second_signal_ends_it_at_once(self):
        process = self.begin()
        # Both are pending when it goes on: the second comes before the clock can end.
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=20)
        self.assertIn(process.returncode, (INTERRUPTED, -signal.SIGTERM, -signal.SIGINT))
        self.assertFalse(json.loads((self.out / "run.json").read_text()).get("result"))


class Together(CommandLine):
    def test_two_processes_on_one_out(self):
        data, out = self.ratings(**kShape), self.dir / "r"
        process = self.start("train", "mf", data, "--out", out, "--iterations", "100000000", stderr=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL)
        self.wait_for(lambda: line_count(out / "metrics.jsonl") >= 2, "second iteration", process)
        for words in ((), ("--overwrite",), ("--resume",)):
            done = self.train(data, out, *words, expect=USAGE)
            self.assertIn("in use", done.stderr)
        self.assertIsNone(process.poll())
        process.kill()
        process.wait()
        self.train(data, out, "--overwrite", "--iterations", "2")

    def test_many_at_once_leave_one_whole_run(self):
        data, out = self.ratings(), self.dir / "r"
        processes = [self.start("train", "mf", data, "--out", out, "--iterations", "5") for _ in range(6)]
        codes = sorted(process.wait(timeout=60) for process in processes)
        self.assertEqual(codes[0], 0)
        self.assertLessEqual(set(codes), {0, USAGE})
        self.run_orrery("verify", out)
        self.assert_no_temporaries(out)


class SameBits(CommandLine):
    def test_threads_and_domains_do_not_change_bits(self):
        data = self.ratings(**kShape)
        held_out = self.ratings("test.txt", **dict(kShape, ratings=700))
        for solver in ("sgd", "als"):
            seen = {}
            for words in (("--threads", "1"), ("--threads", "2"), ("--threads", "3"), ("--threads", "8"),
                          ("--topology", "numa:2 core:2 pu:1"), ("--topology", "numa:2 core:2 pu:1", "--threads", "1"),
                          ("--topology", "numa:4 core:2 pu:1", "--threads", "3")):
                out = self.dir / "r"
                self.train(data, out, "--solver", solver, "--valid", held_out, "--iterations", "6", "--workers", "8",
                           "--overwrite", *words)
                result = self.record(out)["result"]
                seen[words] = (result["model_checksum"], result["value"],
                               [point["objective"] for point in self.metrics(out)])
            self.assertEqual(len({str(value) for value in seen.values()}), 1, seen)

    def test_seed_and_workers_do(self):
        data = self.ratings(**kShape)
        sums = set()
        for words in ((), ("--seed", "2"), ("--workers", "3")):
            self.train(data, self.dir / "r", "--iterations", "3", "--overwrite", *words)
            sums.add(self.checksum(self.dir / "r"))
        self.assertEqual(len(sums), 3)

    def test_every_kernel_level_repeats_itself(self):
        data = self.ratings(**kShape)
        for level in ("portable", "avx2", "avx512"):
            sums = set()
            for threads in (1, 3):
                done = self.train(data, self.dir / "r", "--iterations", "3", "--workers", "8", "--simd", level, "--threads", threads,
                                  "--overwrite", expect=None)
                if done.returncode == USAGE:
                    self.skipTest(f"this processor has no {level}")
                self.assertEqual(self.record(self.dir / "r")["simd"], level)
                sums.add(self.checksum(self.dir / "r"))
            self.assertEqual(len(sums), 1, level)


if __name__ == "__main__":
    unittest.main()
