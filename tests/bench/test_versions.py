"""Another commit is built outside the tree and leaves nothing behind."""

import subprocess
import unittest

from support import InFolder
from harness import cases, versions
from harness.errors import BenchError

kLists = """cmake_minimum_required(VERSION 3.25)
project(tiny NONE)
add_custom_command(OUTPUT bin/orrery COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/orrery.sh bin/orrery)
add_custom_target(all_of_it ALL DEPENDS bin/orrery)
"""
kPresets = """{"version": 6, "configurePresets": [
  {"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/${presetName}"}]}"""


class TwoVersions(InFolder):
    def setUp(self):
        super().setUp()
        self.tree = self.folder / "tree"
        self.write("tree/CMakeLists.txt", kLists)
        self.write("tree/CMakePresets.json", kPresets)
        self.git("init", "-q", "-b", "main")
        self.commit("echo old")
        self.commit("echo new")

    def git(self, *arguments):
        name = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(["git", "-C", self.tree, *name, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def commit(self, text):
        self.program("tree/orrery.sh", text + "\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", text)

    def said(self, folder):
        return subprocess.run([folder / "orrery"], capture_output=True, text=True, check=True).stdout.strip()

    def versions(self, reference="HEAD~1"):
        return versions.Versions(self.tree, reference)

    def test_both_are_built_outside_the_tree_and_nothing_is_left(self):
        with self.versions() as two:
            folders = [two.build(side, ["orrery"], say=lambda text: None) for side in ("before", "after")]
            self.assertEqual([self.said(folder) for folder in folders], ["old", "new"])
            self.assertFalse(any(folder.is_relative_to(self.tree) for folder in folders))
        self.assertFalse(any(folder.exists() for folder in folders))
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)
        self.assertEqual(self.git("status", "--porcelain"), "")

    def test_after_is_the_tree_as_it_is(self):
        self.program("tree/orrery.sh", "echo not committed\n")
        with self.versions() as two:
            self.assertEqual(self.said(two.build("after", ["orrery"], say=lambda text: None)), "not committed")

    def test_nothing_is_left_also_when_something_fails(self):
        with self.assertRaises(RuntimeError), self.versions():
            raise RuntimeError
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)

    def test_an_unknown_commit_and_a_build_that_fails_are_errors(self):
        with self.assertRaisesRegex(BenchError, "names no commit"), self.versions("nothing"):
            pass
        with self.assertRaisesRegex(BenchError, "failed"), self.versions() as two:
            two.build("after", ["no_such_program"], say=lambda text: None)


class Sides(unittest.TestCase):
    def test_each_of_our_own_runs_as_both_sides_next_to_each_other_and_peers_do_not(self):
        case = cases.Case("c", 2, "w", "d", {}, {}, {}, [
            cases.Contender("a", "orrery", []), cases.Contender("p", "libmf", [], peer="libmf"),
            cases.Contender("b", "orrery", [])])
        self.assertEqual([item.name for item in versions.both_sides(case)], ["a@before", "a@after", "b@before", "b@after"])


if __name__ == "__main__":
    unittest.main()
