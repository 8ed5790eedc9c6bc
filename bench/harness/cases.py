"""Case files: read, checked, and expanded over their matrix into plain cases."""

import json
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from harness import schema, templates
from harness.errors import BenchError


@dataclass
class Contender:
    """One side of a race. `program`: one of our own beside orrery, instead of it. `data` names a derived data set ("debiased"), `ranks` how many of them mpirun starts, `grid` the settings that are
    tried, `tune_with` values that hold while they are (more threads, to be done sooner)."""

    name: str
    kind: str
    command: list
    peer: str = ""
    program: str = ""
    data: str = "plain"
    quality_key: str = "valid"
    predict: list = field(default_factory=list)
    grid: dict = field(default_factory=dict)
    tune_with: dict = field(default_factory=dict)
    iterations: int = 0
    patience: int = 5
    copies: int = 1
    ranks: int = 1
    values: dict = field(default_factory=dict)


@dataclass
class Case:
    """One race after expansion: a data set, a quality, targets, contenders. `values` fill the templates."""

    name: str
    issue: int
    what: str
    dataset: str
    quality: dict
    targets: dict
    values: dict
    contenders: list
    rounds: int = 0


def load(paths):
    """Reads case files. Returns (datasets, peers, cases); names must be unique over all files."""
    datasets, peers, cases = {}, {}, []
    for path in paths:
        content = _read(path)
        for name, dataset in content["datasets"].items():
            _check_dataset(dataset, f"{path}: dataset {name}")
            _add(datasets, name, dataset, path)
        for name, peer in content.get("peers", {}).items():
            schema.check(peer, schema.kPeer, f"{path}: peer {name}")
            _add(peers, name, peer, path)
        for raw in content["cases"]:
            cases += _expand(raw, content.get("contenders", {}), path)
    _check_names(cases, datasets, peers)
    return datasets, peers, cases


def select(cases, patterns):
    """The cases whose name matches one of the shell patterns; all when there are none. No match is an error."""
    if not patterns:
        return cases
    chosen = [case for case in cases if any(fnmatch(case.name, pattern) for pattern in patterns)]
    if not chosen:
        raise BenchError(f"no case matches {patterns}, known are {', '.join(case.name for case in cases)}")
    return chosen


def default_files(root):
    """The case files of the project, in the order of their names."""
    return sorted(Path(root, "bench", "cases").glob("*.json"))


def _read(path):
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise BenchError(f"{path}:{error.lineno}:{error.colno}: {error.msg}") from error
    schema.check(content, schema.kCaseFile, str(path))
    schema.check_version(content, str(path))
    return content


def _check_dataset(dataset, where):
    schema.check(dataset, schema.kDataset, where)
    if "debias" in dataset:
        schema.check(dataset["debias"], schema.kDebias, f"{where}: debias")


def _add(table, name, value, path):
    if table.get(name, value) != value:
        raise BenchError(f"{path}: '{name}' is defined twice and differently")
    table[name] = value


def _expand(raw, shared, path):
    schema.check(raw, schema.kCase, f"{path}: case {raw.get('name', '?')}")
    expanded = []
    for combination in templates.product(raw.get("matrix", {})):
        values = {**raw.get("values", {}), **combination}
        name = templates.fill(raw["name"], values)
        where = f"{path}: case {name}"
        schema.check(raw["quality"], schema.kQuality, where)
        if raw["quality"]["better"] not in ("lower", "higher"):
            raise BenchError(f"{where}: 'better' is lower or higher, not '{raw['quality']['better']}'")
        contenders = [_contender(item, shared, where) for item in raw["contenders"]]
        targets = raw.get("targets", {})
        _check_targets(targets, contenders, where)
        expanded.append(Case(name, raw["issue"], templates.fill(raw["what"], values), raw["dataset"], raw["quality"],
                             targets, values, contenders, raw.get("rounds", 0)))
    return expanded


def _contender(raw, shared, where):
    """{"use": NAME, ...} takes the file's contender of that name and replaces what stands beside."""
    if "use" in raw:
        if raw["use"] not in shared:
            raise BenchError(f"{where}: no contender '{raw['use']}' in the file's 'contenders'")
        raw = {"name": raw["use"], **shared[raw["use"]], **{key: value for key, value in raw.items() if key != "use"}}
    schema.check(raw, schema.kContender, f"{where}: contender {raw.get('name', '?')}")
    return Contender(**raw)


def _check_targets(targets, contenders, where):
    names = [contender.name for contender in contenders]
    for name, target in targets.items():
        schema.check(target, schema.kTarget, f"{where}: target {name}")
        if ("best_of" in target) == ("value" in target):
            raise BenchError(f"{where}: target {name} needs either 'best_of' or 'value'")
        if target.get("best_of", names[0]) not in names:
            raise BenchError(f"{where}: target {name}: no contender '{target['best_of']}'")


def _check_names(cases, datasets, peers):
    seen = set()
    for case in cases:
        if case.name in seen:
            raise BenchError(f"two cases are called '{case.name}'")
        seen.add(case.name)
        if case.dataset not in datasets:
            raise BenchError(f"case {case.name}: no dataset '{case.dataset}'")
        for contender in case.contenders:
            if contender.peer and contender.peer not in peers:
                raise BenchError(f"case {case.name}: no peer '{contender.peer}'")
