"""What a measurement depends on besides the code: commit, compiler and flags, processor, topology, load."""

import json
import os
import platform
import re
import subprocess
from pathlib import Path

kCacheKeys = ("CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER", "CMAKE_CXX_FLAGS", "CMAKE_CXX_FLAGS_RELEASE",
              "CMAKE_CXX_FLAGS_RELWITHDEBINFO", "ORRERY_ASSERT", "ORRERY_NATIVE", "ORRERY_SANITIZE")


def record(orrery, root):
    """Everything that stands at the head of a result file."""
    return {"source": source(root), "build": build(orrery), "machine": machine(), "topology": topology(orrery)}


def source(root):
    """Commit of the checkout and whether it has changes that are not committed."""
    commit = _output(["git", "-C", str(root), "rev-parse", "HEAD"])
    status = _output(["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"])
    return {"commit": commit, "modified": bool(status)}


def build(orrery):
    """The CMake settings of the build folder that the program lies in; empty for an installed program."""
    for folder in Path(orrery).resolve().parents:
        cache = folder / "CMakeCache.txt"
        if cache.exists():
            found = _cache_values(cache.read_text(encoding="utf-8"))
            compiler = found.get("CMAKE_CXX_COMPILER")
            version = _output([compiler, "--version"]).splitlines() if compiler else []
            found["compiler"] = version[0] if version else None
            found["CMAKE_CXX_COMPILER"] = Path(compiler).name if compiler else None
            found["folder"] = folder.name
            return found
    return {}


def _cache_values(text):
    values = dict(re.findall(r"^([A-Za-z_]+):[A-Z]+=(.*)$", text, re.MULTILINE))
    return {key: values[key] for key in kCacheKeys if values.get(key)}


def machine():
    """Processor, caches, memory, kernel. No host name: a result file may be published."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*:\s*(.*)$", info, re.MULTILINE)
    flags = set(re.search(r"^flags\s*:\s*(.*)$", info, re.MULTILINE).group(1).split()) if "flags" in info else set()
    return {
        "cpu": model.group(1) if model else platform.machine(),
        "cores_allowed": len(os.sched_getaffinity(0)),
        "simd": [name for name in ("avx2", "avx512f") if name in flags],
        "caches": _caches(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def _caches():
    """Sizes of the data caches of core 0, from the kernel, or else (virtual machines) from the C library's CPUID."""
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level = (index / "level").read_text().strip()
        kind = (index / "type").read_text().strip()
        if kind != "Instruction":
            found[f"L{level}"] = (index / "size").read_text().strip()
    if not found:
        for level, name in (("L1", "LEVEL1_DCACHE_SIZE"), ("L2", "LEVEL2_CACHE_SIZE"), ("L3", "LEVEL3_CACHE_SIZE")):
            size = _output(["getconf", name])
            if size.isdigit() and int(size) > 0:
                found[level] = f"{int(size) // 1024}K"
    return found


def topology(orrery):
    """`orrery topology --json`, or the reason why there is none."""
    done = subprocess.run([str(orrery), "topology", "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"unknown": f"exit code {done.returncode}"}
    return json.loads(done.stdout)


def load():
    """The load average of the last minute: how much others disturbed."""
    return os.getloadavg()[0]


def _output(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
