"""Runs one command (or several copies at once) and measures it from outside: wall, CPU, peak memory, line times.

Peers are started through a pseudo-terminal where their lines have to be time-stamped: the C library then flushes
each line as it is written, so that the stamp is the moment of the line and not of a full buffer.
"""

import os
import pty
import select
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

from harness.errors import ContenderFailed

kTailBytes = 2000


@dataclass
class Outcome:
    """What one process did. peak_rss_bytes cannot fall below the harness's own size (about 30 MB): the kernel
    counts the moment between fork and exec to the child."""

    command: list
    returncode: int
    wall_seconds: float
    cpu_seconds: float
    peak_rss_bytes: int
    lines: list = field(default_factory=list)
    stderr_tail: str = ""
    stopped: bool = False


def run(command, stop=None, env=None):
    """Runs `command`, its standard output through a pseudo-terminal with every line stamped (seconds since start).

    stop(lines) is asked after each line; True ends the process, and the outcome says stopped. Standard error goes
    to a file, so that a talkative program cannot block.
    """
    with tempfile.TemporaryFile() as errors:
        master, slave = pty.openpty()
        started = time.monotonic()
        try:
            try:
                process = _start(command, slave, errors, env)
            finally:
                os.close(slave)
            lines, stopped = _read_lines(master, process, started, stop)
        finally:
            os.close(master)
        returncode, usage = _wait(process)
        wall = time.monotonic() - started
        return Outcome(command, returncode, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, lines,
                       _tail(errors), stopped)


def run_copies(commands, env=None):
    """Runs all the commands at the same time and waits for all; for "n independent copies" measurements."""
    started = time.monotonic()
    running = []
    for command in commands:
        errors = tempfile.TemporaryFile()
        running.append((command, _start(command, subprocess.DEVNULL, errors, env), errors))
    outcomes = []
    for command, process, errors in running:
        returncode, usage = _wait(process)
        wall = time.monotonic() - started
        outcomes.append(Outcome(command, returncode, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, [],
                                _tail(errors)))
        errors.close()
    return outcomes


def _start(command, out, errors, env):
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, env=env)
    except OSError as error:
        raise ContenderFailed(f"cannot start {command[0]}: {error.strerror}") from error


def _read_lines(master, process, started, stop):
    lines, pending, stopped = [], b"", False
    while True:
        select.select([master], [], [])
        try:
            chunk = os.read(master, 65536)
        except OSError:  # Linux answers EIO, not end of file, when the last writer of a terminal has gone
            chunk = b""
        now = time.monotonic() - started
        if not chunk:
            break
        pending += chunk
        *complete, pending = pending.split(b"\n")
        lines += [(now, text.rstrip(b"\r").decode("utf-8", "replace")) for text in complete]
        if complete and stop is not None and not stopped and stop(lines):
            stopped = True
            process.terminate()
    if pending:
        lines.append((time.monotonic() - started, pending.rstrip(b"\r").decode("utf-8", "replace")))
    return lines, stopped


def _wait(process):
    """wait4 gives the child's own usage; Popen must be told, or it would wait for the process again."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage


def _tail(errors):
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - kTailBytes))
    return errors.read().decode("utf-8", "replace").strip()
