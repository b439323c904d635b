#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `facet bench` and llama.cpp's benchmarks in turn on the same checkpoints and tells both. Called by bench_peer.sh,
which has what it needs built."""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCUMENT = os.path.join(ROOT, "docs/performance.md")
SHAPES = ["e2b/q4_0", "e4b/q4_0", "26b-a4b:6/q4_0", "12b:6/q4_k_m", "e2b/q8_0", "e2b/q4_k_m"]
PROMPTS = [512, 2048]
N_GEN = 32
N_TOGETHER = 8
# The name of a piece of work in the tables, and how to know it among the results of facet bench.
WORKS = {f"prefill {n}": {"kind": "prefill", "n_prompt": n} for n in PROMPTS}
WORKS["decode"] = {"kind": "decode", "parallel": 1}
WORKS[f"decode, {N_TOGETHER} together"] = {"kind": "decode", "parallel": N_TOGETHER}


class Failure(Exception):
    """A program that did not do what it was asked for; the text says so to people."""


# --- running --------------------------------------------------------------------------------------------------------

def output_of(command):
    """Standard output. The end of standard error is shown when the program fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def run_facet(program, path, threads):
    """Results of one process; `threads` None: its own default."""
    command = [program, "bench", "-m", path, "--json", "-r", "1", "-p", ",".join(map(str, PROMPTS)), "-n", str(N_GEN),
               "-d", "0", "--parallel", f"1,{N_TOGETHER}"]
    if threads:
        command += ["-t", str(threads), "--kv-type", "f16"]
    report = json.loads(output_of(command))
    figures = {}
    for work, wanted in WORKS.items():
        result = next(r for r in report["results"] if all(r[key] == value for key, value in wanted.items()))
        figures[work] = {"tokens_per_second": result["tokens_per_second"]["median"], "limit": result["limit"],
                         "share_of_limit": result["share_of_limit"]}
    return figures, {key: report[key] for key in ("machine", "isa", "threads", "packed", "load_seconds")}


def run_peer(folder, path, threads):
    """The same of the peer. Its warm-up runs the whole prompt again, so a short prompt comes first in its place; and its
    several sequences must have a prompt, of one token."""
    bench = [f"{folder}/llama-bench", "-m", path, "-r", "1", "-o", "json"]
    batched = [f"{folder}/llama-batched-bench", "-m", path, "-c", "2048", "--output-format", "jsonl", "-npp", "1",
               "-ntg", str(N_GEN), "-npl", str(N_TOGETHER)]
    if threads:
        own = ["-t", str(threads), "-ub", "512", "-ctk", "f16", "-ctv", "f16", "-fa", "on"]
        bench += own
        batched += own
    prompts = json.loads(output_of(bench + ["-p", ",".join(map(str, [64] + PROMPTS)), "-n", "0", "--no-warmup"]))
    decode = json.loads(output_of(bench + ["-p", "0", "-n", str(N_GEN)]))
    together = [json.loads(line) for line in output_of(batched).splitlines() if line.startswith("{")]
    rates = {f"prefill {r['n_prompt']}": r["avg_ts"] for r in prompts}
    rates["decode"] = decode[0]["avg_ts"]
    rates[f"decode, {N_TOGETHER} together"] = next(r["speed_tg"] for r in together if r["pl"] == N_TOGETHER)
    figures = {work: {"tokens_per_second": rates[work]} for work in WORKS}
    return figures, {"commit": decode[0]["build_commit"], "threads": decode[0]["n_threads"]}


def run_in_turn(options, path, threads):
    """All runs of one checkpoint in one setting; who goes first alternates."""
    facet, peer, about = [], [], {}
    for run in range(options.runs):
        for is_facet in ([True, False] if run % 2 == 0 else [False, True]):
            say(f"{os.path.basename(path)}, {'matched' if threads else 'default'} setting, run {run + 1} of "
                f"{options.runs}: {'facet' if is_facet else 'llama.cpp'}")
            if is_facet:
                figures, about["facet"] = run_facet(options.facet, path, threads)
                facet.append(figures)
            else:
                figures, about["peer"] = run_peer(options.peer, path, threads)
                peer.append(figures)
    return {**about, "works": {work: compare([f[work] for f in facet], [p[work] for p in peer]) for work in WORKS}}


def make_checkpoint(options, shape, file_type):
    """The path, and whether it was made now."""
    path = os.path.join(options.out, f"{shape.replace(':', '-')}-{file_type}.gguf")
    if os.path.exists(path):
        return path, False
    say(f"making {path}")
    output_of([options.facet, "synth", "--shape", shape, "--type", file_type, path])
    return path, True


def say(text):
    print(text, file=sys.stderr, flush=True)


# --- figures --------------------------------------------------------------------------------------------------------

def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def compare(facet, peer):
    """Figures of one piece of work from the runs of both, in the order of the runs."""
    own = [run["tokens_per_second"] for run in facet]
    other = [run["tokens_per_second"] for run in peer]
    return {"facet": spread(own), "peer": spread(other), "ratio": spread([a / b for a, b in zip(own, other)]),
            "limit": facet[0]["limit"], "share_of_limit": statistics.median(run["share_of_limit"] for run in facet),
            "runs": {"facet": own, "peer": other}}


def digits(value):
    """Three digits."""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def shown(values):
    return f"{digits(values['median'])} ({digits(values['min'])} to {digits(values['max'])})"


def table(results, setting):
    lines = ["| checkpoint | work | facet, tokens/s | llama.cpp, tokens/s | ratio | of the limit |", "|---|---|---|---|---|---|"]
    for result in results["checkpoints"]:
        for work, figures in result["settings"].get(setting, {"works": {}})["works"].items():
            lines.append(f"| {result['shape']} {result['type']} | {work} | {shown(figures['facet'])} | {shown(figures['peer'])} "
                         f"| {shown(figures['ratio'])} | {100 * figures['share_of_limit']:.0f} % {figures['limit']} |")
    return "\n".join(lines)


def describe(results):
    """The machine and the programs, of the last process that ran."""
    last = list(results["checkpoints"][-1]["settings"].values())[-1]
    machine = last["facet"]["machine"]
    rates = [s["facet"]["machine"] for c in results["checkpoints"] for s in c["settings"].values()]
    read = statistics.median(r["read_bytes_per_second"] for r in rates)
    multiply = statistics.median(r["operations_per_second"] for r in rates)
    return (f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_bytes'] / 1e9:.0f} GB of memory; memory read at "
            f"{digits(read / 1e9)} GB/s, int8 multiplied at {digits(multiply / 1e9)} Gop/s. Facet: kernels {last['facet']['isa']}, "
            f"{last['facet']['threads']} threads, weights {'packed' if last['facet']['packed'] else 'as in the file'}. "
            f"llama.cpp: commit {last['peer']['commit']}, {last['peer']['threads']} threads. Runs of each: {results['runs']}.")


TITLES = {"matched": "Matched settings: the same threads and batches, f16 keys and values, flash attention",
          "default": "Each program's own defaults"}


def report(results):
    parts = [describe(results)]
    for setting in results["settings"]:
        parts += [TITLES[setting] + ":", table(results, setting)]
    return "\n\n".join(parts) + "\n"


def replace_between_markers(document, text):
    """The document with what stands between the two markers replaced."""
    begin, end = "<!-- bench_peer: begin -->\n", "<!-- bench_peer: end -->"
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(begin) > document.index(end):
        raise Failure(f"{DOCUMENT}: no place for the tables, wanted one {begin.strip()} and one {end} after it")
    return document[:document.index(begin) + len(begin)] + "\n" + text + "\n" + document[document.index(end):]


# --- the command ----------------------------------------------------------------------------------------------------

def threads_of(facet):
    """What Facet takes by itself."""
    return json.loads(output_of([facet, "inspect", "--json"]))["compute"]["threads"]


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--facet", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shapes", type=lambda text: text.split(","), default=SHAPES)
    parser.add_argument("--settings", type=lambda text: text.split(","), default=list(TITLES))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", default=os.path.join(ROOT, "build/bench_peer"))
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--docs", action="store_true")
    options = parser.parse_args(arguments)
    if options.runs < 1 or (options.threads is not None and options.threads < 1):
        parser.error("--runs and --threads: at least 1")
    if not set(options.settings) <= set(TITLES):
        parser.error(f"--settings: {', '.join(options.settings)}, wanted some of {', '.join(TITLES)}")
    if any(shape.count("/") != 1 for shape in options.shapes):
        parser.error("--shapes: wanted SHAPE/TYPE, with commas between")
    return options


def measure(options):
    """Runs everything; results.json is written after each checkpoint, so that a run that is cut leaves what it has."""
    results = {"runs": options.runs, "settings": options.settings, "checkpoints": []}
    for name in options.shapes:
        shape, file_type = name.split("/")
        path, is_new = make_checkpoint(options, shape, file_type)
        try:
            settings = {s: run_in_turn(options, path, options.threads if s == "matched" else None) for s in options.settings}
        finally:
            if is_new and not options.keep:
                os.remove(path)
        results["checkpoints"].append({"shape": shape, "type": file_type, "settings": settings})
        with open(os.path.join(options.out, "results.json"), "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return results


def main(arguments):
    options = parse(arguments)
    os.makedirs(options.out, exist_ok=True)
    try:
        if options.docs:  # before hours of work are lost to it
            with open(DOCUMENT, encoding="utf-8") as file:
                replace_between_markers(file.read(), "")
        options.threads = options.threads or threads_of(options.facet)
        text = report(measure(options))
        print(text, end="")
        if options.docs:
            with open(DOCUMENT, encoding="utf-8") as file:
                document = replace_between_markers(file.read(), text)
            with open(DOCUMENT, "w", encoding="utf-8") as file:
                file.write(document)
    except Failure as failure:
        say(f"bench_peer: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
