"""Shared by the tests of the harness: finds the package, and writes small programs that stand for contenders."""

import os
import stat
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

kRoot = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(kRoot / "bench"))


class InFolder(unittest.TestCase):
    """A test with a folder of its own, gone afterwards."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def program(self, name, text):
        """An executable shell program."""
        path = self.write(name, "#!/bin/sh\n" + textwrap.dedent(text))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path


def point_result(**changes):
    """A small result file's content: one case, two contenders, two rounds."""
    contenders = [
        {"name": "orrery", "kind": "orrery", "command": ["orrery", "train"],
         "rounds": [{"seconds_to_best": 1.0, "command_seconds": 2.0}, {"seconds_to_best": 3.0, "command_seconds": 2.0}],
         "summary": {"seconds_to_best": {"median": 2.0, "min": 1.0, "max": 3.0, "n": 2},
                     "command_seconds": {"median": 2.0, "min": 2.0, "max": 2.0, "n": 2}}},
        {"name": "peer", "kind": "points", "command": ["peer"],
         "rounds": [{"seconds_to_best": 10.0, "command_seconds": 4.0}, {"seconds_to_best": 10.0, "command_seconds": 4.0}],
         "summary": {"seconds_to_best": {"median": 10.0, "min": 10.0, "max": 10.0, "n": 2},
                     "command_seconds": {"median": 4.0, "min": 4.0, "max": 4.0, "n": 2}}},
    ]
    case = {"name": "race", "issue": 2, "what": "a race", "data": {"name": "d", "items": 10, "sha256": {"train": "x"}},
            "quality": {"name": "error", "better": "lower"}, "values": {}, "targets": {"best": 0.5},
            "contenders": contenders, "order": ["orrery", "peer"] * 2, "load": [0.1, 0.2]}
    machine = {"cpu": "a processor", "cores_allowed": 2, "simd": ["avx2"], "caches": {"L2": "1024K"},
               "memory_bytes": 2**34, "kernel": "6", "python": "3.11"}
    result = {"schema": 1, "kind": "macro", "created": "2026-01-01T00:00:00+00:00", "arguments": [],
              "record": {"source": {"commit": "0123456789abcdef", "modified": False}, "build": {}, "machine": machine,
                         "topology": {}}, "cases": [case]}
    result.update(changes)
    return result
