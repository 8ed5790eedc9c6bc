#!/usr/bin/env python3
"""Checks the access counter itself: known numbers of reads by every node from every node.

usage: counter_test.py numa-guest.sh guest_probe
Exit status 125 (no guest here) is passed on, so that CTest counts the test as skipped.
"""

import re
import subprocess
import sys


def main(guest: str, probe: str) -> int:
    command = [guest, "--nodes", "2", "--cpus", "4", "--mem-mb", "1024", "--count", "--", probe, "counted", "2", "0", "0"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    print(run.stdout, run.stderr, sep="\n")
    if run.returncode != 0:
        return run.returncode
    counts: dict[tuple[int, int], list[int]] = {}
    for number, node, rest in re.findall(r"^count (\d+): CPUs of node (\d+):(.*)$", run.stderr, re.M):
        counts[int(number), int(node)] = [int(n) for n in re.findall(r"node \d+ (\d+)", rest)]
    reads = re.findall(r"^read (\d+) words: reader (\d+) memory (\d+)", run.stdout, re.M)
    wrong = 0
    for number, read in enumerate(reads, start=1):
        words, reader, memory = (int(n) for n in read)
        for node in range(2):
            for home in range(2):
                got = counts[number, node][home]
                expected = words if (node, home) == (reader, memory) else 0
                # A few more: the section's own stack, and whatever else ran on that CPU meanwhile.
                if not expected <= got <= expected + words // 100:
                    print(f"WRONG: CPUs of node {node}, memory of node {home}: {got} accesses, expected {expected}")
                    wrong += 1
    if len(reads) != 4:
        print(f"WRONG: {len(reads)} readings, expected 4")
        wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
