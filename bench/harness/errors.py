"""The errors of the harness: what the caller did wrong, and what a contender could not do."""


class BenchError(Exception):
    """The harness cannot go on: a wrong case file, a missing program, a result that does not fit its schema."""


class ContenderFailed(Exception):
    """One contender broke down. The others go on; the failure stands in the result and counts as a miss."""
