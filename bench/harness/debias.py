"""Ratings without mean and biases, so that a peer that has no bias terms fits the same model as one that has them.

Mean, item and user biases are computed on the training ratings alone (damped alternating means) and taken from both
files; a held-out RMSE of predictions on the result is the RMSE of bias + prediction on the ratings as they were.
bench/tools/debias.cpp is the same computation for large files; this one is its oracle and runs where it is not built.
"""

import json
import math
import subprocess
from collections import defaultdict

from harness.errors import BenchError


def read_ratings(path):
    """Yields (user, item, rating) of a plain text file; comments and empty lines are skipped."""
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            fields = line.split()
            if not fields or fields[0].startswith("#"):
                continue
            if len(fields) < 3:
                raise BenchError(f"{path}:{number}: expected 'user item rating', got '{line.strip()}'")
            yield fields[0], fields[1], float(fields[2])


def fit(train, damping, sweeps):
    """(mean, user biases, item biases): each bias is the mean of what the others leave, shrunk by `damping`."""
    ratings = list(read_ratings(train))
    mean = math.fsum(rating for _, _, rating in ratings) / len(ratings)
    users, items = defaultdict(float), defaultdict(float)
    for _ in range(sweeps):
        items = _damped(((item, rating - mean - users[user]) for user, item, rating in ratings), damping)
        users = _damped(((user, rating - mean - items[item]) for user, item, rating in ratings), damping)
    return mean, users, items


def _damped(pairs, damping):
    sums, counts = defaultdict(float), defaultdict(int)
    for key, value in pairs:
        sums[key] += value
        counts[key] += 1
    return defaultdict(float, {key: total / (counts[key] + damping) for key, total in sums.items()})


def remove(train, test, damping, sweeps, outputs=None):
    """Fits on `train`; returns {"mean", "rmse"} with rmse = held-out error of mean + biases alone.

    outputs = (train, test, offsets): also writes both files without biases, and for each line of test the offset
    that must be added to a prediction.
    """
    mean, users, items = fit(train, damping, sweeps)
    squares, count = 0.0, 0
    for user, item, rating in read_ratings(test):
        squares += (rating - mean - users.get(user, 0.0) - items.get(item, 0.0)) ** 2
        count += 1
    if outputs is not None:
        _write(train, outputs[0], None, mean, users, items)
        _write(test, outputs[1], outputs[2], mean, users, items)
    return {"mean": mean, "rmse": math.sqrt(squares / count)}


def _write(source, path, offsets_path, mean, users, items):
    with open(path, "w", encoding="utf-8") as out:
        offsets = open(offsets_path, "w", encoding="utf-8") if offsets_path else None
        for user, item, rating in read_ratings(source):
            offset = mean + users.get(user, 0.0) + items.get(item, 0.0)
            out.write(f"{user} {item} {rating - offset:.6f}\n")
            if offsets:
                offsets.write(f"{offset:.6f}\n")
        if offsets:
            offsets.close()


def remove_fast(tool, train, test, damping, sweeps, outputs=None):
    """remove() by the compiled tool when there is one, else here (about a minute for ten million ratings)."""
    if tool is None:
        return remove(train, test, damping, sweeps, outputs)
    command = [str(tool), str(train), str(test), str(damping), str(sweeps), *(str(path) for path in outputs or ())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def choose(tool, train, test, dampings, sweeps):
    """The damping with the lowest held-out error of the biases alone: chosen in the peer's favour. Returns
    (damping, {damping: rmse})."""
    tried = {damping: remove_fast(tool, train, test, damping, sweeps)["rmse"] for damping in dampings}
    return min(tried, key=tried.get), tried
