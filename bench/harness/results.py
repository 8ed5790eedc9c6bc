"""Result files: written whole, read checked, and asked for measurements by reference."""

import datetime
import json
import math
import os
from pathlib import Path

from harness import schema, stats
from harness.errors import BenchError


def assemble(kind, record, arguments, cases):
    """A result as it is written; `record` says machine, build and source (machine.record)."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return {"schema": schema.kSchemaVersion, "kind": kind, "created": now, "record": record,
            "arguments": arguments, "cases": cases}


def write(result, path):
    """Checks and writes; a reader never sees half a file. What is not a number becomes null: JSON has no NaN."""
    schema.check_result(result, str(path))
    write_text(path, json.dumps(_finite(result), indent=1, allow_nan=False) + "\n")


def _finite(node):
    if isinstance(node, dict):
        return {key: _finite(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_finite(value) for value in node]
    return None if isinstance(node, float) and not math.isfinite(node) else node


def write_text(path, text):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def read(path):
    try:
        result = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise BenchError(f"{path}:{error.lineno}:{error.colno}: {error.msg}") from error
    schema.check_result(result, str(path))
    return result


class Measurements:
    """All results together; of a case that was run more than once the newest counts."""

    def __init__(self, results):
        self._cases = {}
        for result in sorted(results, key=lambda item: item["created"]):
            for case in result["cases"]:
                self._cases[case["name"]] = (case, result)

    @property
    def cases(self):
        return {name: case for name, (case, _) in self._cases.items()}

    def origin(self, name):
        """The result file's content that a case came from."""
        return self._cases[name][1]

    def used(self):
        """The results that still give at least one case."""
        seen = {}
        for _, result in self._cases.values():
            seen[id(result)] = result
        return sorted(seen.values(), key=lambda item: item["created"])

    def values(self, reference):
        """(values of the rounds, None) for "CASE/CONTENDER/METRIC", or (None, why there are none)."""
        parts = reference.split("/", 2)
        if len(parts) != 3:
            raise BenchError(f"'{reference}' is not CASE/CONTENDER/METRIC")
        case_name, contender_name, metric = parts
        if case_name not in self._cases:
            return None, "not measured"
        case, _ = self._cases[case_name]
        contender = next((item for item in case["contenders"] if item["name"] == contender_name), None)
        if contender is None:
            return None, f"not measured: no {contender_name} in it"
        if "skipped" in contender:
            return None, f"not measured: {contender['skipped']}"
        if "failed" in contender:
            return None, f"failed: {contender['failed']}"
        values = [found[metric] for found in contender["rounds"] if metric in found]
        if not values:
            return None, f"not measured: no '{metric}'"
        if any(value is None for value in values):
            return None, "not reached"
        return values, None

    def ratio(self, top, bottom):
        """(summary, None) of top / bottom, paired by round within one case; (None, why) otherwise."""
        above, reason = self.values(top)
        if reason:
            return None, f"{top.split('/')[1]}: {reason}"
        below, reason = self.values(bottom)
        if reason:
            return None, f"{bottom.split('/')[1]}: {reason}"
        if top.split("/")[0] != bottom.split("/")[0] and len(above) == len(below):
            above, below = [stats.median(above)], [stats.median(below)]  # no pairs across cases
        found = stats.ratio_summary(above, below)
        return (found, None) if found else (None, "no ratio: a value is 0")
