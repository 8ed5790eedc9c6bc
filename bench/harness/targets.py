"""The list of what the issues ask for (bench/targets.json) held against measurements."""

import json
from pathlib import Path

from harness import schema, stats, templates
from harness.errors import BenchError

kOk, kMiss, kOpen, kInfo = "ok", "MISS", "not measured", "reported"


def _read(path):
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    schema.check(content, schema.kTargets, str(path))
    schema.check_version(content, str(path))
    return content


def notes(path):
    """{"roofline": text, "issue 2": text}: what people say about the figures, printed below their tables."""
    return _read(path).get("notes", {})


def load(path):
    """Reads the list and expands entries with a "for": a list of dictionaries whose values fill the templates."""
    content = _read(path)
    entries, seen = [], set()
    for raw in content["targets"]:
        for entry in _expand(raw, path):
            if entry["id"] in seen:
                raise BenchError(f"{path}: two targets are called '{entry['id']}'")
            seen.add(entry["id"])
            entries.append(entry)
    return entries


def _expand(raw, path):
    where = f"{path}: target {raw.get('id', '?')}"
    schema.check(raw, schema.kTargetEntry, where)
    if ("value" in raw) == ("ratio" in raw):
        raise BenchError(f"{where} needs either 'value' or 'ratio'")
    if "ratio" in raw and len(raw["ratio"]) != 2:
        raise BenchError(f"{where}: 'ratio' is [above, below]")
    body = {key: value for key, value in raw.items() if key != "for"}
    expanded = []
    for values in raw.get("for", [{}]):
        entry = templates.fill_all(body, values)
        for bound in ("at_most", "at_least"):
            if bound in entry:
                entry[bound] = float(entry[bound])
        expanded.append(entry)
    return expanded


def judge(entry, measurements):
    """{"entry", "verdict", "found": summary or None, "why": text}. Not reached and failed are misses, not gaps."""
    if "ratio" in entry:
        found, why = measurements.ratio(*entry["ratio"])
    else:
        values, why = measurements.values(entry["value"])
        found = stats.summary(values) if values else None
    return {"entry": entry, "found": found, "why": why or "", "verdict": _verdict(entry, found, why or "")}


def _verdict(entry, found, why):
    if found is None:
        missed = "not reached" in why or "failed" in why
        bounded = "at_most" in entry or "at_least" in entry
        return kMiss if missed and bounded else kOpen
    if "at_most" not in entry and "at_least" not in entry:
        return kInfo
    below = found["median"] <= entry.get("at_most", float("inf"))
    above = found["median"] >= entry.get("at_least", float("-inf"))
    return kOk if below and above else kMiss


def required(entry):
    """The bound as people write it."""
    parts = [f"≤ {entry['at_most']:,.12g}"] if "at_most" in entry else []
    parts += [f"≥ {entry['at_least']:,.12g}"] if "at_least" in entry else []
    return " and ".join(parts) if parts else "–"
