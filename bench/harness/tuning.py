"""Fair tuning: every setting of the grid is tried, all of it is recorded, and the peer races with its best one."""

import hashlib
import json
from pathlib import Path

from harness import curves, templates
from harness.errors import ContenderFailed


class Tuner:
    """Tries the grid of a contender; results are kept in `folder`, keyed by program, data, command and grid."""

    def __init__(self, folder, fresh=False, say=print):
        self._folder, self._fresh, self._say = Path(folder), fresh, say

    def tune(self, adapter, contender, values, prepared, better):
        """[{"settings", "curve"} or {"settings", "failed"}] for all combinations of the grid, in its order."""
        path = self._folder / f"tuned-{contender.name}-{self._key(adapter, contender, values, prepared)}.json"
        if path.exists() and not self._fresh:
            self._say(f"  {contender.name}: tuning of an earlier run is used")
            return json.loads(path.read_text(encoding="utf-8"))
        trials = [self._try(adapter, contender, {**values, **settings}, settings, better)
                  for settings in templates.product(contender.grid)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(trials), encoding="utf-8")
        return trials

    def _try(self, adapter, contender, values, settings, better):
        try:
            curve = adapter.explore(contender, values, better)
        except ContenderFailed as failure:
            self._say(f"  {contender.name} {settings}: failed: {failure}")
            return {"settings": settings, "failed": str(failure)}
        best = curves.best_point(curve, better)
        self._say(f"  {contender.name} {settings}: {_told(best)}")
        return {"settings": settings, "curve": curve}

    def _key(self, adapter, contender, values, prepared):
        digest = hashlib.sha256(Path(adapter.executable).read_bytes())
        relevant = {key: value for key, value in values.items() if isinstance(value, (int, float))}
        parts = [prepared.checksums, contender.command, contender.grid, contender.iterations, contender.patience, relevant]
        digest.update(json.dumps(parts, sort_keys=True).encode())
        return digest.hexdigest()[:12]


def _told(best):
    return "no quality" if best is None else f"best {best[2]:.6g} after {best[0]} iterations, {best[1]:.3g} s"


def choose(trials, better, target=None):
    """The trial to race with. Without a target: best quality, of equal ones the quickest there. With a target: the
    quickest to it; if none reaches it, as without. None when every trial failed."""
    good = [trial for trial in trials if "curve" in trial and curves.best_point(trial["curve"], better)]
    if target is not None:
        reaching = [trial for trial in good if curves.first_reaching(trial["curve"], target, better)]
        if reaching:
            return min(reaching, key=lambda trial: curves.seconds_to(trial["curve"], target, better))
    sign = 1 if better == "lower" else -1

    def rank(trial):
        point = curves.best_point(trial["curve"], better)
        return (sign * point[2], point[1])

    return min(good, key=rank) if good else None


def record(trials, better):
    """What the result file keeps of the grid: settings with best quality and where, not whole curves."""
    kept = []
    for trial in trials:
        best = curves.best_point(trial.get("curve", []), better)
        kept.append({"settings": trial["settings"], "best_quality": best[2] if best else None,
                     "at_iteration": best[0] if best else None,
                     **({"failed": trial["failed"]} if "failed" in trial else {})})
    return kept
