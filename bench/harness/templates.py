"""Command templates: `{name}` in an argument is replaced by a value; an unknown name is an error, not empty text."""

import itertools
import re

from harness.errors import BenchError

kField = re.compile(r"\{([A-Za-z_][A-Za-z_0-9.]*)\}")


def fill(text, values):
    """`text` with every {name} replaced. Braces that hold no name stay as they are."""

    def replace(match):
        if match.group(1) not in values:
            raise BenchError(f"'{text}' needs a value for '{match.group(1)}', known are {sorted(values)}")
        return str(values[match.group(1)])

    return kField.sub(replace, text)


def fill_all(node, values):
    """fill() over every string of nested lists and dictionaries, also over keys."""
    if isinstance(node, str):
        return fill(node, values)
    if isinstance(node, list):
        return [fill_all(item, values) for item in node]
    if isinstance(node, dict):
        return {fill(key, values): fill_all(value, values) for key, value in node.items()}
    return node


def product(lists):
    """All combinations of {"a": [1, 2], "b": [3]} as dictionaries, in the order written; one empty one for {}."""
    names = list(lists)
    return [dict(zip(names, combination)) for combination in itertools.product(*(lists[name] for name in names))]
