"""Two sides of measurements held against each other: metric by metric the ratio, its range, and the outliers."""

from harness import stats
from harness.errors import BenchError

kMetrics = ("training_seconds", "command_seconds", "loading_seconds", "cpu_seconds", "peak_rss_bytes", "best_quality",
            "items_per_second")


def pairs(before, after, contender):
    """(case, before's contender, after's contender) of all cases that both results have, for one contender name."""
    cases = {case["name"]: case for case in before["cases"]}
    found = []
    for case in after["cases"]:
        if case["name"] not in cases:
            continue
        if cases[case["name"]]["data"].get("sha256") != case["data"].get("sha256"):
            raise BenchError(f"case {case['name']}: the two results were measured on different data")
        found.append((case["name"], _find(cases[case["name"]], contender), _find(case, contender)))
    if not found:
        raise BenchError("the two results have no case in common")
    return found


def sides(result, first, second):
    """The same for two contenders of one result (A and B of bench/ab)."""
    return [(case["name"], _find(case, first), _find(case, second)) for case in result["cases"]]


def _find(case, name):
    for contender in case["contenders"]:
        if contender["name"] == name:
            return contender
    raise BenchError(f"case {case['name']}: no contender '{name}'")


def table(found, paired):
    """Rows {"case", "metric", "before", "after", "ratio" (None when not comparable), "outliers"}. paired=False when
    the rounds of the two sides were not run next to each other; then only medians are divided."""
    rows = []
    for case, before, after in found:
        for metric in metrics_of(before, after):
            old, new = _values(before, metric), _values(after, metric)
            top, bottom = (new, old) if paired else (new[:1] and [stats.median(new)], old[:1] and [stats.median(old)])
            rows.append({
                "case": case, "metric": metric, "before": stats.summary(old), "after": stats.summary(new),
                "ratio": stats.ratio_summary(top, bottom) if old and new else None,
                "outliers": [len(stats.outliers(side)) if side else 0 for side in (old, new)],
            })
    return rows


def metrics_of(before, after):
    known = [set(side["summary"]) for side in (before, after)]
    reached = sorted(key for key in known[0] & known[1] if key.startswith("seconds_to_"))
    micro = sorted(key for key in known[0] & known[1] if key.endswith(".cpu_time"))
    return reached + [key for key in kMetrics if key in known[0] & known[1]] + micro


def _values(contender, metric):
    values = [found.get(metric) for found in contender["rounds"]]
    return [value for value in values if value is not None] if all(value is not None for value in values) else []


def render(rows, band):
    """The rows as text; ratios outside 1 ± band are marked, but only when the whole range lies outside 1."""
    lines = []
    for row in rows:
        if row["ratio"] is None:
            lines.append(f"{row['case']:40} {row['metric']:24} not comparable: {_why(row)}")
            continue
        ratio = row["ratio"]
        line = (f"{row['case']:40} {row['metric']:24} {row['before']['median']:12.5g} {row['after']['median']:12.5g} "
                f"{ratio['median']:7.3f} ({ratio['min']:.3f} … {ratio['max']:.3f})")
        marks = ["<== differs"] if differs(ratio, band) else []
        marks += [f"{sum(row['outliers'])} outliers"] if any(row["outliers"]) else []
        lines.append(" ".join([line, *marks]))
    return "\n".join(lines)


def differs(ratio, band):
    outside = abs(ratio["median"] - 1) > band
    return outside and (ratio["min"] > 1 or ratio["max"] < 1)


def _why(row):
    missing = [side for side in ("before", "after") if row[side] is None]
    return "not reached " + " and ".join(missing) if missing else "a value is 0"
