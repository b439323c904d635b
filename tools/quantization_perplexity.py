#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantises the tiny model with Facet and with llama.cpp to every type that both make, measures both files with the same
program, and prints the table of docs/quantization.md.

Usage: tools/quantization_perplexity.py FACET LLAMA_CPP_BIN   (a folder with llama-quantize and llama-perplexity)
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODEL = os.path.join(ROOT, "models/tiny/facet-tiny.gguf")
TEXT = os.path.join(ROOT, "testdata/perplexity/text.txt")
TYPES = ["q8_0", "q6_k", "q5_k_m", "q5_k_s", "q5_1", "q5_0", "q4_k_m", "q4_k_s", "iq4_nl", "iq4_xs", "q4_1", "q4_0", "q3_k_l",
         "q3_k_m", "q3_k_s", "q2_k", "mxfp4"]
WINDOW = 128


def quiet(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(facet, path):
    """Perplexity, and divergence from the BF16 model."""
    out = subprocess.run([facet, "perplexity", "--raw", "-c", str(WINDOW), "-m", path, "--against", MODEL, "--json", TEXT],
                         check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    figures = json.loads(out)
    return figures["perplexity"]["value"], figures["against"]["kl_divergence"]["value"]


def main():
    facet, folder = sys.argv[1:3]
    base, _ = measure(facet, MODEL)
    print(f"BF16: perplexity {base:.3f}, {os.path.getsize(MODEL):,} bytes\n")
    print("| `--type` | bytes: Facet | llama.cpp | perplexity: Facet | llama.cpp | divergence: Facet | llama.cpp |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        for name in TYPES:
            ours, theirs = os.path.join(work, "ours.gguf"), os.path.join(work, "theirs.gguf")
            quiet(facet, "quantize", "--type", name, MODEL, ours)
            cells = [f"{os.path.getsize(ours):,}"]
            figures = [measure(facet, ours)]
            if name == "mxfp4":  # llama.cpp gives this type to experts only
                cells.append("")
            else:
                quiet(os.path.join(folder, "llama-quantize"), MODEL, theirs, name.upper())
                cells.append(f"{os.path.getsize(theirs):,}")
                figures.append(measure(facet, theirs))
            for i, form in ((0, "{:.3f}"), (1, "{:.4f}")):
                cells += [form.format(figure[i]) for figure in figures] + [""] * (2 - len(figures))
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


main()
