"""The guard on instruction counts: band, new and vanished kernels, and loud skipping."""

import json
import os
import subprocess
import sys
import unittest

from support import InFolder, kRoot
from harness import counts
from harness.errors import BenchError

kValgrindSays = """==17== Callgrind, a call-graph generating cache profiler
==17== Events    : Ir
==17== Collected : 1234567
==17==
"""


class Counting(unittest.TestCase):
    def test_the_count_is_read_from_the_closing_lines(self):
        self.assertEqual(counts.parse(kValgrindSays, "k"), 1234567)

    def test_a_region_that_was_never_entered_is_an_error_not_a_zero(self):
        with self.assertRaises(BenchError):
            counts.parse(kValgrindSays.replace("1234567", "0"), "k")
        with self.assertRaises(BenchError):
            counts.parse("", "k")


class Band(unittest.TestCase):
    def verdict(self, before, now):
        return counts.judge({"k": now} if now else {}, {"k": before} if before else {}, 0.03)[0][1]

    def test_inside_is_ok_on_both_sides(self):
        self.assertEqual([self.verdict(1000, now) for now in (970, 1000, 1030)], ["ok"] * 3)

    def test_outside_is_told_in_both_directions(self):
        self.assertEqual([self.verdict(1000, now) for now in (969, 1031)], ["fewer", "more"])

    def test_new_and_vanished_kernels_are_told(self):
        self.assertEqual([self.verdict(None, 5), self.verdict(5, None)], ["new", "gone"])

    def test_the_table_shows_change_and_verdict(self):
        text = counts.render(counts.judge({"a": 1100, "b": 5}, {"a": 1000}, 0.03))
        self.assertRegex(text, r"a +1000 +1100 +\+10\.00 % more\nb +- +5 +new")


class Command(InFolder):
    """bench/counts with a stand-in for valgrind that counts what the kernel's file says."""

    def setUp(self):
        super().setUp()
        self.program("valgrind", f"""
            for last; do :; done
            echo "==1== Collected : $(cat {self.folder}/count.$last)" >&2
            """)
        self.program_path = self.program("program", """
            echo '{"compiler": "GCC 12", "build": "Release", "kernels": ["k/portable", "k/avx2", "k/avx512"]}'
            """)
        self.baseline = self.folder / "baseline.json"
        self.counted(100, 200)

    def counted(self, portable, avx2):
        self.write("count.k/portable", str(portable))
        self.write("count.k/avx2", str(avx2))

    def run_counts(self, *options):
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        return subprocess.run([sys.executable, kRoot / "bench" / "counts", "--program", self.program_path, "--baseline",
                               self.baseline, *options], env=environment, capture_output=True, text=True, check=False)

    def test_update_then_check(self):
        self.assertEqual(self.run_counts("--update").returncode, 0)
        stored = json.loads(self.baseline.read_text())["builds"]
        self.assertEqual(stored, {"GCC 12, Release": {"k/avx2": 200, "k/portable": 100}})
        self.assertEqual(self.run_counts().returncode, 0)
        self.counted(100, 210)
        done = self.run_counts()
        self.assertEqual(done.returncode, 1)
        self.assertIn("+5.00 % more", done.stdout)
        self.assertEqual(self.run_counts("--simd", "portable").returncode, 0)

    def test_another_compiler_is_skipped_loudly(self):
        self.run_counts("--update")
        text = self.baseline.read_text().replace("GCC 12", "GCC 13")
        self.baseline.write_text(text)
        done = self.run_counts()
        self.assertEqual(done.returncode, 77)
        self.assertIn("SKIPPED", done.stderr)


if __name__ == "__main__":
    unittest.main()
