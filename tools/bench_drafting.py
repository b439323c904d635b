#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the embedded model's replies with every way of guessing ahead beside replies without, in turn, several times, and
prints a table for docs/performance.md: how much was accepted, and how much sooner the replies were there.

Usage: tools/bench_drafting.py --facet build/release/facet [-n TIMES] [-t THREADS]

Prompts: those of testdata/tiny-hf/goldens.json with a reply of at least 16 tokens; and quoting ones, where the conversation
holds the very reply already and the question is asked again. Greedy, one program run a reply, so that learning what pays is
part of the time. Every reply must be the same as without guessing."""
import argparse
import json
import os
import statistics
import subprocess
import sys

GOLDENS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../testdata/tiny-hf/goldens.json")
MODES = ("ngram", "mtp", "auto")
LEAST_TOKENS = 16


def prompts():
    """(kind, text) of each prompt; the text goes to the model as it stands."""
    with open(GOLDENS, encoding="utf-8") as file:
        cases = [case for case in json.load(file)["cases"] if "prompt" in case and len(case["output_ids"]) >= LEAST_TOKENS]
    for case in cases:
        yield "goldens", case["prompt"]
    for case in cases:
        if len(case["messages"]) == 1 and not case["tools"] and not case["thinking"]:
            yield "quoting", case["prompt"] + case["output"] + "\n" + case["prompt"].removeprefix("<bos>")


def reply(arguments, mode, text):
    """(text of the reply, its finish event)."""
    command = [arguments.facet, "run", "--raw", "--json", "--temp", "0", "-n", "120", "-t", str(arguments.threads), "--spec", mode, "-p", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return "".join(event["text"] for event in events if event["event"] == "delta"), events[-1]


def measure(arguments, texts):
    """Per mode: ratios of the decoding time without guessing to that with it, one of each turn; counts of drafts."""
    ratios = {mode: [] for mode in MODES}
    counts = {}
    for _ in range(arguments.times):
        seconds = dict.fromkeys(("off", *MODES), 0.0)
        counts = {mode: dict(rounds=0, drafted=0, accepted=0, tokens=0) for mode in MODES}
        for text in texts:
            said = {}
            for mode in seconds:
                said[mode], finish = reply(arguments, mode, text)
                seconds[mode] += finish["timings"]["decode_s"]
                if mode != "off":
                    counts[mode]["tokens"] += finish["usage"]["completion_tokens"]
                    for name, count in finish.get("drafts", {}).items():
                        counts[mode][name] += count
            if len(set(said.values())) != 1:
                sys.exit(f"bench_drafting: replies differ: {said}")
        for mode in MODES:
            ratios[mode].append(seconds["off"] / seconds[mode])
    return ratios, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facet", required=True)
    parser.add_argument("-n", "--times", type=int, default=5)
    parser.add_argument("-t", "--threads", type=int, default=1)
    arguments = parser.parse_args()
    kinds = {}
    for kind, text in prompts():
        kinds.setdefault(kind, []).append(text)
    print("| prompts | --spec | drafted | accepted | tokens a step | sooner by, median (least to most) |")
    print("|---|---|---|---|---|---|")
    for kind, texts in kinds.items():
        ratios, counts = measure(arguments, texts)
        for mode in MODES:
            n = counts[mode]
            n_steps = n["tokens"] - n["accepted"]
            print(f"| {kind}, {len(texts)} | {mode} | {n['drafted']} | {n['accepted'] / max(1, n['drafted']):.0%} | "
                  f"{n['tokens'] / n_steps:.2f} | {statistics.median(ratios[mode]):.2f}x "
                  f"({min(ratios[mode]):.2f} to {max(ratios[mode]):.2f}) |")


if __name__ == "__main__":
    main()
