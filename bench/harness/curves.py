"""Curves of (iteration, seconds, quality) and the primary metric read off them: seconds to a stated quality."""

import math


def reaches(quality, target, better):
    """True when `quality` is at least as good as `target`; NaN reaches nothing. better: "lower" or "higher"."""
    if quality is None or math.isnan(quality):
        return False
    return quality <= target if better == "lower" else quality >= target


def first_reaching(curve, target, better):
    """The first point of the curve that reaches the target, or None. No interpolation between points."""
    for point in curve:
        if reaches(point[2], target, better):
            return point
    return None


def seconds_to(curve, target, better):
    """Training seconds at the first point that reaches the target, or None."""
    point = first_reaching(curve, target, better)
    return None if point is None else point[1]


def best_point(curve, better):
    """The point of best quality, the earliest of equals; None when no point has a quality."""
    points = [point for point in curve if point[2] is not None and not math.isnan(point[2])]
    if not points:
        return None
    sign = 1 if better == "lower" else -1
    return min(points, key=lambda point: (sign * point[2], point[0]))


def worsening(curve, better, patience):
    """True when the best point lies at least `patience` points back, or the last quality is not a number.

    Used to end a tuning run that over-fits or diverges; `patience` belongs to the case, so that a peer that
    improves slowly is given its time.
    """
    if not curve:
        return False
    if curve[-1][2] is None or math.isnan(curve[-1][2]):
        return True
    best = best_point(curve, better)
    return len([point for point in curve if point[0] > best[0]]) >= patience
