"""Builds two versions of the project for bench/ab: another commit in a worktree of its own, and the tree as it is."""

import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from harness.errors import BenchError


class Worktree:
    """Another commit, checked out in a temporary folder outside the tree; gone, with its build, after the `with`."""

    def __init__(self, root, reference):
        self._root, self._reference = Path(root), reference

    def __enter__(self):
        found = _git(self._root, "rev-parse", "--verify", "--quiet", f"{self._reference}^{{commit}}", check=False)
        if not found:
            raise BenchError(f"'{self._reference}' names no commit")
        self._temporary = tempfile.TemporaryDirectory(prefix="orrery-ab-")
        folder = Path(self._temporary.name) / "tree"
        try:
            _git(self._root, "worktree", "add", "--detach", str(folder), found)
        except BenchError:
            self._temporary.cleanup()
            raise
        return folder

    def __exit__(self, kind, value, trace):
        _git(self._root, "worktree", "remove", "--force", str(Path(self._temporary.name) / "tree"), check=False)
        self._temporary.cleanup()
        _git(self._root, "worktree", "prune", check=False)


def build(tree, programs, say=print):
    """Builds bin/NAME for each of `programs` with the preset `release`; returns the folder that they are in."""
    tree = Path(tree)
    options = ["-DORRERY_TESTS=OFF", "-DORRERY_BENCH=ON"] if "orrery_bench_micro" in programs else ["-DORRERY_TESTS=OFF"]
    folder = tree / "build" / "release"
    say(f"building {' '.join(programs)} in {tree.name}")
    _run(["cmake", "--preset", "release", *options], tree)
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
