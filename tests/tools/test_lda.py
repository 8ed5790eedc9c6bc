"""Topic models from the command line: words of topics, mixtures, perplexity, conservation, and bad requests."""

import json
import random
import signal
import subprocess
import unittest

from support import CommandLine, DATA, INTERRUPTED, OUTPUT, USAGE, checkpoints
from test_output_errors import SmallDisk

KINDS = (("cat", "dog", "horse", "cow", "sheep"), ("red", "green", "blue", "black", "white"), ("one", "two", "three", "four", "five"))


def themed_text(documents, seed=1):
    """Documents of one theme each, with a stop word."""
    draw = random.Random(seed)
    return "\n".join(" ".join(["the"] + draw.choices(KINDS[d % 3], k=12)) for d in range(documents)) + "\n"


class Lda(CommandLine):
    def lda(self, data, out, *words, **options):
        return self.run_orrery("train", "lda", data, "--out", out, "--quiet", "--topics", "3", *words, **options)

    def themed(self):
        text = self.write("train.txt", themed_text(120))
        stops = self.write("stop.txt", "the\n")
        self.lda(text, self.dir / "run", "--stop-words", stops, "--iterations", "40", "--verify")
        return text

    def test_topics_are_the_themes(self):
        self.themed()
        shown = json.loads(self.run_orrery("topics", "--model", self.dir / "run", "--top", "5", "--json").stdout)
        found = {frozenset(word["word"] for word in topic["words"]) for topic in shown}
        self.assertEqual(found, {frozenset(kind) for kind in KINDS})
        self.assertAlmostEqual(sum(topic["share"] for topic in shown), 1)
        for topic in shown:
            self.assertGreater(topic["coherence"], 0.5)
            probabilities = [word["probability"] for word in topic["words"]]
            self.assertEqual(probabilities, sorted(probabilities, reverse=True))
            self.assertGreater(sum(probabilities), 0.9)
        text = self.run_orrery("topics", "--model", self.dir / "run", "--top", "2").stdout
        self.assertEqual(text.count("coherence"), 3)

    def test_mixtures_and_perplexity_of_unseen_documents(self):
        self.themed()
        unseen = self.write("unseen.txt", "cat dog horse\nred green blue\nCat\tRED dog black\n\nnovel\n")
        lines = self.run_orrery("infer", "--model", self.dir / "run", unseen, "--out", "-").stdout.splitlines()
        mixtures = [[float(share) for share in line.split()[1:]] for line in lines]
        self.assertEqual([line.split()[0] for line in lines], ["1", "2", "3", "4", "5"])
        for mixture in mixtures:
            self.assertAlmostEqual(sum(mixture), 1, places=4)
        self.assertGreater(max(mixtures[0]), 0.8)
        self.assertNotEqual(mixtures[0].index(max(mixtures[0])), mixtures[1].index(max(mixtures[1])))
        self.assertEqual(mixtures[3], mixtures[4], "without a known word there is only the prior")
        more = self.write("more.txt", themed_text(30, seed=2))
        shown = json.loads(self.run_orrery("evaluate", "--model", self.dir / "run", more, "--json").stdout)
        self.assertLess(shown["perplexity"], 6)

    def test_counts_on_a_table_give_one_model_with_and_without_a_plan_at_staleness_0(self):
        text = self.write("train.txt", themed_text(120))
        stops = self.write("stop.txt", "the\n")
        table = ("--schedule", "data", "--workers", "4", "--document-blocks", "2", "--stop-words", stops, "--iterations", "40", "--verify")
        plan = self.dir / "plan"
        models = set()
        for name, words in (("on", ("--threads", "2", "--plan-out", plan)), ("off", ("--plan", "off")), ("in", ("--plan-in", plan)),
                            ("apart", ("--simulate", "nodes:4 delay:1ms"))):
            self.lda(text, self.dir / name, *table, *words)
            models.add(json.loads((self.dir / name / "run.json").read_text())["result"]["model_checksum"])
        self.assertEqual(len(models), 1)
        run = json.loads((self.dir / "in" / "run.json").read_text())
        self.assertEqual({table["name"]: table["misses"] for table in run["plan"]["tables"]}, {"words": 0, "totals": 0})
        self.lda(text, self.dir / "slack", *table, "--consistency", "ssp", "--staleness", "2", "--threads", "2")
        for name in ("on", "slack"):
            shown = json.loads(self.run_orrery("topics", "--model", self.dir / name, "--top", "5", "--json").stdout)
            self.assertEqual({frozenset(word["word"] for word in topic["words"]) for topic in shown}, {frozenset(kind) for kind in KINDS})

    def test_docword_and_text_of_the_same_documents_give_the_same_model(self):
        self.write("t.txt", "b a b\na\n\nc c a\n")
        self.write("vocab.txt", "b\na\nc\n")
        self.write("d.txt", "4\n3\n5\n1 1 2\n1 2 1\n2 2 1\n4 3 2\n4 2 1\n")
        self.lda(self.path("t.txt"), self.dir / "text")
        self.lda(self.path("d.txt"), self.dir / "docword", "--vocab", self.path("vocab.txt"))
        words = [self.run_orrery("topics", "--model", self.dir / name).stdout for name in ("text", "docword")]
        self.assertEqual(*words)

    def test_a_packed_corpus_gives_the_model_of_the_text(self):
        text = self.write("t.txt", themed_text(90))
        more = self.write("more.txt", themed_text(30, seed=2))
        for name, corpus in (("packed", text), ("held-out", more)):
            self.run_orrery("data", "pack", corpus, "--out", self.dir / name)
        options = ("--topics", "3", "--iterations", "5", "--seed", "4")
        sums = []
        for name, data, valid in (("a", text, more), ("b", self.dir / "packed", more), ("c", self.dir / "packed", self.dir / "held-out")):
            self.run_orrery("train", "lda", data, "--valid", valid, "--out", self.dir / name, *options, "--verify")
            result = json.loads((self.dir / name / "run.json").read_text())["result"]
            sums.append((result["model_checksum"], result["value"]))
        self.assertEqual(sums[0], sums[1])
        self.assertEqual(sums[0], sums[2])
        shown = [self.run_orrery("evaluate", "--model", self.dir / "a", data, "--json").stdout for data in (more, self.dir / "held-out")]
        self.assertEqual(*shown)

    def test_a_word_that_keeps_threads_waiting_is_named(self):
        draw = random.Random(1)
        words = [f"w{n}" for n in range(300)]
        text = self.write("hot.txt", "\n".join(" ".join(["the"] * 60 + draw.choices(words, k=40)) for _ in range(1001)) + "\n")
        brief = ("--iterations", "1", "--threads", "4", "--workers", "4")
        for kind, options, told in (("alone", (), True), ("shared", ("--groups", "4"), False), ("table", ("--schedule", "data"), False),
                                    ("without", ("--max-documents", "0.5"), False)):
            self.lda(text, self.dir / kind, *brief, *options)
            warnings = json.loads((self.dir / kind / "run.json").read_text())["warnings"]
            named = [warning for warning in warnings if "word 'the' is 60 % of all tokens" in warning and "1 of 4 threads" in warning]
            self.assertEqual(len(named), 1 if told else 0, kind)

    def packed(self, documents=4000, words=3000, cells=40, most=200):
        """Many tokens in few cells: large in memory, small as a file."""
        draw = random.Random(1)
        lines = [f"{d} {w} {draw.randint(1, most)}" for d in range(1, documents + 1) for w in sorted(draw.sample(range(1, words + 1), cells))]
        corpus = self.write("corpus.txt", "\n".join([str(documents), str(words), str(len(lines)), *lines]) + "\n")
        self.run_orrery("data", "pack", corpus, "--out", self.dir / "packed")
        return self.dir / "packed"

    def test_a_run_stays_within_a_quarter_of_its_data_with_the_same_bits(self):
        packed = self.packed()
        words = ("--topics", "20", "--iterations", "1", "--document-blocks", "32", "--keep-documents=false")
        self.run_orrery("train", "lda", packed, "--out", self.dir / "memory", *words)
        done = self.run_orrery("train", "lda", packed, "--out", self.dir / "stream", *words, "--memory-limit", "32M", "--verify")
        self.assertIn("document blocks are streamed from disk", done.stderr)
        peak = {name: self.record(self.dir / name)["result"]["peak_rss_bytes"] for name in ("memory", "stream")}
        self.assertLessEqual(32 << 20, peak["memory"] / 4)
        self.assertLessEqual(peak["stream"], 32 << 20)
        self.assertEqual(self.checksum(self.dir / "stream"), self.checksum(self.dir / "memory"))
        self.assertEqual([path.name for path in (self.dir / "stream").iterdir() if path.name.startswith(".scratch")], [])

    def test_a_limit_that_cannot_be_kept_is_refused_with_the_numbers(self):
        packed = self.packed(documents=300)
        done = self.run_orrery("train", "lda", packed, "--out", self.dir / "r", "--memory-limit", "1M", "--document-blocks", "8", expect=USAGE)
        self.assertIn("document blocks under way", done.stderr)
        self.assertIn("--memory-limit", done.stderr)

    def test_killed_and_interrupted_while_streaming_goes_on_to_the_same_bits(self):
        packed = self.packed(documents=2500)
        words = ("--topics", "20", "--document-blocks", "40", "--checkpoint-every", "1", "--quiet")
        stream = ("--memory-limit", "26M")
        self.run_orrery("train", "lda", packed, "--out", self.dir / "whole", "--iterations", "4", *words)
        for name, sign, code in (("killed", signal.SIGKILL, -signal.SIGKILL), ("interrupted", signal.SIGINT, INTERRUPTED)):
            out = self.dir / name
            process = self.start("train", "lda", packed, "--out", out, "--iterations", "1000", *words, *stream,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.wait_for(lambda: checkpoints(out), "a checkpoint", process)
            process.send_signal(sign)
            self.assertEqual(process.wait(), code)
            reached = int(checkpoints(out)[-1].stem.split("-")[1])
            ends = ("--iterations", reached + 2)
            self.run_orrery("train", "lda", packed, "--out", out, *ends, *words, *stream, "--resume")
            self.run_orrery("train", "lda", packed, "--out", self.dir / "again", *ends, *words, "--overwrite")
            self.assertEqual(self.checksum(out), self.checksum(self.dir / "again"), name)

    def test_a_full_disk_while_streaming_is_said_before_training(self):
        packed = self.packed(documents=1500)
        disk = SmallDisk(self, "4m")
        done = self.run_orrery("train", "lda", packed, "--out", disk.path / "r", "--memory-limit", "24M", "--document-blocks", "60",
                               "--topics", "20", expect=OUTPUT)
        self.assertIn("working space", done.stderr)
        self.assertIn("No space left", done.stderr)
        self.assert_no_model(disk.path / "r")

    def test_bad_requests_are_refused_by_name(self):
        text = self.write("t.txt", "a b\nb c\n")
        numbers = self.write("n.txt", "1\n2\n1\n1 1 3\n")
        long_vocabulary = self.write("v.txt", "a\n")
        nul = self.write("nul.txt", b"a b\nc\0d\n")
        latin = self.write("latin.txt", b"a b\ngr\xfc\xdf\n")
        for data, options, code, said in ((text, ("--topics", "0"), USAGE, "--topics"),
                                          (text, ("--alpha", "0"), USAGE, "--alpha"),
                                          (text, ("--beta", "nowhere.txt"), DATA, "nowhere.txt"),
                                          (text, ("--mh-steps", "3"), USAGE, "--sampler mh"),
                                          (text, ("--min-documents", "3"), DATA, "no word is left"),
                                          (text, ("--format", "edges"), USAGE, "edges"),
                                          (text, ("--fit-priors", "--staleness", "1"), USAGE, "bsp"),
                                          (text, ("--start", "sequential", "--schedule", "data"), USAGE, "--start sequential"),
                                          (numbers, ("--stop-words", text), USAGE, "--vocab"),
                                          (numbers, ("--vocab", long_vocabulary), DATA, "vocabulary only 1"),
                                          (nul, ("--format", "text"), DATA, "nul.txt:2:2"),
                                          (latin, ("--format", "text"), DATA, "latin.txt:2:3")):
            with self.subTest(options=options, data=data.name):
                done = self.lda(data, self.dir / "bad", *options, expect=code)
                self.assertIn(said, done.stderr)
                self.assert_no_model(self.dir / "bad")

    def test_a_warm_start_needs_as_many_topics(self):
        text = self.themed()
        done = self.run_orrery("train", "lda", text, "--out", self.dir / "more", "--topics", "4", "--init", self.dir / "run", expect=USAGE)
        self.assertIn("3 topics", done.stderr)
        self.lda(text, self.dir / "on", "--init", self.dir / "run", "--iterations", "2", "--verify")


if __name__ == "__main__":
    unittest.main()
