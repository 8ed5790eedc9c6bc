"""Instruction counts of the hot kernels under callgrind, held against a stored baseline.

Times on a shared machine wander; instructions executed by one thread do not. A kernel may be slower with equal counts
(memory), so the counts guard, they do not measure. valgrind knows no AVX-512: the levels are portable and avx2.
"""

import json
import re
import subprocess
from pathlib import Path

from harness import schema
from harness.errors import BenchError

kRegion = "orrery_counted_region"
kCollected = re.compile(r"^==\d+== Collected : (\d+)", re.MULTILINE)
kBaseline = {"schema": (int, True), "builds": (dict, True)}


def describe(program):
    """What `PROGRAM --list` says: {"compiler", "build", "kernels": [names]}. Kernel names end in the level."""
    done = subprocess.run([str(program), "--list"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{program} --list gave {done.returncode}: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    schema.check(said, {"compiler": (str, True), "build": (str, True), "kernels": (list, True)}, f"{program} --list")
    return said


def key(said):
    """Counts are comparable for the same compiler and the same kind of build only."""
    return f"{said['compiler']}, {said['build']}"


def measure(program, kernel):
    """Instructions inside the counted region of one kernel."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no",
               f"--toggle-collect={kRegion}", str(program), kernel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{kernel}: valgrind gave {done.returncode}: {done.stderr.strip()[-500:]}")
    return parse(done.stderr, kernel)


def parse(text, kernel):
    """The count in valgrind's closing lines. 0 means that the region was never entered or has another name."""
    found = kCollected.search(text)
    if found is None or int(found.group(1)) == 0:
        raise BenchError(f"{kernel}: no instructions were counted in {kRegion}()")
    return int(found.group(1))


def judge(counted, baseline, band):
    """[(kernel, verdict, before, now)]: "ok", "more", "fewer", "new" or "gone". All but "ok" want an answer: a change
    of the code, or --update with the reason in the commit."""
    rows = []
    for kernel in sorted(set(counted) | set(baseline)):
        now, before = counted.get(kernel), baseline.get(kernel)
        if now is None or before is None:
            rows.append((kernel, "gone" if now is None else "new", before, now))
        elif abs(now - before) <= band * before:
            rows.append((kernel, "ok", before, now))
        else:
            rows.append((kernel, "more" if now > before else "fewer", before, now))
    return rows


def load(path):
    if not Path(path).exists():
        return {"schema": schema.kSchemaVersion, "builds": {}}
    baseline = json.loads(Path(path).read_text(encoding="utf-8"))
    schema.check(baseline, kBaseline, str(path))
    schema.check_version(baseline, str(path))
    return baseline


def render(rows):
    lines = []
    for kernel, verdict, before, now in rows:
        change = f"{100 * (now / before - 1):+.2f} %" if before and now else ""
        lines.append(f"{kernel:40} {before or '-':>14} {now or '-':>14} {change:>9} {'' if verdict == 'ok' else verdict}")
    return "\n".join(line.rstrip() for line in lines)
