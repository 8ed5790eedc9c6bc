"""Builds two versions of the project for bench/ab: another commit in a worktree of its own, and the tree as it is."""

import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from harness.errors import BenchError


class Versions:
    """Two checkouts and a place to build them: `before`, another commit in a worktree, and `after`, the tree as it is. All
    of it lies in a temporary folder outside the tree and is gone after the `with`; the tree's own build is not touched."""

    def __init__(self, root, reference):
        self._root, self._reference = Path(root), reference

    def __enter__(self):
        found = _git(self._root, "rev-parse", "--verify", "--quiet", f"{self._reference}^{{commit}}", check=False)
        if not found:
            raise BenchError(f"'{self._reference}' names no commit")
        self._temporary = tempfile.TemporaryDirectory(prefix="orrery-ab-")
        self._folder = Path(self._temporary.name)
        self._trees = {"before": self._folder / "tree", "after": self._root}
        try:
            _git(self._root, "worktree", "add", "--detach", str(self._trees["before"]), found)
        except BenchError:
            self._temporary.cleanup()
            raise
        return self

    def __exit__(self, kind, value, trace):
        _git(self._root, "worktree", "remove", "--force", str(self._trees["before"]), check=False)
        self._temporary.cleanup()
        _git(self._root, "worktree", "prune", check=False)

    def build(self, side, programs, say=print):
        """Builds bin/NAME for each of `programs` with the preset `release`; returns the folder that they are in."""
        tree, folder = self._trees[side], self._folder / side
        bench = "ON" if any(name.startswith("orrery_bench") for name in programs) else "OFF"
        say(f"building {' '.join(programs)}, {side}")
        _run(["cmake", "--preset", "release", "-B", str(folder), "-DORRERY_TESTS=OFF", f"-DORRERY_BENCH={bench}"], tree)
        _run(["cmake", "--build", str(folder), "--target", *(f"bin/{name}" for name in programs)], tree)
        return folder / "bin"


def _git(root, *arguments, check=True):
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0 and check:
        raise BenchError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip() if done.returncode == 0 else ""


def _run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def both_sides(case):
    """The contenders of a case for A B: each of Orrery's own twice, as NAME@before and NAME@after, in this order.

    Peers do not run. Returns a new list; contender.peer is empty, the program is found by the name's ending.
    """
    return [replace(contender, name=f"{contender.name}@{side}")
            for contender in case.contenders if not contender.peer for side in ("before", "after")]
