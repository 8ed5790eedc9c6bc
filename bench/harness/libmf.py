"""LIBMF (mf-train, mf-predict) as a peer.

It prints a line per iteration, with the held-out error when it is given a validation file, but no times, and with
that file the time between lines would include the evaluation. So quality and time come from two runs with the same
settings: one with `-p`, for the error after each iteration, and the timed ones without, whose lines are stamped as
they arrive. The stamp of the header line, printed right before the first update, is the start of training; reading,
shuffling and the writing of the model are in `command_seconds` only.
"""

import math
import re
from pathlib import Path

from harness import curves, processes
from harness.adapters import Adapter, measured_from_outside, require, with_quality
from harness.errors import ContenderFailed

kHeader = re.compile(r"^\s*iter\s+tr_\w+")
kRow = re.compile(r"^\s*(\d+)((?:\s+\S+)+)\s*$")


def parse(lines):
    """Rows of LIBMF's table as [(iteration, stamp, validation error or None)], and the header's stamp.

    lines = [(stamp, text)]. Iterations count from 1. A row has training error, then validation error if the header
    has that column, then the objective; "nan" and "-nan" are NaN.
    """
    start, has_validation, rows = None, False, []
    for stamp, text in lines:
        if kHeader.match(text):
            start, has_validation = stamp, " va_" in text
            continue
        row = kRow.match(text)
        if row and start is not None:
            numbers = [_number(field) for field in row.group(2).split()]
            rows.append((int(row.group(1)) + 1, stamp, numbers[1] if has_validation and len(numbers) > 1 else None))
    return start, rows


def _number(text):
    try:
        return float(text)
    except ValueError:
        return math.nan


class LibMf(Adapter):
    """The case's command holds options only; files and `-p` are added here."""

    def explore(self, contender, values, better):
        """Curve of (iteration, seconds with evaluation, held-out error). The run is ended once it over-fits."""

        def over(lines):
            return curves.worsening(self._curve(lines), better, contender.patience)

        options = self.command(contender, {**values, "iterations": contender.iterations})
        outcome = processes.run([*options, "-p", values["test"], values["train"], values["out"]], stop=over)
        if not outcome.stopped:
            require(outcome)
        return self._curve(outcome.lines)

    def measure(self, contender, values, better, known_curve):
        values["model"] = values["out"]
        outcome = processes.run([*self.command(contender, values), values["train"], values["model"]])
        require(outcome)
        start, rows = parse(outcome.lines)
        if not rows:
            raise ContenderFailed("mf-train printed no iteration")
        qualities = {point[0]: point[2] for point in known_curve or []}
        curve = [[iteration, stamp - start, qualities.get(iteration)] for iteration, stamp, _ in rows]
        training = curve[-1][1]
        return with_quality({
            **measured_from_outside(outcome), "curve": curve, "training_seconds": training,
            "iterations": len(curve), "loading_seconds": start, "model_bytes": Path(values["model"]).stat().st_size,
            "items_per_second": values["items"] * len(curve) / training,
        }, better)

    def predict(self, contender, values):
        program = Path(self.executable).with_name("mf-predict")
        if not program.exists():
            raise ContenderFailed(f"no {program.name} beside {Path(self.executable).name}")
        require(processes.run([str(program), values["test"], values["model"], values["predictions"]]))

    @staticmethod
    def _curve(lines):
        start, rows = parse(lines)
        return [[iteration, stamp - start, error] for iteration, stamp, error in rows]
