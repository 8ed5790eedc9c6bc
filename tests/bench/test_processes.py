"""Running and measuring a command from outside."""

import time
import unittest

from support import InFolder
from harness import processes
from harness.errors import ContenderFailed


class Run(InFolder):
    def test_lines_are_stamped_as_they_arrive_not_at_the_end(self):
        # The second line is written only after the test has seen the first: a pipe through a full buffer would hang.
        gate = self.folder / "gate"
        program = self.program("talk", f"mkfifo {gate}\necho one\nread go < {gate}\necho two\n")

        def seen(lines):
            if lines[-1][1] == "one":
                with open(gate, "w", encoding="utf-8") as out:
                    out.write("go\n")
            return False

        outcome = processes.run([str(program)], stop=seen)
        self.assertEqual([text for _, text in outcome.lines], ["one", "two"])
        self.assertLess(outcome.lines[0][0], outcome.lines[1][0])

    def test_exit_code_and_standard_error_are_kept(self):
        outcome = processes.run([str(self.program("fail", "echo wrong option >&2\nexit 3\n"))])
        self.assertEqual((outcome.returncode, outcome.stderr_tail), (3, "wrong option"))

    def test_a_run_that_was_told_to_stop_ends(self):
        started = time.monotonic()
        outcome = processes.run([str(self.program("long", "echo ready\nexec sleep 60\n"))], stop=lambda lines: True)
        self.assertTrue(outcome.stopped)
        self.assertLess(time.monotonic() - started, 30)

    def test_processor_time_and_memory_are_those_of_the_child(self):
        outcome = processes.run(["python3", "-c", "x = b'x' * 200_000_000\nsum(range(1_000_000))"])
        self.assertGreater(outcome.peak_rss_bytes, 200_000_000)
        self.assertGreater(outcome.cpu_seconds, 0)
        self.assertLessEqual(outcome.cpu_seconds, 2 * outcome.wall_seconds)

    def test_missing_program_fails_the_contender(self):
        with self.assertRaises(ContenderFailed):
            processes.run([str(self.folder / "nothing")])

    def test_copies_run_at_the_same_time(self):
        # Each copy waits for the other: one after the other would never end.
        program = self.program("meet", 'mkdir -p "$1"; : > "$1/$2"; while [ ! -e "$1/$3" ]; do :; done\n')
        both = [[str(program), str(self.folder / "m"), mine, other] for mine, other in (("a", "b"), ("b", "a"))]
        self.assertEqual([outcome.returncode for outcome in processes.run_copies(both)], [0, 0])


if __name__ == "__main__":
    unittest.main()
