"""Builds of many files at once (presets asan, tsan, fuzz; the command line in release builds) put the sources of a folder
into one translation unit, where unnamed namespaces are one. Finds names that would meet there, before such a build does:
two files of a folder that define one name in an unnamed namespace, and unnamed types named like one of a header that some
file of the folder includes."""

import collections
import re
import subprocess
import sys
from pathlib import Path

kOpen = re.compile(r"namespace\s*([\w:]*)\s*{")
kType = re.compile(r"(?:template <.*> )?(?:struct|class|union|enum class|enum)\s+(?:\[\[.*\]\]\s*|alignas\([^()]*\)\s*)?(\w+)[^;]*$")
kAlias = re.compile(r"using (\w+) =")
kValue = re.compile(r"(?:constexpr|const|inline|static)\b[^(]*?\b(\w+)(?:\[.*\])?(?:\s*=|\{)")
kFunction = re.compile(r"[\w:<>,&*\[\] ]+?[ &*](\w+)(\([^)]*\)?)")
kTest = re.compile(r"TEST(?:_[FP])?\((\w+, \w+)\)")


def names(path):
    """Of types, aliases, values, functions with their parameters, and tests, each with its scope."""
    scope = []
    for line in path.read_text().splitlines():
        if opened := kOpen.match(line):
            scope.append(opened[1])
        elif line.startswith("}  // namespace"):
            scope.pop()
        elif not line or line[0] in " }#/":
            continue
        elif test := kTest.match(line):
            yield "test", ("tests",), test[1]
        else:
            yield from ((kind, tuple(scope), name) for kind, name in defined(line))


def defined(line):
    if found := kType.match(line):
        yield "type", found[1]
    elif found := kAlias.match(line):
        yield "type", found[1]
    elif found := kValue.match(line):
        yield "value", found[1]
    elif found := kFunction.match(line):
        yield "function", found[1] + found[2]


def tracked(root, pattern):
    listed = subprocess.run(["git", "-C", root, "ls-files", pattern], check=True, capture_output=True, text=True).stdout
    return [Path(root) / name for name in listed.split() if (Path(root) / name).exists()]


def included(path):
    return re.findall(r'#include "(.*)"', path.read_text())


def meetings(root):
    # A program of bench/ is one of those files.
    sources = [path for path in tracked(root, "*.cpp") if "bench" not in path.relative_to(root).parts]
    reached = {(path.parent, name) for path in sources for name in included(path)}
    in_headers = {(scope, name): path for path in tracked(root, "*.h") for kind, scope, name in names(path) if kind == "type"}
    places = collections.defaultdict(set)
    for path in sources:
        if "_kernels_" in path.name or "probe" in path.name:  # compiled alone
            continue
        for kind, scope, name in names(path):
            if kind == "test" or "" in scope:
                places[path.parent, scope, name].add(path)
            if kind == "type" and scope and scope[-1] == "" and (scope[:-1], name) in in_headers:
                header = str(in_headers[scope[:-1], name].relative_to(root))
                if (path.parent, header) in reached:
                    yield f"{path.relative_to(root)}: {name} is also in {header}"
    for (_, _, name), files in places.items():
        if len(files) > 1:
            yield f"{name}: in " + ", ".join(sorted(str(path.relative_to(root)) for path in files))


if __name__ == "__main__":
    found = sorted(meetings(Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "no names would meet")
    sys.exit(1 if found else 0)
