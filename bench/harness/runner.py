"""Runs cases: data, tuning, targets, then rounds in which the contenders take turns (A B A B …)."""

import hashlib
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from harness import adapters, curves, datasets, evaluators, machine, stats, tuning
from harness.errors import BenchError, ContenderFailed


kDefaultRounds = 3


@dataclass
class Entry:
    """A contender on its way through a case: its program, its data, its settings, its rounds."""

    contender: object
    adapter: object = None
    program: dict = None
    prepared: object = None
    settings: dict = field(default_factory=dict)
    known_curve: list = None
    trials: list = None
    rounds: list = field(default_factory=list)
    skipped: str = ""
    failed: str = ""
    command: list = field(default_factory=list)

    @property
    def alive(self):
        return not self.skipped and not self.failed


def turns(count, rounds):
    """The order of runs: (round, index) with every contender once per round, A B A B, never A A B B."""
    return [(turn, index) for turn in range(rounds) for index in range(count)]


class Runner:
    """`find(contender)` gives the program of a contender, or raises ContenderFailed with the reason to skip it.
    `rounds` = None: as many as the case says."""

    def __init__(self, store, tuner, find, rounds, say=print, scratch=None):
        self._store, self._tuner, self._find = store, tuner, find
        self._rounds, self._say, self._scratch = rounds, say, scratch

    def run_case(self, case, definition):
        """One case as the result file has it."""
        self._say(f"case {case.name}: {case.what}")
        with tempfile.TemporaryDirectory(prefix="orrery-bench-", dir=self._scratch) as scratch:
            self._case, self._better, self._folder = case, case.quality["better"], Path(scratch)
            self._plain = self._store.prepare(case.dataset, definition)
            entries = [self._enter(contender, definition) for contender in case.contenders]
            for prepared in [entry.prepared for entry in entries if entry.alive]:
                datasets.warm(prepared)
            targets = self._settle(entries)
            load = machine.load()
            order = self._race(entries, targets)
            return self._record(entries, targets, order, [load, machine.load()])

    def _enter(self, contender, definition):
        entry = Entry(contender)
        try:
            program = Path(self._find(contender))
            entry.adapter = adapters.make(contender.kind, program)
            entry.program = {"name": program.name, "sha256": hashlib.sha256(program.read_bytes()).hexdigest()}
            if contender.data not in ("plain", "debiased"):
                raise BenchError(f"contender {contender.name}: no kind of data '{contender.data}'")
            entry.prepared = self._plain if contender.data == "plain" else self._store.debiased(self._plain, definition)
        except ContenderFailed as reason:
            entry.skipped = str(reason)
            self._say(f"  {contender.name} is skipped: {reason}")
        return entry

    def _values(self, entry, targets, turn=0):
        """What templates may use. Targets come as {target} (the first) and {target.NAME}, the round as {seed}, from 1."""
        known = {f"target.{name}": value for name, value in targets.items() if value is not None}
        if self._case.targets and next(iter(self._case.targets)) in targets:
            first = targets[next(iter(self._case.targets))]
            known.update({"target": first} if first is not None else {})
        return {"seed": turn + 1, **self._case.values, **entry.contender.values, **entry.prepared.files,
                "items": entry.prepared.items, "out": str(self._folder / entry.contender.name), **known, **entry.settings,
                "predictions": str(self._folder / f"{entry.contender.name}.predictions")}

    def _settle(self, entries):
        """Tunes and finds the targets: first the contenders whose best is a target, then the others towards it."""
        defining = {target["best_of"] for target in self._case.targets.values() if "best_of" in target}
        for entry in entries:
            if entry.contender.name in defining:
                self._guard(entry, self._tune, None)
        targets = {name: self._target(target, entries) for name, target in self._case.targets.items()}
        first = targets[next(iter(targets))] if targets else None
        for entry in entries:
            if entry.contender.name not in defining and entry.contender.grid:
                self._guard(entry, self._tune, first)
        for name, value in targets.items():
            self._say(f"  target {name}: {value}")
        return targets

    def _target(self, target, entries):
        if "value" in target:
            return target["value"]
        entry = next(entry for entry in entries if entry.contender.name == target["best_of"])
        best = curves.best_point(entry.known_curve or [], self._better)
        return best[2] if best else target.get("otherwise")

    def _tune(self, entry, target):
        """Grid, choice, then the curve of the chosen settings at the case's own values."""
        contender, values = entry.contender, self._values(entry, {})
        if contender.grid:
            tuned_at = {**values, **contender.tune_with}
            entry.trials = self._tuner.tune(entry.adapter, contender, tuned_at, entry.prepared, self._better)
            chosen = tuning.choose(entry.trials, self._better, target)
            if chosen is None:
                raise ContenderFailed("no setting of the grid worked")
            entry.settings = dict(chosen["settings"])
        entry.known_curve = entry.adapter.explore(contender, {**values, **entry.settings}, self._better)
        best = curves.best_point(entry.known_curve, self._better)
        if best is None:
            raise ContenderFailed("the chosen settings gave no quality")
        entry.settings["iterations"] = best[0]
        self._say(f"  {contender.name} races with {entry.settings}")

    def _race(self, entries, targets):
        order = []
        running = [entry for entry in entries if entry.alive]
        for turn, index in turns(len(running), self._rounds or self._case.rounds or kDefaultRounds):
            if running[index].alive:
                self._guard(running[index], self._round, targets, turn)
                order.append(running[index].contender.name)
        return order

    def _round(self, entry, targets, turn):
        values = self._values(entry, targets, turn)
        found = entry.adapter.measure(entry.contender, values, self._better, entry.known_curve)
        for name, target in targets.items():
            reached = None if target is None else curves.seconds_to(found["curve"], target, self._better)
            found[f"seconds_to_{name}"] = reached
        if turn == 0 and entry.contender.predict and "evaluator" in self._case.quality:
            entry.adapter.predict(entry.contender, values)
            evaluate = evaluators.find(self._case.quality["evaluator"])
            found["checked_quality"] = evaluate(values["predictions"], entry.prepared, self._plain.files["test"])
        entry.command = self._shown(entry.adapter.command(entry.contender, values), values)
        entry.rounds.append(found)
        self._say(f"  round {turn + 1} {entry.contender.name}: {_line(found, targets)}")

    def _guard(self, entry, step, *arguments):
        if not entry.alive:
            return
        try:
            step(entry, *arguments)
        except ContenderFailed as failure:
            entry.failed = str(failure)
            self._say(f"  {entry.contender.name} FAILED: {failure}")

    def _shown(self, command, values):
        """The command as one can repeat it elsewhere: files by the names that the case gives them."""
        names = {str(value): f"{{{key}}}" for key, value in values.items() if isinstance(value, str) and "/" in value}
        shown = [Path(command[0]).name]
        for argument in command[1:]:
            if Path(argument).is_absolute() and os.access(argument, os.X_OK) and Path(argument).is_file():
                argument = Path(argument).name  # what a launcher starts
            for path in sorted(names, key=len, reverse=True):
                argument = argument.replace(path, names[path])
            shown.append(argument)
        return shown

    def _record(self, entries, targets, order, load):
        return {
            "name": self._case.name, "issue": self._case.issue, "what": self._case.what, "data": self._plain.record(),
            "quality": self._case.quality, "values": self._case.values, "targets": targets, "order": order,
            "load": load, "contenders": [self._contender_record(entry) for entry in entries],
        }

    def _contender_record(self, entry):
        rounds = entry.rounds
        keys = sorted({key for found in rounds for key, value in found.items() if _is_metric(value)})
        record = {"name": entry.contender.name, "kind": entry.contender.kind, "command": entry.command, "rounds": rounds,
                  "summary": {key: stats.summary([found[key] for found in rounds if key in found]) for key in keys}}
        if entry.trials is not None:
            record["tuning"] = {"trials": tuning.record(entry.trials, self._better), "data": entry.prepared.record()}
        if entry.settings:
            record["settings"] = entry.settings
        if entry.adapter is not None:
            record["executable"] = entry.program
        if entry.skipped:
            record["skipped"] = entry.skipped
        if entry.failed:
            record["failed"] = entry.failed
        return record


def _is_metric(value):
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _line(found, targets):
    parts = [f"to {name} {_seconds(found[f'seconds_to_{name}'])}" for name in targets]
    if found.get("best_quality") is not None:
        parts.append(f"best {found['best_quality']:.6g}")
    parts.append(f"command {found['command_seconds']:.3g} s")
    return ", ".join(parts)


def _seconds(value):
    return "not reached" if value is None else f"{value:.4g} s"
