#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes peer.json: what llama.cpp's llama-perplexity measures on text.txt. Usage: make_peer.py LLAMA_PERPLEXITY"""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MODELS = {"bf16": "models/tiny/facet-tiny.gguf", "q8_0": "testdata/tiny-gguf/facet-tiny-q8_0.gguf"}
WINDOWS = [128, 256, 512]


def run(program, model, window, last, *more):
    """The program's output up to the line that holds `last`; it sometimes ends before it has printed everything."""
    command = [program, "-m", os.path.join(ROOT, MODELS[model]), "-f", os.path.join(HERE, "text.txt"), "-t", "1",
               "-c", str(window), "-b", str(window), *more]
    for _ in range(10):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if last in done.stdout:
            return done.stdout
    raise RuntimeError(f"no {last} in the output of {' '.join(command)}: {done.stdout}")


def numbers(text, pattern):
    return [float(number) for number in re.search(pattern, text).groups()]


def perplexity(program, model, window):
    text = run(program, model, window, "PPL =")
    value, error = numbers(text, r"PPL = ([\d.]+) \+/- ([\d.]+)")
    chunks, = numbers(text, r"perplexity over (\d+) chunks")
    return {"model": MODELS[model], "window": window, "chunks": int(chunks), "perplexity": value, "error": error}


def divergence(program, window):
    with tempfile.TemporaryDirectory() as folder:
        base = os.path.join(folder, "base")
        run(program, "bf16", window, "PPL =", "--kl-divergence-base", base)
        text = run(program, "q8_0", window, "Same top", "--kl-divergence-base", base, "--kl-divergence")
    mean, error = numbers(text, r"Mean    KLD: +([-\d.]+) ± +([\d.]+)")
    ratio, ratio_error = numbers(text, r"Mean PPL\(Q\)/PPL\(base\) +: +([\d.]+) ± +([\d.]+)")
    return {"model": MODELS["q8_0"], "against": MODELS["bf16"], "window": window, "mean": mean, "error": error,
            "median": numbers(text, r"Median  KLD: +([-\d.]+)")[0], "p99": numbers(text, r"99.0%   KLD: +([-\d.]+)")[0],
            "max": numbers(text, r"Maximum KLD: +([-\d.]+)")[0], "ratio": ratio, "ratio_error": ratio_error,
            "same_top_percent": numbers(text, r"Same top p: +([\d.]+)")[0]}


def main():
    program = sys.argv[1]
    figures = {"perplexity": [perplexity(program, model, window) for model in MODELS for window in WINDOWS],
               "divergence": divergence(program, 128)}
    with open(os.path.join(HERE, "peer.json"), "w", encoding="utf-8") as file:
        json.dump(figures, file, indent=1)
        file.write("\n")


main()
