"""What the end-to-end tests share: the binary as a user calls it, small data with a known answer, and the files of a run.

ORRERY names the binary under test; ORRERY_SOURCE_DIR the source tree."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

kBinary = os.environ.get("ORRERY", "")
kSource = Path(os.environ.get("ORRERY_SOURCE_DIR", Path(__file__).resolve().parents[2]))
kReal = kSource / "tests" / "data" / "real"

DONE, NOT_REACHED, USAGE, DATA, INTERNAL, OUTPUT, LOST, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130


def ratings_text(users=60, items=40, ratings=1500, rank=3, seed=1, separator=" "):
    """Ratings of a low-rank model with biases and a little noise: `user item rating` lines."""
    draw = random.Random(seed)
    row = lambda: [draw.gauss(0, 0.6) for _ in range(rank)]
    user_rows, item_rows = [row() for _ in range(users)], [row() for _ in range(items)]
    user_bias, item_bias = [draw.gauss(0, 0.3) for _ in range(users)], [draw.gauss(0, 0.5) for _ in range(items)]
    pairs = draw.sample(range(users * items), min(ratings, users * items))
    lines = []
    for pair in pairs:
        user, item = divmod(pair, items)
        product = sum(a * b for a, b in zip(user_rows[user], item_rows[item]))
        value = 3.5 + user_bias[user] + item_bias[item] + product + draw.gauss(0, 0.1)
        lines.append(separator.join((f"u{user}", f"i{item}", f"{value:.3f}")))
    return "\n".join(lines) + "\n"


class CommandLine(unittest.TestCase):
    """A test with a directory of its own (`self.dir`), gone afterwards."""

    maxDiff = None

    def setUp(self):
        if not kBinary:
            self.fail("ORRERY must name the binary under test")
        self.dir = Path(tempfile.mkdtemp(prefix="orrery-test-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name):
        """A place in the test's own directory."""
        return self.dir / name

    def write(self, name, content):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def write_gzip(self, name, text):
        return self.write(name, gzip.compress(text.encode()))

    def ratings(self, name="train.txt", **shape):
        return self.write(name, ratings_text(**shape))

    def start(self, *words, **popen):
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([kBinary, *map(str, words)], text=True, stdin=subprocess.DEVNULL, **popen)
        self.addCleanup(self.finish_off, process)
        return process

    @staticmethod
    def finish_off(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def run_orrery(self, *words, expect=DONE, timeout=120, **options):
        """Runs one command and insists on its exit code; whatever happens it must not die of a signal."""
        done = subprocess.run([kBinary, *map(str, words)], text=True, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=timeout, **options)
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"orrery {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done

    def train(self, data, out, *words, expect=DONE, **options):
        return self.run_orrery("train", "mf", data, "--out", out, *words, expect=expect, **options)

    def record(self, out):
        return json.loads((Path(out) / "run.json").read_text())

    def checksum(self, out):
        return self.record(out)["result"]["model_checksum"]

    def metrics(self, out):
        return [json.loads(line) for line in (Path(out) / "metrics.jsonl").read_text().splitlines()]

    def assert_no_model(self, out):
        self.assertFalse((Path(out) / "model").exists(), "a model was left behind")

    def assert_no_temporaries(self, directory):
        left = [str(path) for path in Path(directory).rglob("*") if ".tmp-" in path.name]
        self.assertEqual(left, [])

    def wait_for(self, condition, what, process=None, seconds=60):
        """Polls until the condition holds; how long a step takes is not what these tests are about."""
        deadline = time.monotonic() + seconds
        while not condition():
            if process is not None and process.poll() is not None:
                self.fail(f"the program ended with {process.returncode} before {what}")
            if time.monotonic() > deadline:
                self.fail(f"no {what} within {seconds} s")
            time.sleep(0.001)


def line_count(path):
    try:
        return Path(path).read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def checkpoints(out):
    """Files of whole checkpoints, oldest first."""
    files = (Path(out) / "checkpoint").glob("clock-*.ckpt")
    return sorted(files, key=lambda path: int(path.stem.split("-")[1]))
