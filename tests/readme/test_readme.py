"""Runs the commands of README.md as a reader would: every ```sh block, in order, in one shell and one scratch directory
that shows the source tree read-only through links. Any other fence is prose.

`tools/quickstart` and `tools/check` are left to tools/check, which runs the first and is the second; a block that names
them must hold nothing else."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

kSource = Path(os.environ.get("ORRERY_SOURCE_DIR", Path(__file__).resolve().parents[2]))
kBinary = Path(os.environ["ORRERY"])
kElsewhere = {"tools/quickstart", "tools/check"}
# What mpirun wants to be told on a test machine.
kLauncher = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def blocks(text):
    """(line number, commands) of every ```sh block."""
    found, fence, start, lines = [], None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("```"):
            lines.append(line)
        elif fence is None:
            fence, start, lines = line.strip(), number, []
        else:
            if fence == "```sh":
                found.append((start, lines))
            fence, lines = None, []
    return found


class Readme(unittest.TestCase):
    def setUp(self):
        self.text = (kSource / "README.md").read_text(encoding="utf-8")

    def test_every_command_block_runs(self):
        with tempfile.TemporaryDirectory(prefix="orrery-readme-") as scratch:
            root = Path(scratch)
            for name in ("tests", "bench", "tools"):
                (root / name).symlink_to(kSource / name)
            (root / "build" / "release" / "bin").mkdir(parents=True)
            (root / "build" / "release" / "bin" / "orrery").symlink_to(kBinary)
            script = ["set -euo pipefail"]
            ran = 0
            for line, commands in blocks(self.text):
                named = {command.split("#")[0].strip() for command in commands} - {""}
                if named & kElsewhere:
                    self.assertLessEqual(named, kElsewhere, f"README.md:{line}: mixes commands of the test runner with others")
                    continue
                if os.environ.get("ORRERY_HAS_MPI") == "0" and any(command.startswith("mpirun ") for command in commands):
                    continue
                script += [f"echo '== README.md:{line}'", *commands]
                ran += 1
            self.assertGreaterEqual(ran, 2)
            done = subprocess.run(["bash"], input="\n".join(script) + "\n", text=True, capture_output=True, cwd=root, timeout=280,
                                  env={**os.environ, **kLauncher})
            self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])

    def test_every_path_that_is_named_exists(self):
        for path in re.findall(r"\]\(([^)#:]+)\)", self.text):
            self.assertTrue((kSource / path).exists(), f"README.md links to {path}")
        for line in self.text.splitlines():
            if line.startswith("| `") and line.split("`")[1].endswith("/"):
                self.assertTrue((kSource / line.split("`")[1]).is_dir(), line)

    def test_the_runner_finds_a_broken_command(self):
        self.assertEqual(blocks("a\n```sh\nx\ny\n```\n```\nz\n```\n```text\nq\n```\n```sh\nw\n```\n"), [(2, ["x", "y"]), (12, ["w"])])


if __name__ == "__main__":
    unittest.main()
