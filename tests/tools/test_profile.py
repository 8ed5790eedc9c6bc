"""`orrery profile`: the numbers of its report belong together and to the run, its page shows them anywhere, and files are
whole or absent."""

import json
import os
import unittest
from pathlib import Path

from browser import Browser, chromium
from support import CommandLine, DATA, OUTPUT, USAGE, kReal

kTables = ("--schedule", "data", "--rank", "4", "--workers", "6", "--iterations", "5", "--threads", "2",
           "--topology", "numa:2 core:2 pu:1")
kActivities = ("compute", "flush", "wait for a clock", "settle and commit", "wait for a block", "no thread free")


class Profiling(CommandLine):
    def profile(self, algorithm, data, *words, name="report", **options):
        return self.run_orrery("profile", algorithm, data, "--report", self.path(name), *words, **options)

    def report(self, name="report"):
        return json.loads((self.path(name) / "report.json").read_text())

    def assert_time_adds_up(self, report):
        phases = report["phases"]
        self.assertEqual(len(phases["workers"]), report["run"]["workers"])
        for worker in phases["workers"]:
            spent = sum(worker[activity] for activity in kActivities)
            self.assertAlmostEqual(spent, phases["seconds"], delta=1e-6 + 1e-6 * phases["seconds"])
        self.assertLessEqual(phases["busy_thread_seconds"], phases["thread_seconds"] * 1.01 + 1e-3)
        self.assertGreater(phases["busy_thread_seconds"], 0)
        self.assertEqual({advice["about"] for advice in report["recommendations"]},
                         {"workers", "staleness", "placement", "schedule"})
        for advice in report["recommendations"]:
            self.assertRegex(advice["evidence"], r"\d|share nothing")


class Profile(Profiling):
    def test_numbers_of_tables_belong_together_and_the_model_is_that_of_train(self):
        data = self.ratings()
        done = self.profile("mf", data, *kTables)
        report = self.report()
        self.train(data, self.path("plain"), *kTables)
        self.assertEqual(report["run"]["result"]["model_checksum"], self.checksum(self.path("plain")))
        self.assert_time_adds_up(report)
        self.assertEqual(report["domains"], 2)
        self.assertIsNone(report["blocks"])
        self.assertIn("recommendations", done.stdout)
        recorded = report["recorded"]
        self.assertEqual((recorded["bytes_per_access"], recorded["cut"], recorded["dropped"]), (4, False, 0))
        (table,) = report["tables"]
        touched = table["touched"]
        self.assertEqual(touched["reads"] + touched["adds"], recorded["accesses"])
        for part in ("classes", "by_workers_that_touch", "by_domains_that_touch"):
            self.assertEqual(sum(one["reads"] for one in table[part]), touched["reads"], part)
            self.assertEqual(sum(one["adds"] for one in table[part]), touched["adds"], part)
        self.assertEqual(sum(one["rows"] for one in table["by_workers_that_touch"]), table["rows"])
        self.assertEqual(sum(one["rows"] for one in table["classes"]), touched["rows"])
        self.assertEqual(sum(one["reads"] + one["adds"] for one in table["by_worker"]), recorded["accesses"])
        # Every iteration does the same: what the record has of two, the tables counted too.
        plan = table["plan"]
        self.assertEqual([one["iteration"] for one in plan], [1, 2, 3, 4, 5])
        self.assertEqual(sum(one["adds"] for one in plan[:2]), touched["adds"])
        self.assertEqual(sum(one["reads"] for one in plan[:2]), touched["reads"])
        self.assertEqual(sum(one["misses"] for one in plan), table["whole_run"]["misses"])
        self.assertGreater(plan[0]["misses"], 0)
        self.assertEqual(plan[-1]["misses"], 0)
        (again,) = table["repetition"]
        self.assertEqual(again["known"], again["accesses"])
        reuse = table["reuse"]
        self.assertEqual(sum(one["accesses"] for one in reuse["by_distance"]) + reuse["first_touches"], reuse["accesses"])
        self.assertEqual(sum(one["reads"] for one in table["staleness_of_reads"]), table["whole_run"]["reads"])
        self.assertEqual([one["clocks"] for one in table["staleness_of_reads"]], [0])

    def test_a_profiled_run_keeps_plans_and_stopping_rules(self):
        sgd = ("--solver", "sgd", "--iterations", "2", "--workers", "4")
        plan = self.path("plan.bin")
        self.profile("logistic", kReal / "a9a.svm.gz", *sgd, "--plan-out", plan, name="learns")
        self.profile("logistic", kReal / "a9a.svm.gz", *sgd, "--plan-in", plan, name="follows")
        (table,) = self.record(self.path("follows"))["plan"]["tables"]
        self.assertEqual(table["misses"], 0)
        data = self.write("wide.svm", "".join(f"{i % 5} {1 + i % 7}:{i % 3 + 1} {9 + i % 11}:{i % 4 + 1}\n" for i in range(80)))
        rules = ("--lambda", "0.05", "--tolerance", "0.1")
        self.profile("lasso", data, *rules, name="lasso")
        self.run_orrery("train", "lasso", data, "--out", self.path("plain"), *rules)
        for key in ("iterations", "model_checksum", "stopped_by"):
            self.assertEqual(self.record(self.path("lasso"))["result"][key], self.record(self.path("plain"))["result"][key])

    def test_what_moves_between_domains_is_no_less_than_what_they_share(self):
        self.profile("logistic", kReal / "a9a.svm.gz", "--solver", "sgd", "--iterations", "1", "--workers", "4", "--threads",
                     "2", "--topology", "numa:2 core:1 pu:1")
        (table,) = self.report()["tables"]
        for clock in table["between_domains"]:
            self.assertGreater(clock["least"], 0)
            self.assertLessEqual(clock["least"], clock["bytes"])
        self.assertEqual([many["nodes"] for many in table["between_nodes"]], [2, 4], "as many workers as nodes at least")
        for many in table["between_nodes"]:
            self.assertGreater(many["least"], 0)
            self.assertLessEqual(many["least"], min(many["bytes_by_use"], many["bytes_by_range"]))

    def test_slack_shows_in_what_reads_saw(self):
        self.profile("mf", self.ratings(), *kTables, "--staleness", "2")
        (table,) = self.report()["tables"]
        self.assertTrue(table["versioned"])
        self.assertLessEqual({one["clocks"] for one in table["staleness_of_reads"]}, {0, 1, 2})
        self.assert_time_adds_up(self.report())

    def test_rotation_shows_blocks_and_who_visits_them(self):
        self.profile("mf", self.ratings(), "--rank", "4", "--workers", "4", "--iterations", "3", "--threads", "2",
                     "--topology", "numa:2 core:1 pu:1")
        report = self.report()
        self.assert_time_adds_up(report)
        self.assertEqual(report["tables"], [])
        blocks = report["blocks"]
        units = sum(worker["units"] for worker in report["phases"]["workers"])
        self.assertEqual(sum(clock["visits"] for clock in blocks["clocks"]), units)
        self.assertEqual(len(blocks["visits"]), blocks["count"])
        for block in blocks["visits"]:
            self.assertEqual((block["workers"], sum(block["by_domain"])), (4, 12))
            self.assertGreater(block["bytes"], 0)
        for clock in blocks["clocks"]:
            self.assertGreaterEqual(clock["moves"], blocks["least_moves_of_clock"])
            self.assertGreater(clock["bytes"], 0)

    def test_every_kind_of_program_has_a_profile(self):
        graph = self.write("graph.txt", "".join(f"{a} {a * a % 97}\n" for a in range(97)))
        words = self.write("text.txt", "".join(f"w{i % 7} w{i % 11} w{i % 13}\n" for i in range(60)))
        for name, job in {
            "als": ("mf", self.ratings(), "--solver", "als", "--rank", "4"),
            "lda": ("lda", words, "--topics", "3"),
            "lda-tables": ("lda", words, "--topics", "3", "--schedule", "data"),
            "pagerank": ("pagerank", graph),
            "delta": ("pagerank", graph, "--method", "delta"),
            "newton": ("logistic", kReal / "a9a.svm.gz"),
        }.items():
            with self.subTest(name):
                self.profile(*job, "--iterations", "2", "--threads", "2", "--quiet", name=name)
                self.assert_time_adds_up(self.report(name))
                self.assertIn("</html>", (self.path(name) / "report.html").read_text())

    def test_a_record_that_was_cut_says_so(self):
        done = self.profile("mf", self.ratings(), *kTables, "--record-memory", "1K")
        recorded = self.report()["recorded"]
        self.assertTrue(recorded["cut"])
        self.assertLessEqual(4 * recorded["accesses"], 1024)
        self.assertGreater(recorded["dropped"], 0)
        self.assertIn("the record of accesses was cut", done.stdout)

    def test_a_report_is_not_written_over_other_files_of_the_command(self):
        data, plan = self.ratings(), self.path("report") / "report.json"
        for words in (("--plan-out", plan), ("--dump-config", self.path("report") / "report.html")):
            done = self.profile("mf", data, *kTables, *words, expect=USAGE)
            self.assertIn("the report would be written over", done.stderr)
        plan.parent.mkdir()
        plan.write_bytes(data.read_bytes())
        done = self.profile("mf", plan, *kTables, "--overwrite", expect=USAGE)
        self.assertIn("the report would be written over", done.stderr)
        self.assertEqual(plan.read_bytes(), data.read_bytes())

    def test_a_report_that_is_there_is_kept_unless_it_may_be_replaced(self):
        data = self.ratings()
        self.profile("mf", data, *kTables)
        before = (self.path("report") / "report.json").read_bytes()
        refused = self.profile("mf", data, *kTables, expect=USAGE)
        self.assertIn("--overwrite", refused.stderr)
        self.assertEqual(before, (self.path("report") / "report.json").read_bytes())
        self.profile("mf", data, *kTables, "--overwrite", "--record", "1")
        self.assertEqual(self.report()["recorded"]["iterations"], 1)
        iterations = self.record(self.path("report"))["result"]["iterations"]
        self.profile("mf", data, *kTables, "--overwrite", "--record", "1000000")
        self.assertEqual(self.report()["recorded"]["iterations"], iterations, "no more than there were")
        self.assert_no_temporaries(self.dir)

    def test_what_is_recommended_was_tried(self):
        # Fewer workers than threads: more are recommended, and the report says what came of them.
        words = ("--rank", "4", "--iterations", "4", "--threads", "2", "--workers", "1", "--schedule", "data", "--quiet")
        self.profile("mf", self.ratings(), *words)
        (workers,) = (advice for advice in self.report()["recommendations"] if advice["about"] == "workers")
        self.assertRegex(workers["evidence"], r"an iteration took .* ms with --workers 8 and .* ms without")
        self.assertNotIn("not tried", workers["what"])
        self.profile("mf", self.ratings(), *words, "--trials", "off", name="untried")
        (workers,) = (advice for advice in self.report("untried")["recommendations"] if advice["about"] == "workers")
        self.assertIn("--workers 8 might win time, but was not tried: --trials off", workers["what"])
        self.assertNotIn("tried", workers["evidence"])
        self.profile("mf", self.ratings(), *words[:3], "0", *words[4:], name="nothing")
        for advice in self.report("nothing")["recommendations"]:
            self.assertIn("no advice", advice["what"])

    def test_the_run_may_lie_elsewhere(self):
        self.profile("mf", self.ratings(), *kTables, "--out", self.path("run"))
        self.assertEqual(sorted(path.name for path in self.path("report").iterdir()), ["report.html", "report.json"])
        self.assertTrue((self.path("run") / "model").is_dir())

    def test_what_cannot_be_is_refused_and_leaves_nothing(self):
        data = self.ratings()
        bad = self.write("bad.txt", "1 2 3\n1 2 three\n")
        for words, code, said in (
            (("mf", bad, "--report", self.path("no")), DATA, "bad.txt:2"),
            (("mf", data), USAGE, "--report is missing"),
            (("mf", data, "--report", self.path("no"), "--simulate", "nodes:2"), USAGE, "--simulate"),
            (("mf", data, "--report", self.path("no"), "--record", "0"), USAGE, "--record"),
            (("mf", data, "--report", self.path("no"), "--record-memory", "much"), USAGE, "--record-memory"),
            (("mf", data, "--report", self.path("no"), "--recrod", "1"), USAGE, "did you mean '--record'"),
            (("mf", data, "--report", data, "--out", self.path("no")), OUTPUT, "train.txt"),
        ):
            with self.subTest(said):
                self.assertIn(said, self.run_orrery("profile", *words, expect=code).stderr)
                self.assertFalse((self.path("no") / "report.json").exists())
                self.assertFalse((self.path("no") / "model").exists())


class Page(Profiling):
    @unittest.skipUnless(chromium(), "needs Chromium (package chromium)")
    def test_pages_render_on_wide_and_narrow_screens_without_complaints(self):
        data = self.ratings()
        self.profile("mf", data, *kTables, "--quiet", name="tables")
        self.profile("mf", data, "--rank", "4", "--workers", "4", "--iterations", "6", "--quiet", name="rotation")
        browser = Browser(chromium())
        self.addCleanup(browser.close)
        for name in ("tables", "rotation"):
            for width, scheme in ((1280, "light"), (390, "dark")):
                with self.subTest(name=name, width=width):
                    self.look(browser, name, width, scheme)

    def look(self, browser, name, width, scheme):
        page = self.path(name) / "report.html"
        browser.open(page.as_uri(), width, scheme=scheme)
        self.assertEqual(browser.complaints(), [])
        self.assertEqual([url for url in browser.requests() if not url.startswith("data:")], [page.as_uri()])
        self.assertEqual(browser.value("innerWidth"), width)
        self.assertLessEqual(browser.value("document.documentElement.scrollWidth"), width)
        # Nothing but tables, which scroll by themselves, reaches beyond the screen.
        outside = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') &&
            e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"""
        self.assertEqual(browser.value(outside), [])
        charts = browser.value("""[...document.querySelectorAll('svg')].map(s => [s.getBoundingClientRect().height,
            s.getBoundingClientRect().width, s.getAttribute('role'),
            s.getAttribute('aria-labelledby').split(' ').map(id => document.getElementById(id).textContent),
            s.closest('figure').querySelectorAll('table tr').length, s.querySelectorAll('rect').length])""")
        self.assertGreaterEqual(len(charts), 4)
        for height, drawn_width, role, texts, rows, rectangles in charts:
            self.assertGreater(height, 15, texts)
            self.assertGreater(drawn_width, 0.8 * min(width, 400) - 40, texts)
            self.assertEqual(role, "img")
            self.assertEqual(len(texts), 2)
            self.assertTrue(all(texts), texts)
            self.assertGreaterEqual(rows, 2, texts)
            self.assertGreater(rectangles, 0, texts)
        ids = browser.value("[...document.querySelectorAll('[id]')].map(e => e.id)")
        self.assertEqual(len(ids), len(set(ids)))
        self.assertGreaterEqual(self.contrast(browser), 4.5)
        if os.environ.get("ORRERY_SCREENSHOTS"):
            browser.screenshot(Path(os.environ["ORRERY_SCREENSHOTS"]) / f"{name}-{width}.png")

    @staticmethod
    def contrast(browser):
        """Of text on the page, as WCAG has it."""
        def luminance(colour):
            parts = [int(part) / 255 for part in colour[colour.index("(") + 1:-1].split(",")[:3]]
            linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        paper, *inks = (luminance(browser.value(f"getComputedStyle(document.querySelector('{what}')).{key}"))
                        for what, key in (("body", "backgroundColor"), ("body", "color"), (".soft", "color"), ("a", "color")))
        return min((max(paper, ink) + 0.05) / (min(paper, ink) + 0.05) for ink in inks)


if __name__ == "__main__":
    unittest.main()
