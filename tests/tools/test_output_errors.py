"""Output that cannot be written: exit code 5, a message that names the file, and never half a file under a final name.
Tried on every kind of file that a command writes, on a disk that fills up at many points, with a limit on the size of
files, and without permission."""

import json
import os
import resource
import shutil
import subprocess
import unittest
from pathlib import Path

from support import CommandLine, DATA, DONE, OUTPUT, checkpoints, kBinary


class SmallDisk:
    """A tmpfs of `size` bytes, unmounted at the end; None where this process may not mount."""

    def __init__(self, test, size):
        self.path = test.dir / "disk"
        self.path.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(self.path)], capture_output=True, text=True)
        if done.returncode != 0:
            test.skipTest(f"NO FULL DISK WAS TRIED: mounting a tmpfs was refused: {done.stderr.strip()}")
        test.addCleanup(subprocess.run, ["umount", "-l", str(self.path)], capture_output=True)

    def leave(self, free):
        """Fills the disk up to `free` bytes."""
        (self.path / "ballast").unlink(missing_ok=True)
        stat = os.statvfs(self.path)
        with open(self.path / "ballast", "wb") as ballast:
            ballast.write(b"x" * max(0, stat.f_bavail * stat.f_frsize - free))


class Output(CommandLine):
    def check_run_is_whole(self, out):
        """Whatever stands under a final name is complete."""
        out = Path(out)
        self.assert_no_temporaries(out)
        if (out / "run.json").exists():
            json.loads((out / "run.json").read_text())
        if (out / "metrics.jsonl").exists():
            text = (out / "metrics.jsonl").read_text()
            self.assertTrue(text == "" or text.endswith("\n"), "a line was cut short")
            for line in text.splitlines():
                json.loads(line)
        if (out / "model").exists():
            self.run_orrery("evaluate", "--model", out, self.data)

    def check_error(self, done, out):
        self.assertIn(done.returncode, (DONE, OUTPUT), done.stdout + done.stderr)
        if done.returncode == OUTPUT:
            self.assertIn("cannot write", done.stderr)
            self.assertNotIn(".tmp-", done.stderr)  # names that nobody asked for say nothing to anybody
        self.check_run_is_whole(out)


class FullDisk(Output):
    def setUp(self):
        super().setUp()
        self.data = self.ratings(ratings=2000)
        self.disk = SmallDisk(self, "2m")

    def test_a_run_at_every_point_of_filling_up(self):
        words = ("--iterations", "3", "--rank", "64", "--checkpoint-every", "1")
        self.train(self.data, self.dir / "r", *words)
        need = sum(file.stat().st_size for file in (self.dir / "r").rglob("*") if file.is_file())
        failed_on, codes = set(), []
        steps = [*range(0, 40960, 4096), *range(40960, need + 200000, max(4096, need // 25))]
        for free in steps:
            self.disk.leave(free)
            out = self.disk.path / "r"
            done = self.train(self.data, out, *words, expect=None)
            self.check_error(done, out)
            codes.append(done.returncode)
            if done.returncode == OUTPUT:
                failed_on.add(self.kind(done.stderr))
                self.assertFalse((self.record(out) if (out / "run.json").exists() else {}).get("result"))
            shutil.rmtree(out, ignore_errors=True)
        self.assertEqual(codes[0], OUTPUT)
        self.assertEqual(codes[-1], DONE)
        self.assertLessEqual({"checkpoint", "model"}, failed_on)
        self.assertTrue(failed_on & {"run.json", "directory"}, failed_on)

    @staticmethod
    def kind(message):
        for word in ("run.json", "metrics.jsonl", "checkpoint", "model"):
            if word in message:
                return word
        return "directory"

    def test_metrics_that_fill_the_disk(self):
        # No checkpoints: metrics.jsonl is all that grows.
        self.disk.leave(24576)
        out = self.disk.path / "r"
        done = self.train(self.data, out, "--iterations", "100000", "--rank", "1", expect=OUTPUT)
        self.assertIn("metrics.jsonl", done.stderr)
        self.check_run_is_whole(out)
        self.assert_no_model(out)

    def test_an_older_run_survives_results_that_do_not_fit(self):
        out = self.dir / "r"
        self.train(self.data, out, "--iterations", "2")
        target = self.disk.path / "p"
        for command in ("predict", "infer"):
            self.disk.leave(0)
            target.unlink(missing_ok=True)
            done = self.run_orrery(command, "--model", out, self.data, "--out", target, expect=OUTPUT)
            self.assertIn(str(target), done.stderr)
            self.assertFalse(target.exists())
            self.disk.leave(4096)
            target.write_text("old\n")
            self.run_orrery(command, "--model", out, self.data, "--out", target, expect=OUTPUT)
            self.assertEqual(target.read_text(), "old\n")
            self.assert_no_temporaries(self.disk.path)

    def test_data_commands_and_config(self):
        self.disk.leave(0)
        path = self.disk.path
        self.run_orrery("data", "generate", "ratings", "--out", path / "g", expect=OUTPUT)
        self.run_orrery("data", "split", self.data, "--out", path, expect=OUTPUT)
        self.run_orrery("data", "convert", self.data, "--to", "matrix-market", "--out", path / "c", expect=OUTPUT)
        self.train(self.data, self.dir / "r", "--dump-config", path / "d", expect=OUTPUT)
        self.assertFalse((self.dir / "r").exists())
        self.assertEqual([file.name for file in path.iterdir()], ["ballast"])


class SizeLimit(Output):
    """The same through a limit on the size of files, which needs no rights."""

    def test_every_file_of_a_run(self):
        self.data = self.ratings(ratings=2000)
        seen = set()
        for limit in (0, 16, 200, 1500, 4000, 6000, 10000, 20000, 40000, 10**7):
            out = self.dir / "r"
            done = self.train(self.data, out, "--iterations", "3", "--rank", "32", "--checkpoint-every", "1", expect=None,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            self.check_error(done, out)
            seen.add(done.returncode)
            shutil.rmtree(out, ignore_errors=True)
        self.assertEqual(seen, {DONE, OUTPUT})


class NoPermission(Output):
    """As somebody who may not write there: root may write anywhere, so the tests step down to nobody."""

    def setUp(self):
        super().setUp()
        self.dir.chmod(0o755)
        self.data = self.ratings(ratings=500)
        self.prefix, self.binary = [], kBinary
        if os.getuid() == 0:
            if not shutil.which("setpriv"):
                self.skipTest("NO PERMISSION WAS TRIED: root may write anywhere and there is no setpriv")
            self.prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            self.binary = self.dir / "orrery"
            shutil.copy(kBinary, self.binary)
            self.binary.chmod(0o755)

    def as_nobody(self, *words, expect):
        done = subprocess.run([*self.prefix, str(self.binary), *map(str, words)], capture_output=True, text=True, timeout=60,
                              cwd=self.dir, env={"PATH": os.environ["PATH"], "HOME": "/", **self.sanitizer_options()})
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    @staticmethod
    def sanitizer_options():
        return {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}

    def folder(self, name, mode):
        path = self.dir / name
        path.mkdir()
        path.chmod(mode)
        self.addCleanup(path.chmod, 0o755)
        return path

    def test_out_in_a_directory_that_is_not_ours(self):
        closed = self.folder("closed", 0o555)
        done = self.as_nobody("train", "mf", self.data, "--out", closed / "r", expect=OUTPUT)
        self.assertIn(str(closed / "r"), done.stderr)
        self.as_nobody("train", "mf", self.data, "--out", closed, expect=OUTPUT)

    def test_out_that_is_a_file(self):
        file = self.write("file", "x")
        self.as_nobody("train", "mf", self.data, "--out", file, expect=OUTPUT)
        self.assertEqual(file.read_text(), "x")

    def test_each_file_of_a_run_that_may_not_be_written(self):
        for name in ("metrics.jsonl", "checkpoint", "model"):
            with self.subTest(name):
                opened = self.folder(f"open-{name}", 0o777)
                out = opened / "r"
                self.as_nobody("train", "mf", self.data, "--out", out, "--iterations", "2", "--checkpoint-every", "1", expect=DONE)
                record = json.loads((out / "run.json").read_text())
                del record["result"]
                (out / "run.json").write_text(json.dumps(record))
                self.take_away(out / name)
                self.as_nobody("train", "mf", self.data, "--out", out, "--iterations", "4", "--checkpoint-every", "1",
                               "--resume", expect=OUTPUT)

    def take_away(self, path):
        """Leaves what is there readable, but not to be changed by nobody."""
        if path.name == "metrics.jsonl":
            # A plain file could be replaced by whoever owns the directory; a directory in its place cannot. Without
            # checkpoints the run starts anew and does not try to read it.
            path.unlink()
            path.mkdir()
            shutil.rmtree(path.parent / "checkpoint")
        elif path.is_dir():
            for file in path.iterdir():
                os.chown(file, 0, 0) if os.getuid() == 0 else None
            os.chown(path, 0, 0) if os.getuid() == 0 else None
            path.chmod(0o555)
            if path.name == "model" and os.getuid() == 0:
                # A directory of another owner can be renamed away by the owner of its parent, unless that is sticky.
                os.chown(path.parent, 0, 0)
                path.parent.chmod(0o1777)
                os.chmod(path.parent.parent, 0o1777)

    def test_results_of_commands(self):
        opened = self.folder("open", 0o777)
        self.as_nobody("train", "mf", self.data, "--out", opened / "r", "--iterations", "2", expect=DONE)
        closed = self.folder("closed", 0o555)
        model = ("--model", opened / "r", self.data, "--out", closed / "p")
        for words in (("predict", *model), ("infer", *model), ("data", "generate", "ratings", "--out", closed / "g"),
                      ("data", "convert", self.data, "--to", "matrix-market", "--out", closed / "c"),
                      ("data", "split", self.data, "--out", closed), ("data", "split", self.data, "--out", closed / "d"),
                      ("train", "mf", self.data, "--out", opened / "s", "--dump-config", closed / "d")):
            with self.subTest(words[0]):
                done = self.as_nobody(*words, expect=OUTPUT)
                self.assertIn(str(closed), done.stderr)
        self.assertEqual(list(closed.iterdir()), [])

    def test_input_that_may_not_be_read(self):
        self.data.chmod(0o000)
        opened = self.folder("open", 0o777)
        done = self.as_nobody("train", "mf", self.data, "--out", opened / "r", expect=DATA)
        self.assertIn(str(self.data), done.stderr)
        self.assertFalse((opened / "r").exists())


if __name__ == "__main__":
    unittest.main()
