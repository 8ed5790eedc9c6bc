"""bench/RESULTS.md: every number that the issues ask for, with its bound, what was measured, and how."""

from harness import targets as target_list


def render(judged, measurements, notes=None):
    """The whole page as text. `judged` comes from targets.judge, in the order of targets.json; notes from targets.notes."""
    notes = notes or {}
    parts = [_head(judged), _machines(measurements)]
    for issue in sorted({item["entry"]["issue"] for item in judged}):
        parts.append(_issue(issue, [item for item in judged if item["entry"]["issue"] == issue]))
        parts.append(_note(notes, f"issue {issue}"))
    parts += [_roofline(measurements), _note(notes, "roofline")]
    parts.append("## How it was measured\n\nEach case is one run in which the contenders take turns; medians of the rounds, "
                 "in brackets lowest and highest.\n")
    for name, case in sorted(measurements.cases.items()):
        parts.append(_case(case, measurements.origin(name)))
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _note(notes, name):
    return notes[name] + "\n" if name in notes else ""


def _head(judged):
    count = {verdict: sum(item["verdict"] == verdict for item in judged)
             for verdict in (target_list.kOk, target_list.kMiss, target_list.kOpen)}
    return ("# Results\n\nWritten by `bench/report`; do not edit. `bench/targets.json` has the list, bench/README.md the "
            f"protocol.\n\n**{count['ok']} reached, {count['MISS']} missed, {count['not measured']} not measured.** "
            "A bound is held against the median.\n")


def _machines(measurements):
    lines = ["## Machine and build\n", "| run | commit | compiler, build | processor | cores | memory | load average |",
             "|---|---|---|---|---|---|---|"]
    for result in measurements.used():
        record = result["record"]
        machine, build, source = record["machine"], record["build"], record["source"]
        commit = (source["commit"] or "unknown")[:12] + (" + changes" if source["modified"] else "")
        compiled = ", ".join(str(part) for part in (build.get("compiler"), build.get("CMAKE_BUILD_TYPE"),
                             f"assertions {build.get('ORRERY_ASSERT')}" if build.get("ORRERY_ASSERT") else None) if part)
        caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
        loads = [value for case in result["cases"] for value in case["load"]]
        load = f"{min(loads):.1f} … {max(loads):.1f}" if loads else "–"
        lines.append(f"| {result['created']} | {commit} | {compiled or 'unknown'} | {machine['cpu']} ({caches}; "
                     f"{', '.join(machine['simd']) or 'no AVX2'}) | {machine['cores_allowed']} | "
                     f"{machine['memory_bytes'] / 2**30:.0f} GiB | {load} |")
    return "\n".join(lines) + "\n"


def _issue(issue, judged):
    lines = [f"## Issue {issue}\n", "| what | required | measured | verdict |", "|---|---|---|---|"]
    for item in judged:
        entry = item["entry"]
        verdict = f"**{item['verdict']}**" if item["verdict"] == target_list.kMiss else item["verdict"]
        measured = item["why"] if item["found"] is None else spread(item["found"], entry.get("unit", ""))
        lines.append(f"| {entry['text']} | {target_list.required(entry)} | {measured or '–'} | {verdict} |")
    return "\n".join(lines) + "\n"


def _roofline(measurements):
    """Bytes moved by the kernels against the measured bandwidths, from the counters of the micro-benchmarks."""
    roofs, kernels = {}, []
    for case in measurements.cases.values():
        for contender in case["contenders"]:
            for key, value in contender["summary"].items():
                if key.startswith("bandwidth_") and key.endswith(".bytes_per_second") and value:
                    kind, level = key.rsplit(".", 1)[0].split("/")
                    roofs[level + (", rows" if kind == "bandwidth_rows" else "")] = value["median"]
                if key.endswith(".bytes_per_update") and value:
                    kernels.append((key.rsplit(".", 1)[0], contender["summary"]))
    if not roofs or not kernels:
        return ""
    told = ", ".join(f"{name} {value / 1e9:.1f} GB/s" for name, value in roofs.items())
    lines = ["## Roofline\n", "Read-modify-write bandwidth of one core (a sweep, and rows of 256 bytes in random order), "
             f"bytes counted once, measured in the same run: {told}.\n",
             "| kernel | M updates/s | bytes per update | GB/s | " + " | ".join(f"share of {name}" for name in roofs) + " |",
             "|---|---|---|---|" + "---|" * len(roofs)]
    for name, summary in kernels:
        rate, size = summary[f"{name}.items_per_second"]["median"], summary[f"{name}.bytes_per_update"]["median"]
        shares = " | ".join(f"{100 * rate * size / roof:.0f} %" for roof in roofs.values())
        lines.append(f"| {name} | {rate / 1e6:.1f} | {size:.0f} | {rate * size / 1e9:.1f} | {shares} |")
    return "\n".join(lines) + "\n"


def _case(case, result):
    data = case["data"]
    lines = [f"### {case['name']}\n", f"{case['what']}. Data: {data['name']}, {data['items']:,} items. "
             f"Quality: {case['quality']['name']}, {case['quality']['better']} is better. Run of {result['created']}.\n"]
    for name, value in case["targets"].items():
        lines.append(f"Target {name}: {'unknown' if value is None else f'{value:.6g}'}.\n")
    for contender in case["contenders"]:
        lines += _contender(contender, case)
    return "\n".join(lines)


def _contender(contender, case):
    if "skipped" in contender:
        return [f"- {contender['name']}: skipped, {contender['skipped']}"]
    if "failed" in contender:
        return [f"- {contender['name']}: failed, {contender['failed']}"]
    if contender["kind"] == "micro":
        return _micro(contender)
    keys = [f"seconds_to_{name}" for name in case["targets"]]
    keys += ["training_seconds", "command_seconds", "loading_seconds", "iterations", "items_per_second", "best_quality",
             "checked_quality", "peak_rss_bytes"]
    summary = contender["summary"]
    told = [f"{key} {_told(key, summary[key])}" for key in keys
            if key in summary and (summary[key] is not None or key.startswith("seconds_to_"))]
    lines = [f"- **{contender['name']}**: {'; '.join(told)}", f"  `{' '.join(contender['command'])}`"]
    if "tuning" in contender:
        trials = contender["tuning"]["trials"]
        lines.append(f"  Tuned over {len(trials)} settings, raced with {contender.get('settings')}; "
                     f"{sum(trial['best_quality'] is None for trial in trials)} of them gave no quality.")
        debias = contender["tuning"]["data"].get("debias")
        if debias:
            lines.append(f"  Fed ratings without mean and biases (damping {debias['damping']:g}, chosen among "
                         f"{', '.join(debias['tried'])} by the held-out error of the biases alone, "
                         f"{debias['rmse_of_biases']:.5f}).")
    return lines


def _told(key, found):
    if found is None:
        return "not reached"
    return f"{found['median']:.6g}" if key.endswith("quality") else spread(found)


def _micro(contender):
    lines = [f"- `{' '.join(contender['command'])}`\n", "| benchmark | time | rate |", "|---|---|---|"]
    for key in contender["summary"]:
        if key.endswith(".real_time"):
            name = key[:-len(".real_time")]
            rate = next((f"{spread(contender['summary'][f'{name}.{unit}'])} {unit}" for unit in
                         ("bytes_per_second", "items_per_second") if f"{name}.{unit}" in contender["summary"]), "–")
            lines.append(f"| {name} | {spread(contender['summary'][key])} ns | {rate} |")
    return lines


def spread(found, unit=""):
    """Median and range: "0.28 (0.27 … 0.31)"."""
    text = number(found["median"])
    if found["n"] > 1:
        text += f" ({number(found['min'])} … {number(found['max'])})"
    return f"{text} {unit}".strip()


def number(value):
    """Four significant digits, with thousands separators for large ones; times, sizes and rates need no more."""
    if abs(value) >= 10000:
        return f"{float(f'{value:.4g}'):,.0f}"
    return f"{value:.4g}"
