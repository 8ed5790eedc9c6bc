"""Medians, ranges and ratios. Nothing here averages: one noisy neighbour must not move a figure."""

from harness.errors import BenchError


def median(values):
    """The middle value, or the mean of the two middle ones. Refuses an empty list."""
    ordered = sorted(values)
    if not ordered:
        raise BenchError("median of no values")
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def summary(values):
    """{median, min, max, n} of the numbers in `values`; None (a target that was not reached) makes the whole None.

    A contender that reaches the target in two rounds of three has not reached it: leaving the third out would
    report the lucky rounds only.
    """
    if not values or any(value is None for value in values):
        return None
    return {"median": median(values), "min": min(values), "max": max(values), "n": len(values)}


def ratio_summary(numerators, denominators):
    """Summary of the ratios of the rounds: round i of A is divided by round i of B, which ran next to it.

    With different numbers of rounds there are no pairs; then the medians are divided and the range is the widest
    that the single values allow.
    """
    top, bottom = summary(numerators), summary(denominators)
    if top is None or bottom is None or bottom["min"] <= 0:
        return None
    if len(numerators) == len(denominators):
        return summary([a / b for a, b in zip(numerators, denominators)])
    return {
        "median": top["median"] / bottom["median"],
        "min": top["min"] / bottom["max"],
        "max": top["max"] / bottom["min"],
        "n": min(top["n"], bottom["n"]),
    }


def outliers(values, factor=3.0):
    """Indices of the values further than `factor` median absolute deviations from the median.

    The deviation is taken as at least 1 % of the median, or else three equal values would make a fourth,
    0.1 % off, an outlier.
    """
    middle = median(values)
    spread = median([abs(value - middle) for value in values])
    limit = factor * max(spread, 0.01 * abs(middle))
    return [index for index, value in enumerate(values) if abs(value - middle) > limit]
