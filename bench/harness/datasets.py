"""Data sets of the cases: bundled files unpacked, generated ones made once and cached under a key of their content.

Every contender reads plain text from the cache, so that nobody is charged for gzip. What was used stands in the
result with a checksum per file; bench/compare refuses to compare runs on different data.
"""

import gzip
import hashlib
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness import debias, templates
from harness.errors import BenchError

kChunk = 1 << 20


@dataclass
class Prepared:
    """A data set on disk: template values (file name -> path), lines and checksum of each file, and the bench's
    count of items (ratings, tokens, rows) for throughputs."""

    name: str
    files: dict
    lines: dict
    checksums: dict
    items: int
    debias: dict

    def record(self):
        return {"name": self.name, "items": self.items, "lines": self.lines, "sha256": self.checksums,
                "bytes": {part: Path(path).stat().st_size for part, path in self.files.items()},
                **({"debias": self.debias} if self.debias else {})}


class DataStore:
    """Makes and finds data sets. `orrery` runs the generators; `tool` is orrery_bench_debias or None."""

    def __init__(self, cache, root, orrery, tool=None, say=print):
        self._cache, self._root, self._orrery, self._tool, self._say = Path(cache), Path(root), orrery, tool, say

    def prepare(self, name, definition):
        """The data set as it is: files unpacked or generated. Cost: nothing when it is in the cache."""
        folder = self._cache / f"{name}-{self._key(definition)}"
        if not (folder / "manifest.json").exists():
            self._make(folder, definition)
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        files = {part: str(folder / f"{part}.txt") for part in definition["files"]}
        counted = definition.get("count", next(iter(files), None))
        return Prepared(name, files, manifest["lines"], manifest["sha256"], manifest["lines"].get(counted, 0), {})

    def debiased(self, plain, definition):
        """`plain` without mean and biases; adds the file `offsets`, a line per test line, to be added back."""
        settings = definition.get("debias")
        if settings is None:
            raise BenchError(f"dataset {plain.name} says nothing about 'debias'")
        key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
        folder = Path(plain.files["train"]).parent / f"debiased-{key}"
        if not (folder / "manifest.json").exists():
            self._debias(folder, plain, settings)
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        files = {**plain.files, **{part: str(folder / f"{part}.txt") for part in ("train", "test", "offsets")}}
        return Prepared(f"{plain.name}, debiased", files, manifest["lines"], manifest["sha256"], plain.items,
                        manifest["debias"])

    def _key(self, definition):
        """Hash of what makes the content: the commands of generated data, else the bundled files' bytes."""
        digest = hashlib.sha256()
        recipe = [definition.get("generate", []), definition["files"]]
        digest.update(json.dumps(recipe, sort_keys=True).encode())
        if "generate" not in definition:
            for source in definition["files"].values():
                digest.update((self._root / source).read_bytes())
        return digest.hexdigest()[:12]

    def _make(self, folder, definition):
        with _building(folder) as building:
            if "generate" in definition:
                self._generate(building, definition)
            for part, source in definition["files"].items():
                origin = building / source if "generate" in definition else self._root / source
                _unpack(origin, building / f"{part}.txt")
            _write_manifest(building, definition["files"], {})

    def _generate(self, folder, definition):
        for words in definition["generate"]:
            self._say(f"data: orrery {' '.join(words)}")
            command = [str(self._orrery), *templates.fill_all(words, {"dir": str(folder)})]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise BenchError(f"{' '.join(command)} gave {done.returncode}: {done.stderr.strip()}")

    def _debias(self, folder, plain, settings):
        train, test = plain.files["train"], plain.files["test"]
        self._say(f"data: removing mean and biases from {plain.name}")
        damping, tried = debias.choose(self._tool, train, test, settings["dampings"], settings["sweeps"])
        with _building(folder) as building:
            outputs = [building / f"{part}.txt" for part in ("train", "test", "offsets")]
            found = debias.remove_fast(self._tool, train, test, damping, settings["sweeps"], outputs)
            facts = {"damping": damping, "sweeps": settings["sweeps"], "rmse_of_biases": found["rmse"],
                     "mean": found["mean"], "tried": {str(key): value for key, value in tried.items()}}
            _write_manifest(building, ("train", "test", "offsets"), {"debias": facts})


class _building:
    """A folder that appears under its name only when everything in it is complete."""

    def __init__(self, folder):
        self._folder = folder

    def __enter__(self):
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        self._temporary = Path(tempfile.mkdtemp(prefix=f".{self._folder.name}-", dir=self._folder.parent))
        return self._temporary

    def __exit__(self, kind, value, trace):
        if kind is None and not self._folder.exists():
            self._temporary.rename(self._folder)
        else:
            shutil.rmtree(self._temporary)


def _unpack(source, path):
    if not source.exists():
        raise BenchError(f"{source}: no such file")
    if source == path:
        return
    opener = gzip.open if source.suffix == ".gz" else open
    with opener(source, "rb") as packed, open(path, "wb") as plain:
        shutil.copyfileobj(packed, plain, kChunk)


def _write_manifest(folder, parts, more):
    lines, checksums = {}, {}
    for part in parts:
        digest, count = hashlib.sha256(), 0
        with open(folder / f"{part}.txt", "rb") as content:
            while chunk := content.read(kChunk):
                digest.update(chunk)
                count += chunk.count(b"\n")
        lines[part], checksums[part] = count, digest.hexdigest()
    text = json.dumps({"lines": lines, "sha256": checksums, **more}, indent=1)
    (folder / "manifest.json").write_text(text, encoding="utf-8")


def warm(prepared):
    """Reads every file once, so that the first contender does not pay for the disk."""
    for path in prepared.files.values():
        with open(path, "rb") as content:
            while content.read(kChunk):
                pass
