"""How each kind of contender is run and measured. An adapter turns a command into a measurement:

  curve           [[iteration, training seconds, quality], ...], evaluation time not counted
  training_seconds, command_seconds, cpu_seconds, peak_rss_bytes, iterations, best_quality, items_per_second, ...

Kinds: `orrery` (metrics.jsonl and run.json), `libmf` (libmf.py), `points` (any program or wrapper that prints one JSON
object {"iteration", "seconds", "quality"} a line, for peers of later issues), `micro` (Google Benchmark's JSON).
"""

import json
import shutil
from pathlib import Path

from harness import curves, processes, templates
from harness.errors import BenchError, ContenderFailed

kNotReached = 1  # cli.md: an explicit --target was not reached before a limit


class Adapter:
    """What the runner asks of every kind."""

    def __init__(self, executable):
        self.executable = str(executable)

    def command(self, contender, values):
        launcher = ["mpirun", "-n", str(contender.ranks)] if contender.ranks > 1 else []
        return [*launcher, self.executable, *templates.fill_all(contender.command, values)]

    def explore(self, contender, values, better):
        """A tuning run: its curve, with quality. Only contenders with a grid or a peer's target need it."""
        return self.measure(contender, values, better, None)["curve"]

    def measure(self, contender, values, better, known_curve):
        """One timed round. known_curve is the tuning's curve at these settings, for peers whose timed run must
        not evaluate."""
        raise NotImplementedError

    def predict(self, contender, values):
        """Writes predictions for {test} to {predictions} from the files of the last measured round."""
        if not contender.predict:
            raise BenchError(f"contender {contender.name} has no 'predict' command")
        outcome = processes.run([self.executable, *templates.fill_all(contender.predict, values)])
        require(outcome)


def require(outcome, allowed=(0,)):
    """Turns an unexpected exit code into ContenderFailed, with the end of what the program said."""
    if outcome.returncode not in allowed:
        said = outcome.stderr_tail or "\n".join(text for _, text in outcome.lines[-5:])
        raise ContenderFailed(f"{Path(outcome.command[0]).name} gave exit code {outcome.returncode}: {said}")


def measured_from_outside(outcome):
    return {"command_seconds": outcome.wall_seconds, "cpu_seconds": outcome.cpu_seconds,
            "peak_rss_bytes": outcome.peak_rss_bytes}


def with_quality(measurement, better):
    best = curves.best_point(measurement["curve"], better)
    return {**measurement, "best_quality": best[2] if best else None}


def folder_bytes(folder):
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


class Orrery(Adapter):
    """`orrery train …`: {out} is a fresh folder for every round and copy."""

    def measure(self, contender, values, better, known_curve):
        outs = [f"{values['out']}-{index}" for index in range(contender.copies)]
        for out in outs:
            shutil.rmtree(out, ignore_errors=True)
        commands = [self.command(contender, {**values, "out": out}) for out in outs]
        outcomes = [processes.run(commands[0])] if len(commands) == 1 else processes.run_copies(commands)
        for outcome in outcomes:
            require(outcome, (0, kNotReached))
        parts = [self._read(out, outcome, contender, values) for out, outcome in zip(outs, outcomes)]
        measurement = with_quality(_worst(parts), better)
        values["model"] = outs[0]
        return measurement

    def _read(self, out, outcome, contender, values):
        run = read_json(Path(out, "run.json"))
        result = run["result"]
        lines = [json.loads(line) for line in Path(out, "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
        curve = [[line["iteration"], line["seconds"], pick(line, contender.quality_key)] for line in lines]
        training = result["seconds"]
        found = {
            **measured_from_outside(outcome), "curve": curve, "training_seconds": training,
            "iterations": result["iterations"], "loading_seconds": result["seconds_loading"],
            "model_bytes": folder_bytes(Path(out, "model")), "exit_code": outcome.returncode,
            "items_per_second": values["items"] * result["iterations"] / training if training > 0 else None,
            "model_checksum": result.get("model_checksum"), "stopped_by": result.get("stopped_by"),
            "warnings": run.get("warnings", []), "threads": run.get("threads"), "workers": run.get("workers"),
        }
        found["bytes_per_item_beside_model"] = (found["peak_rss_bytes"] - found["model_bytes"]) / values["items"]
        for key, value in result.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found[f"result.{key}"] = value
        for key in ("first_iteration_seconds", "later_iteration_seconds"):
            found[f"plan.{key}"] = run.get("plan", {}).get(key)
        waits = [line.get("wait_seconds") for line in lines]
        if lines and all(wait is not None for wait in waits) and training > 0 and run.get("threads"):
            found["idle_fraction"] = waits[-1] / (run["threads"] * training)
        return found


def _worst(parts):
    """One measurement of several copies that ran at once: throughputs add up, times and sizes are the largest."""
    merged = dict(parts[0])
    if len(parts) > 1:
        merged["items_per_second"] = sum(part["items_per_second"] for part in parts)
        for key in ("training_seconds", "command_seconds", "cpu_seconds", "peak_rss_bytes", "loading_seconds"):
            merged[key] = max(part[key] for part in parts)
    return merged


def pick(line, dotted):
    """line["a"]["b"] for "a.b"; None when it is not there."""
    for key in dotted.split("."):
        if not isinstance(line, dict) or key not in line:
            return None
        line = line[key]
    return line


def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ContenderFailed(f"{path.name}: {error}") from error


class Points(Adapter):
    """A program that prints its curve itself, one JSON object a line; other lines are ignored. It promises that
    `seconds` is training time. A line {"result": {...}} adds numbers to the measurement."""

    def measure(self, contender, values, better, known_curve):
        outcome = processes.run(self.command(contender, values))
        require(outcome)
        curve, extra = [], {}
        for _, text in outcome.lines:
            if text.startswith("{"):
                line = json.loads(text)
                extra.update(line.get("result", {}))
                if "quality" in line:
                    curve.append([line["iteration"], line["seconds"], line["quality"]])
        if not curve:
            raise ContenderFailed(f"{Path(self.executable).name} printed no line with a quality")
        training = curve[-1][1]
        rate = values["items"] * curve[-1][0] / training if training > 0 else None
        return with_quality({**measured_from_outside(outcome), "curve": curve, "training_seconds": training,
                             "iterations": curve[-1][0], "items_per_second": rate, **extra}, better)


class Micro(Adapter):
    """A Google Benchmark program: one metric per benchmark and counter, `NAME.real_time` in nanoseconds."""

    kScale = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}

    def measure(self, contender, values, better, known_curve):
        out = Path(values["out"] + ".json")
        outcome = processes.run([*self.command(contender, values), f"--benchmark_out={out}",
                                 "--benchmark_out_format=json"])
        require(outcome)
        found = {**measured_from_outside(outcome), "curve": []}
        for benchmark in read_json(out)["benchmarks"]:
            found.update(self.metrics(benchmark))
        return found

    @classmethod
    def metrics(cls, benchmark):
        if benchmark.get("error_occurred"):
            return {f"{benchmark['name']}.skipped": benchmark.get("error_message", "error")}
        scale = cls.kScale[benchmark["time_unit"]]
        known = {"real_time": benchmark["real_time"] * scale, "cpu_time": benchmark["cpu_time"] * scale}
        fixed = {"family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations",
                 "real_time", "cpu_time"}
        counters = {key: value for key, value in benchmark.items()
                    if key not in fixed and isinstance(value, (int, float)) and not isinstance(value, bool)}
        return {f"{benchmark['name']}.{key}": value for key, value in {**known, **counters}.items()}


def make(kind, executable):
    from harness.libmf import LibMf  # a cycle otherwise: LibMf is an Adapter

    kinds = {"orrery": Orrery, "libmf": LibMf, "points": Points, "micro": Micro}
    if kind not in kinds:
        raise BenchError(f"no kind of contender '{kind}', known are {', '.join(kinds)}")
    return kinds[kind](executable)
