"""Checks JSON against the few schemas of the harness. Unknown keys are errors: an option that is read by nobody
would make a case measure something else than it says."""

from harness.errors import BenchError

kNumber = (int, float)
kSchemaVersion = 1

kCaseFile = {"schema": (int, True), "datasets": (dict, True), "cases": (list, True), "peers": (dict, False),
             "contenders": (dict, False)}
kDataset = {
    "what": (str, True), "generate": (list, False), "files": (dict, True),
    "count": (str, False), "debias": (dict, False),
}
kDebias = {"dampings": (list, True), "sweeps": (int, True)}
kPeer = {"kind": (str, True), "executable": (str, True), "what": (str, True)}
kCase = {
    "name": (str, True), "issue": (int, True), "what": (str, True), "dataset": (str, True), "quality": (dict, True),
    "targets": (dict, False), "matrix": (dict, False), "values": (dict, False), "contenders": (list, True),
    "rounds": (int, False),
}
kQuality = {"name": (str, True), "better": (str, True), "evaluator": (str, False)}
kTarget = {"best_of": (str, False), "value": (kNumber, False), "otherwise": (kNumber, False)}
kContender = {
    "name": (str, True), "kind": (str, True), "command": (list, True), "peer": (str, False), "program": (str, False),
    "data": (str, False), "quality_key": (str, False), "predict": (list, False), "grid": (dict, False), "tune_with": (dict, False),
    "iterations": (int, False), "patience": (int, False), "copies": (int, False), "ranks": (int, False), "values": (dict, False),
}
kTargets = {"schema": (int, True), "targets": (list, True), "notes": (dict, False)}
kTargetEntry = {
    "id": (str, True), "issue": (int, True), "text": (str, True), "for": (list, False), "value": (str, False),
    "ratio": (list, False), "at_most": (kNumber + (str,), False), "at_least": (kNumber + (str,), False),
    "unit": (str, False),
}
kResult = {
    "schema": (int, True), "kind": (str, True), "created": (str, True), "record": (dict, True),
    "cases": (list, True), "arguments": (list, True),
}
kResultCase = {
    "name": (str, True), "issue": (int, True), "what": (str, True), "data": (dict, True), "quality": (dict, True),
    "values": (dict, True), "targets": (dict, True), "contenders": (list, True), "order": (list, True),
    "load": (list, True),
}
kResultContender = {
    "name": (str, True), "kind": (str, True), "command": (list, True), "rounds": (list, True), "summary": (dict, True),
    "skipped": (str, False), "failed": (str, False), "tuning": (dict, False), "settings": (dict, False),
    "executable": (dict, False),
}


def check(node, keys, where):
    """Raises BenchError when `node` lacks a required key, has an unknown one, or a value of the wrong type."""
    if not isinstance(node, dict):
        raise BenchError(f"{where}: expected an object, got {type(node).__name__}")
    for key, value in node.items():
        if key not in keys:
            raise BenchError(f"{where}: unknown key '{key}', known are {', '.join(sorted(keys))}")
        wanted = keys[key][0]
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise BenchError(f"{where}: '{key}' has the type {type(value).__name__}")
    for key, (_, required) in keys.items():
        if required and key not in node:
            raise BenchError(f"{where}: '{key}' is missing")


def check_version(node, where):
    if node.get("schema") != kSchemaVersion:
        raise BenchError(f"{where}: schema {node.get('schema')}, this harness reads {kSchemaVersion}")


def check_result(result, where):
    """Checks a whole result file of bench/run; micro results (Google Benchmark's own JSON) hang below `cases`."""
    check(result, kResult, where)
    check_version(result, where)
    for case in result["cases"]:
        name = f"{where}: case {case.get('name', '?') if isinstance(case, dict) else '?'}"
        check(case, kResultCase, name)
        for contender in case["contenders"]:
            check(contender, kResultContender, f"{name}: contender")
