"""`mpirun -n N orrery train …`: the bits of one node, one voice and one exit code for all ranks, and what happens when a
rank dies, hangs, or is another one than the rest.

The settings of kLauncher are for test machines, which are root and have fewer cores than ranks."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

import support
from support import CommandLine, DATA, DONE, INTERRUPTED, LOST, NOT_REACHED, USAGE, ratings_text

kLauncher = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
             "OMPI_MCA_hwloc_base_binding_policy": "none"}
kLogistic = ("logistic", "rows.svm", "--solver", "sgd", "--workers", "8", "--iterations", "3")
kNewton = ("logistic", "rows.svm", "--valid", "valid.svm", "--workers", "8", "--iterations", "4")
kFactors = ("mf", "ratings.txt", "--schedule", "data", "--rank", "8", "--workers", "8", "--iterations", "2")
kRotation = ("mf", "ratings.txt", "--valid", "valid.txt", "--rank", "8", "--workers", "8", "--iterations", "6")
kGroups = (*kRotation[:-2], "--groups", "4", "--clocks", "2", "--iterations", "4")
kTopics = ("lda", "corpus.txt", "--valid", "held-out.txt", "--topics", "12", "--document-blocks", "2", "--workers", "8", "--iterations", "6")
kTopicGroups = (*kTopics[:-2], "--groups", "2", "--iterations", "4")
kPath = ("lasso", "wide.svm", "--path", "20", "--workers", "8", "--iterations", "16")
kRanks = ("pagerank", "graph.txt", "--workers", "8", "--iterations", "12")
kDeltas = (*kRanks[:2], "--method", "delta", "--dangling", "drop", *kRanks[2:])


def rows_text(rows=3000, columns=60, seed=5):
    """Rows of two classes that a plane nearly parts."""
    draw = random.Random(seed)
    plane = [draw.gauss(0, 1) for _ in range(columns)]
    lines = []
    for _ in range(rows):
        entries = [(column, draw.gauss(0, 1)) for column in sorted(draw.sample(range(columns), 8))]
        score = sum(plane[column] * value for column, value in entries) + draw.gauss(0, 0.5)
        lines.append(" ".join([str(int(score > 0)), *(f"{column + 1}:{value:.4f}" for column, value in entries)]))
    return "\n".join(lines) + "\n"


def graph_text(nodes=1000, edges=8000, seed=7):
    """Skewed edges; a third of the nodes have none that lead away."""
    draw = random.Random(seed)
    return "".join(f"{int(0.7 * draw.random() * nodes)} {int(draw.random() ** 2 * nodes)}\n" for _ in range(edges))


def corpus_text(documents=200, words=300, length=40, seed=8):
    """Documents of two topics each; a topic has thirty words that stand together."""
    draw = random.Random(seed)
    lines = []
    for _ in range(documents):
        topics = [draw.randrange(words // 30) for _ in range(2)]
        lines.append(" ".join(f"w{30 * draw.choice(topics) + int(30 * draw.random() ** 2)}" for _ in range(length)))
    return "\n".join(lines) + "\n"


def read_process(process, name):
    """A file of /proc; empty when the process is gone."""
    try:
        with open(f"/proc/{process}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def is_running(process):
    """A zombie whose parent has died too is not."""
    return read_process(process, "stat").rpartition(b")")[2].split()[:1] not in ([], [b"Z"])


def ranks_of(mpirun):
    """{rank: process id} of the ranks that an mpirun has started."""
    found = {}
    for child in read_process(mpirun, f"task/{mpirun}/children").split():
        for entry in read_process(int(child), "environ").split(b"\0"):
            if entry.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(entry.split(b"=")[1])] = int(child)
    return found


class Mpi(CommandLine):
    def setUp(self):
        super().setUp()
        self.write("rows.svm", rows_text())
        self.write("ratings.txt", ratings_text(users=200, items=80, ratings=6000))
        self.write("valid.txt", ratings_text(users=210, items=85, ratings=500, seed=2))
        self.write("valid.svm", rows_text(rows=500, seed=6))
        self.write("wide.svm", rows_text(rows=400, columns=900))
        self.write("graph.txt", graph_text())
        self.write("corpus.txt", corpus_text())
        self.write("held-out.txt", corpus_text(documents=100, seed=9))

    def environment(self):
        return {**os.environ, **kLauncher}

    def command(self, ranks, *words):
        return ["mpirun", "-n", str(ranks), support.kBinary, *map(str, words)]

    def mpirun(self, ranks, *words, expect=DONE):
        done = subprocess.run(self.command(ranks, *words), text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                              env=self.environment(), cwd=self.dir)
        self.assertEqual(done.returncode, expect, f"{ranks} ranks: {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done

    def start_mpirun(self, ranks, *words):
        process = subprocess.Popen(self.command(ranks, *words), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.environment(), cwd=self.dir)
        self.addCleanup(self.finish_off, process)
        return process

    def trained(self, ranks, name, *words, **options):
        """What a run left in its record; with `expect`, the finished process."""
        out = self.dir / name
        words = ("train", *words, "--out", out, "--quiet")
        done = self.run_orrery(*words, cwd=self.dir, **options) if ranks == 1 else self.mpirun(ranks, *words, **options)
        return done if options else self.record(out)

    def forget_the_end(self, out):
        """Leaves what a run that was killed after its last checkpoint leaves."""
        record = self.record(out)
        del record["result"]
        (out / "run.json").write_text(json.dumps(record))
        shutil.rmtree(out / "model")

    def wait_for_line(self, out, process):
        """Until the run has evaluated something, and so written a checkpoint before."""
        self.wait_for(lambda: support.line_count(out / "metrics.jsonl") >= 2, "a second evaluation", process)

    def assert_all_gone(self, ranks):
        for rank, process in ranks.items():
            self.assertFalse(is_running(process), f"rank {rank} is still there")


class Bits(Mpi):
    def test_ranks_and_threads_change_no_bit_at_staleness_0_nor_does_going_on_elsewhere(self):
        for number, (job, shapes) in enumerate((
            (kLogistic, ((2, 1), (4, 2))),
            (kNewton, ((4, 1),)),
            (kFactors, ((2, 2), (4, 1))),
            (kRotation, ((2, 1), (4, 2))),
            (kTopics, ((2, 2), (4, 1))),
            (kGroups, ((2, 2), (3, 1))),
            (kPath, ((4, 2),)),
            (kRanks, ((4, 2),)),
            (kDeltas, ((4, 1),)),
        )):
            one = self.trained(1, f"one-{number}", *job)["result"]
            for ranks, threads in shapes:
                with self.subTest(job=job[0], ranks=ranks, threads=threads):
                    record = self.trained(ranks, f"{number}-{ranks}-{threads}", *job, "--threads", threads)
                    self.assertEqual(record["result"]["model_checksum"], one["model_checksum"])
                    self.assertEqual(record["result"]["value"], one["value"])
                    self.assertEqual((record["ranks"], record["threads"]), (ranks, threads))
            with self.subTest(job=job, ranks="2, then 3"):
                out = f"parts-{number}"
                self.trained(2, out, *job[:-1], str(int(job[-1]) // 2), "--checkpoint-every", "1")
                self.forget_the_end(self.dir / out)
                parts = self.trained(3, out, *job, "--checkpoint-every", "1", "--resume")["result"]
                for key in ("model_checksum", "iterations", "value"):
                    self.assertEqual(parts[key], one[key], key)

    def test_groups_have_the_same_bits_where_a_rank_has_workers_of_two(self):
        for job, staleness in ((kTopicGroups, "0"), (kGroups, "2")):
            with self.subTest(job[0]):
                one = self.trained(1, f"one-{job[0]}", *job, "--staleness", staleness)["result"]
                three = self.trained(3, f"three-{job[0]}", *job, "--staleness", staleness)
                self.assertEqual(three["result"]["model_checksum"], one["model_checksum"])
                self.assertEqual((three["schedule"], three["ranks"]), ("hybrid", 3))

    def test_units_that_run_on_other_ranks_change_no_bit(self):
        one = self.trained(1, "one", *kRotation)["result"]
        lent = self.trained(3, "lent", *kRotation, "--reassign", "always", "--threads", "1")["result"]
        self.assertEqual(lent["model_checksum"], one["model_checksum"])
        self.assertGreater(lent["units_lent"], 0)

    def test_softmax_too_and_with_held_out_data_that_decides(self):
        job = ("softmax", "rows.svm", "--solver", "sgd", "--workers", "6", "--valid", "valid.svm", "--patience", "2",
               "--iterations", "6")
        one = self.trained(1, "one", *job)["result"]
        three = self.trained(3, "three", *job)["result"]
        for key in ("model_checksum", "iterations", "best_iteration", "value"):
            self.assertEqual(one[key], three[key], key)

    def test_slack_runs_too(self):
        record = self.trained(3, "ssp", *kLogistic, "--staleness", "2")
        self.assertEqual((record["consistency"], record["ranks"]), ("ssp", 3))
        self.assertLess(record["result"]["value"], 0.5)

    def test_default_threads_share_the_host(self):
        record = self.trained(2, "two", *kFactors)
        self.assertEqual(record["threads"], max(1, len(os.sched_getaffinity(0)) // 2))


class Parts(Mpi):
    """DATA.%r: numbered files that are one data set."""

    def setUp(self):
        super().setUp()
        lines = (self.dir / "rows.svm").read_text().splitlines(keepends=True)
        for number, (first, last) in enumerate(((0, 100), (100, 1900), (1900, len(lines)))):
            self.write(f"{number}/rows.{number}.svm", "".join(lines[first:last]))

    def test_are_read_by_whom_it_may_be_and_are_the_one_file(self):
        job = ("--workers", "8", "--iterations", "3", "--threads", "1")
        one = self.trained(1, "one", "logistic", "rows.svm", *job)
        for number in range(3):
            shutil.copy(self.dir / f"{number}/rows.{number}.svm", self.dir)
        self.write("rows.03.svm", "no part: the number would be spelled 3")
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                record = self.trained(ranks, f"parts-{ranks}", "logistic", "rows.%r.svm", *job)
                self.assertEqual(record["result"]["model_checksum"], one["result"]["model_checksum"])
                self.assertEqual(record["data"]["checksum"], one["data"]["checksum"])
        self.run_orrery("verify", self.dir / "parts-2", cwd=self.dir)

    def test_may_be_all_that_a_rank_has_of_the_rows(self):
        lines = (self.dir / "wide.svm").read_text().splitlines(keepends=True)
        for number, (first, last) in enumerate(((0, 30), (30, 31), (31, len(lines)))):
            self.write(f"wide.{number}.svm", "".join(lines[first:last]))
        one = self.trained(1, "one", *kPath)
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                record = self.trained(ranks, f"parts-{ranks}", kPath[0], "wide.%r.svm", *kPath[2:], "--threads", "1")
                self.assertEqual(record["result"]["model_checksum"], one["result"]["model_checksum"])
                self.assertEqual({**record["data"], "path": ""}, {**one["data"], "path": ""})
        self.run_orrery("verify", self.dir / "parts-4", cwd=self.dir)

    def test_may_lie_where_only_their_rank_sees_them(self):
        words = ["train", "softmax", "rows.%r.svm", "--workers", "3", "--iterations", "1", "--quiet", "--out", str(self.dir / "far")]
        command = ["mpirun"]
        for number in range(3):
            command += [":"] * (number > 0) + ["-n", "1", "-wdir", str(self.dir / str(number)), support.kBinary, *words]
        done = subprocess.run(command, text=True, capture_output=True, timeout=60, env=self.environment())
        self.assertEqual(done.returncode, DONE, done.stderr)
        rows = len((self.dir / "rows.svm").read_text().splitlines())
        self.assertEqual(self.record(self.dir / "far")["data"]["rows"], rows)

    def test_that_cannot_be_read_are_named_with_their_rank(self):
        for number in range(3):
            self.write(f"bad.{number}.svm", "1 1:0.5\n0 2:1\n" if number != 1 else "1 1:0.5\n0 1:x\n")
        for number in (0, 1, 3):
            self.write(f"gap.{number}.svm", "1 1:0.5\n0 2:1\n")
        for said, expect, words in (
            ("orrery: rank 1: bad.1.svm:2:", DATA, ("logistic", "bad.%r.svm")),
            ("gap.2.svm: expected a file for each number from 0 to 3", DATA, ("logistic", "gap.%r.svm")),
            ("none.0.svm: cannot read", DATA, ("logistic", "none.%r.svm")),
            ("mf reads one file", USAGE, ("mf", "ratings.%r.txt")),
        ):
            with self.subTest(said):
                done = self.mpirun(3, "train", *words, "--workers", "3", "--out", self.dir / "no", expect=expect)
                complaints = [line for line in done.stderr.splitlines() if line.startswith("orrery:")]
                self.assertEqual(len(complaints), 1, done.stderr)
                self.assertIn(said, complaints[0])
                self.assertFalse((self.dir / "no").exists())


class Memory(Mpi):
    def peaks(self, ranks, *words):
        """The most memory that each rank has held once it has trained for two iterations, in KiB."""
        out = self.dir / f"{words[0]}-{ranks}"
        process = self.start_mpirun(ranks, "train", *words, "--threads", "1", "--iterations", "100000", "--out", out)
        self.wait_for_line(out, process)
        peaks = [int(re.search(rb"VmHWM:\s+(\d+)", read_process(rank, "status")).group(1)) for rank in ranks_of(process.pid).values()]
        process.send_signal(signal.SIGUSR1)
        process.communicate(timeout=60)
        self.assertEqual(len(peaks), ranks)
        return peaks

    def assert_shrinks(self, bytes_to_deal, *words):
        """Of what is dealt to the ranks a rank of two holds half, a rank of four a quarter."""
        two, four = (max(self.peaks(ranks, *words)) for ranks in (2, 4))
        self.assertLess(four, two - 0.6 * bytes_to_deal / 4 / 1024, (two, four))

    def test_each_rank_keeps_its_own_users_and_documents(self):
        generate = ("data", "generate")
        self.run_orrery(*generate, "ratings", "--users", "60000", "--items", "500", "--ratings", "300000", "--out", "big.txt", cwd=self.dir)
        # Factors of users mostly: what of the text is under way would hide so few ratings. A rank that helps another one holds
        # users of that one too, so here none does.
        self.assert_shrinks(60_000 * 512 * 4, "mf", "big.txt", "--rank", "512", "--workers", "8", "--reassign", "off")
        self.run_orrery(*generate, "corpus", "--documents", "40000", "--words", "3000", "--topics", "20", "--out", "big.docs", cwd=self.dir)
        self.run_orrery("data", "pack", "big.docs", "--out", "big.pack", cwd=self.dir)
        tokens = int(self.run_orrery("data", "info", "big.pack", "--json", cwd=self.dir).stdout.split('"tokens":')[1].split(",")[0])
        # 8 bytes a token.
        self.assert_shrinks(tokens * 8, "lda", "big.pack", "--topics", "20", "--workers", "8")

    def test_each_rank_keeps_the_rows_that_it_reads_and_then_its_own_columns(self):
        entries = 0
        for part in range(4):
            rows = ("--rows", "6000", "--columns", "20000", "--entries-per-row", "80", "--seed", str(part))
            self.run_orrery("data", "generate", "sparse", *rows, "--out", f"big.{part}.svm", cwd=self.dir)
            entries += 6000 * 80
        self.assert_shrinks(entries * 8, "lasso", "big.%r.svm", "--path", "1000", "--workers", "8")


class OneVoice(Mpi):
    def refused(self, ranks, said, *words, expect=USAGE):
        done = self.mpirun(ranks, "train", *words, "--out", self.dir / "no", expect=expect)
        complaints = [line for line in done.stderr.splitlines() if line.startswith("orrery:")]
        self.assertEqual(len(complaints), 1, done.stderr)
        self.assertIn(said, complaints[0])
        self.assertFalse((self.dir / "no").exists())

    def test_what_every_rank_refuses_is_said_once(self):
        self.refused(3, "no-such-file", "logistic", self.dir / "no-such-file", "--solver", "sgd", expect=DATA)
        self.refused(3, "every rank needs", *kLogistic[:-4], "--workers", "2")
        bad = self.write("bad.svm", "1 1:0.5\n0 1:x\n" * 20)
        self.refused(2, "bad.svm:2", "logistic", bad, "--solver", "sgd", expect=DATA)

    def test_what_cannot_run_on_several_nodes_says_so(self):
        for words in (("lasso", "rows.svm", "--cv", "5"), ("lasso", "rows.svm", "--scheduler", "cyclic"), ("mf", "ratings.txt", "--solver", "als"), ("lda", "corpus.txt", "--fit-priors")):
            self.refused(2, f"started as 2 ranks, but {words[0]} with these options runs on one node only", *words)
        self.refused(2, "start it without mpirun", *kLogistic, "--simulate", "nodes:2")
        done = self.mpirun(2, "list", expect=USAGE)
        self.assertIn("only `orrery train` runs on several", done.stderr)

    def test_a_run_that_is_there_is_refused_by_all(self):
        self.trained(1, "taken", *kLogistic)
        done = self.mpirun(2, "train", *kLogistic, "--out", self.dir / "taken", expect=USAGE)
        self.assertRegex(done.stderr, "orrery: rank 0: --out .*taken: holds a run")

    def test_a_goal_that_is_not_reached_is_one_exit_code(self):
        self.trained(2, "goal", *kLogistic, "--target", "0.0001", expect=NOT_REACHED)

    def test_ranks_that_run_different_things_are_named(self):
        other_data = self.write("other.svm", "1 1:0.5\n0 2:1\n" * 50)
        other_program = self.dir / "orrery"
        shutil.copy(support.kBinary, other_program)
        with open(other_program, "ab") as file:
            file.write(b"\0")  # the same to the loader, another program to who compares
        words = list(map(str, ("train", *kLogistic, "--out", self.dir / "no")))
        binary = support.kBinary
        for said, other in (
            ("seed: 1 on ranks 0, 2, 7 on rank 1", [binary, *words, "--seed", "7"]),
            ("data: .* on ranks 0, 2, .*other.svm on rank 1", [binary, *[str(other_data) if w == "rows.svm" else w for w in words]]),
            ("program: .* on ranks 0, 2, .* on rank 1", [str(other_program), *words]),
        ):
            with self.subTest(said):
                command = ["mpirun", "-n", "1", binary, *words, ":", "-n", "1", *other, ":", "-n", "1", binary, *words]
                done = subprocess.run(command, text=True, capture_output=True, timeout=60, env=self.environment(), cwd=self.dir)
                self.assertEqual(done.returncode, USAGE, done.stderr)
                self.assertRegex(done.stderr, "orrery: the ranks do not run the same thing: .*" + said)
                self.assertFalse((self.dir / "no").exists())

    def test_data_that_differs_under_one_name_is_refused(self):
        # A path that means another file on rank 1.
        for place, line in (("a", "1 1:0.5\n0 2:1\n"), ("b", "1 1:0.5\n0 2:2\n")):
            self.write(f"{place}/data.svm", line * 50)
        words = ["train", "logistic", "data.svm", "--solver", "sgd", "--workers", "2", "--out", str(self.dir / "no")]
        command = ["mpirun", "-n", "1", "-wdir", str(self.dir / "a"), support.kBinary, *words, ":", "-n", "1", "-wdir",
                   str(self.dir / "b"), support.kBinary, *words]
        done = subprocess.run(command, text=True, capture_output=True, timeout=60, env=self.environment(), cwd=self.dir)
        self.assertEqual(done.returncode, USAGE, done.stderr)
        self.assertRegex(done.stderr, "data: [0-9a-f]{16} on rank 0, [0-9a-f]{16} on rank 1")


class Lost(Mpi):
    kJob = (*kLogistic[:-1], "5000", "--checkpoint-every", "1")

    def until_lost(self, ranks, victim, signal_number, name, job=kJob):
        """Starts a long run, does that to a rank once there is a checkpoint, and returns (seconds, exit code, stderr)."""
        out = self.dir / name
        process = self.start_mpirun(ranks, "train", *job, "--out", out)
        self.wait_for_line(out, process)
        processes = ranks_of(process.pid)
        self.assertEqual(len(processes), ranks)
        start = time.monotonic()
        os.kill(processes[victim], signal_number)
        _, errors = process.communicate(timeout=60)
        self.assert_all_gone(processes)
        return time.monotonic() - start, process.returncode, errors

    def resumed_equals_whole(self, name, ranks, job=kLogistic):
        done = len(self.metrics(self.dir / name))
        job = (*job[:-1], str(done + 3), "--checkpoint-every", "1")
        resumed = self.trained(ranks, name, *job, "--resume")
        whole = self.trained(1, f"{name}-whole", *job)
        self.assertEqual(resumed["result"]["model_checksum"], whole["result"]["model_checksum"])
        self.assertEqual(len(self.metrics(self.dir / name)), done + 3)

    def test_a_rank_that_dies_is_named_and_the_run_goes_on_elsewhere(self):
        victim = random.randrange(3)
        seconds, code, errors = self.until_lost(3, victim, signal.SIGKILL, "died")
        self.assertEqual(code, 128 + signal.SIGKILL, errors)  # Open MPI's way to say so
        self.assertLess(seconds, 15)
        self.assertRegex(errors, rf"orrery: node {victim} failed: no sign of life of rank {victim} .*; go on with: mpirun -n 3 "
                                 r"orrery train logistic .*--resume")
        self.resumed_equals_whole("died", random.choice((1, 2, 3, 4)))

    def test_a_rank_that_dies_with_blocks_of_a_rotation_loses_none(self):
        job = tuple(word for word in kRotation if word not in ("--valid", "valid.txt"))
        seconds, code, errors = self.until_lost(3, 1, signal.SIGKILL, "rotation", (*job[:-1], "100000", "--checkpoint-every", "1"))
        self.assertEqual(code, 128 + signal.SIGKILL, errors)
        self.assertLess(seconds, 15)
        self.assertRegex(errors, r"orrery: node 1 failed: no sign of life of rank 1 .*; go on with: mpirun -n 3 orrery train mf .*--resume")
        self.resumed_equals_whole("rotation", 2, job)

    def test_a_rank_that_hangs_ends_the_run(self):
        seconds, code, errors = self.until_lost(3, 1, signal.SIGSTOP, "hung")
        self.assertEqual(code, LOST, errors)
        self.assertLess(seconds, 25)
        self.assertIn("node 1 failed: no sign of life of rank 1", errors)
        self.assertIn("--resume", errors)
        self.resumed_equals_whole("hung", 2)

    def test_a_short_stop_is_no_loss(self):
        out = self.dir / "paused"
        process = self.start_mpirun(2, "train", *kLogistic[:-1], "300", "--out", out)
        self.wait_for_line(out, process)
        victim = ranks_of(process.pid)[1]
        os.kill(victim, signal.SIGSTOP)
        time.sleep(1.5)  # how long it is stopped, which is what the test is about
        os.kill(victim, signal.SIGCONT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, DONE, errors)

    def test_a_request_finishes_the_iteration_on_all_ranks(self):
        out = self.dir / "stopped"
        process = self.start_mpirun(3, "train", *self.kJob, "--out", out)
        self.wait_for_line(out, process)
        process.send_signal(signal.SIGUSR1)  # mpirun passes it on to all ranks
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, errors)
        self.assertRegex(errors, r"orrery: interrupted after iteration \d+; go on with: mpirun -n 3 orrery train")
        self.assertEqual(errors.count("finishing the iteration"), 1, errors)
        self.assertEqual(len(support.checkpoints(out)), 2)

    def test_one_rank_that_is_told_stops_all_at_the_same_clock(self):
        out = self.dir / "told"
        process = self.start_mpirun(2, "train", *self.kJob, "--out", out)
        self.wait_for_line(out, process)
        os.kill(ranks_of(process.pid)[1], signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, errors)
        self.assertRegex(errors, r"orrery: interrupted after iteration \d+")

    def test_ctrl_c_leaves_no_rank_behind_and_a_run_that_goes_on(self):
        out = self.dir / "ctrl-c"
        process = self.start_mpirun(2, "train", *self.kJob, "--out", out)
        self.wait_for_line(out, process)
        processes = ranks_of(process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, DONE)
        self.assert_all_gone(processes)
        self.resumed_equals_whole("ctrl-c", 3)


class Hosts(Mpi):
    """Hosts that are network namespaces of this machine, joined by a switch with a delay."""

    kHosts = str(support.kSource / "tests" / "dist" / "mpi_hosts.sh")
    # mpirun must notice too that a host is gone, or it waits for ever for its daemon there.
    kKeepAlive = [word for name, value in (("time", 5), ("intvl", 2), ("probes", 3))
                  for option in ("--mca", f"oob_tcp_keepalive_{name}", str(value)) for word in ("--opt", option)]

    def on_hosts(self, hosts, *options, words):
        command = [self.kHosts, "--hosts", str(hosts), "--timeout", "60", *options, "--", support.kBinary, *map(str, words)]
        done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, cwd=self.dir,
                              env=self.environment())
        if done.returncode == 125:
            self.skipTest(done.stderr.strip())
        return done

    def test_hosts_with_a_delay_have_the_bits_of_one_node(self):
        one = self.trained(1, "one", *kLogistic)["result"]
        done = self.on_hosts(3, "--delay", "500us", words=("train", *kLogistic, "--out", "three", "--quiet"))
        self.assertEqual(done.returncode, DONE, done.stderr)
        record = self.record(self.dir / "three")
        self.assertEqual((record["ranks"], record["result"]["model_checksum"]), (3, one["model_checksum"]))

    def test_a_link_that_stays_down_ends_the_run(self):
        start = time.monotonic()
        done = self.on_hosts(3, "--down", "2@2", *self.kKeepAlive, words=("train", *Lost.kJob[:-3], "100000", "--out", "down"))
        self.assertLess(time.monotonic() - start, 50)
        self.assertNotIn(done.returncode, (DONE, 124), done.stderr)
        self.assertIn("node 2 failed: no sign of life of rank 2 (host h2)", done.stderr)
        self.assertRegex(done.stderr, "; (checkpoints were off|nothing was written)")


if __name__ == "__main__":
    unittest.main()
