"""PageRank from the command line: a graph whose ranks are known, bits, and the edges of the interface."""

import unittest

from support import CommandLine, DATA, USAGE


class PageRank(CommandLine):
    def pagerank(self, data, out, *words, **options):
        return self.run_orrery("train", "pagerank", data, "--out", out, "--quiet", *words, **options)

    def generated(self):
        graph = self.dir / "graph.txt"
        self.run_orrery("data", "generate", "graph", "--out", graph, "--scale", "10", "--edges", "9000")
        return graph

    def test_the_ranks_of_a_star_are_known(self):
        # Three leaves point at the hub, the hub at nobody: its rank is given to all.
        star = self.write("star.txt", "1 0\n2 0\n3 0\n")
        nodes = self.write("nodes.txt", "0\n1\n")
        self.pagerank(star, self.dir / "r", "--tolerance", "1e-12", "--verify")
        lines = self.run_orrery("predict", "--model", self.dir / "r", nodes, "--out", "-").stdout.split()
        hub, leaf = (float(line) for line in lines)
        self.assertAlmostEqual(hub + 3 * leaf, 1, places=9)
        self.assertAlmostEqual(leaf, 0.15 / 4 + 0.85 * hub / 4, places=9)
        self.assertAlmostEqual(hub, leaf + 0.85 * 3 * leaf, places=9)

    def test_both_methods_and_any_threads_agree(self):
        graph = self.generated()
        sums = set()
        for threads in (1, 2, 4):
            self.pagerank(graph, self.dir / str(threads), "--threads", threads)
            sums.add(self.checksum(self.dir / str(threads)))
        self.assertEqual(len(sums), 1)
        self.pagerank(graph, self.dir / "delta", "--method", "delta", "--tolerance", "1e-9", "--verify")
        shown = self.run_orrery("evaluate", "--model", self.dir / "delta", graph).stdout
        residual = next(float(line.split()[1]) for line in shown.splitlines() if line.startswith("residual"))
        self.assertLess(residual, 1e-8)

    def test_a_residual_that_is_not_reached_is_exit_code_1(self):
        graph = self.generated()
        self.pagerank(graph, self.dir / "r", "--tolerance", "1e-12", "--iterations", "2", expect=1)

    def test_bad_requests_are_refused_by_name(self):
        graph = self.write("g.txt", "0 1\n1 0\n")
        words = self.write("words.txt", "0 one\n")
        empty = self.write("empty.txt", "# no edges\n")
        for data, options, code, text in ((graph, ("--damping", "1"), USAGE, "--damping"),
                                          (graph, ("--staleness", "1"), USAGE, "bsp"),
                                          (graph, ("--valid", graph), USAGE, "--valid"),
                                          (words, ("--format", "edges"), DATA, "words.txt:1"),
                                          (empty, ("--format", "edges"), DATA, "empty.txt")):
            with self.subTest(options=options, data=data.name):
                done = self.pagerank(data, self.dir / "bad", *options, expect=code)
                self.assertIn(text, done.stderr)
                self.assert_no_model(self.dir / "bad")


if __name__ == "__main__":
    unittest.main()
