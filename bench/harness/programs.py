"""Where the programs of a bench are: Orrery's own, and peers by `--peer NAME=PATH` or on PATH."""

import os
import shutil
from pathlib import Path

from harness.errors import BenchError, ContenderFailed


def root():
    """The top of the source tree."""
    return Path(__file__).resolve().parents[2]


def default_orrery():
    return root() / "build" / "release" / "bin" / "orrery"


def default_cache():
    """Generated data and tuning results; survives the build folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "orrery-bench"


def executable(path, what):
    path = Path(path).resolve()
    if not os.access(path, os.X_OK) or path.is_dir():
        raise BenchError(f"{what}: {path} is not an executable file")
    return path


def beside(orrery, name):
    """A program in the same folder as orrery, or None."""
    path = Path(orrery).resolve().with_name(name)
    return path if os.access(path, os.X_OK) else None


class Finder:
    """Maps a contender to its program. given = {"libmf": path} from the command line."""

    def __init__(self, orrery, peers, given):
        for name in given:
            if name not in peers:
                raise BenchError(f"--peer {name}: no such peer, known are {', '.join(sorted(peers))}")
        self._orrery, self._peers = orrery, peers
        self._given = {name: executable(path, f"--peer {name}") for name, path in given.items()}

    def __call__(self, contender):
        if contender.peer:
            return self._peer(contender.peer)
        name = "orrery_bench_micro" if contender.kind == "micro" else contender.program
        if name:
            program = beside(self._orrery, name)
            if program is None:
                raise ContenderFailed(f"{name} is not beside orrery (configure with -DORRERY_BENCH=ON)")
            return program
        return self._orrery

    def _peer(self, name):
        if name in self._given:
            return self._given[name]
        found = shutil.which(self._peers[name]["executable"])
        if found is None:
            raise ContenderFailed(f"{self._peers[name]['executable']} is not on PATH and no --peer {name}=PATH was given")
        return found


def parse_peers(arguments):
    """["libmf=/opt/mf-train"] -> {"libmf": "/opt/mf-train"}"""
    given = {}
    for argument in arguments:
        name, separator, path = argument.partition("=")
        if not separator or not path:
            raise BenchError(f"--peer {argument}: expected NAME=PATH")
        given[name] = path
    return given
