"""Common evaluators: the quality of everybody's predictions, computed here and not by the contenders."""

import math

from harness import debias
from harness.errors import BenchError, ContenderFailed


def rmse(predictions, prepared, plain_test):
    """Held-out RMSE of a file with one prediction a line against the ratings of `plain_test`.

    Where the contender was fed debiased ratings its data set has offsets, which are added back first.
    """
    offsets = prepared.files.get("offsets")
    squares, count = 0.0, 0
    with open(predictions, encoding="utf-8") as predicted:
        added = open(offsets, encoding="utf-8") if offsets else None
        for _, _, rating in debias.read_ratings(plain_test):
            line = predicted.readline()
            if not line:
                raise ContenderFailed(f"only {count} predictions, the test file has more lines")
            value = float(line.split()[0]) + (float(added.readline()) if added else 0.0)
            squares += (rating - value) ** 2
            count += 1
        if added:
            added.close()
    return math.sqrt(squares / count)


kEvaluators = {"rmse": rmse}


def find(name):
    if name not in kEvaluators:
        raise BenchError(f"no evaluator '{name}', known are {', '.join(kEvaluators)}")
    return kEvaluators[name]
