#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the encoders of a projector beside llama.cpp's, in turn, several times, and prints medians, spread and ratios as
a table for docs/performance.md.

Usage: tools/bench_media.py --peer FOLDER --model MODEL.gguf --bench build/release/bench/media_bench [-n TIMES]
                            [-t THREADS] MMPROJ.gguf…

FOLDER holds llama.cpp's llama-mtmd-cli. MODEL is any model whose width fits the projectors (facet synth --shape e2b:5
makes a small one); only the time of the encoders counts. The picture has 768 x 768 pixels, 256 soft tokens for both; the
sound lasts 30 s, 750 soft tokens."""
import argparse
import json
import os
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import zlib

SIDE = 768
SECONDS = 30
RATE = 16000
PEER_LINE = re.compile(r"encoding done in (\d+) ms")


def write_picture(path):
    noise = random.Random(1)
    rows = b"".join(b"\0" + noise.randbytes(3 * SIDE) for _ in range(SIDE))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows, 1)),
              (b"IEND", b"")]
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for name, data in chunks:
            file.write(struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)))


def write_sound(path):
    noise = random.Random(2)
    samples = struct.pack(f"<{SECONDS * RATE}h", *(noise.randrange(-1600, 1600) for _ in range(SECONDS * RATE)))
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(samples), b"WAVE", b"fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16,
                       b"data", len(samples))
    with open(path, "wb") as file:
        file.write(head + samples)


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


def run_facet(arguments, projector):
    """Seconds of each piece of work; of those that are done twice the second."""
    seconds = {}
    for line in output_of([arguments.bench, projector, str(arguments.threads)]).splitlines():
        result = json.loads(line)
        seconds[result["what"]] = result["seconds"]
        seconds["memory"] = result["peak_mb"]
    return seconds


def run_peer(arguments, projector, picture, sound):
    """The same: each medium is given twice, and the second counts."""
    command = [os.path.join(arguments.peer, "llama-mtmd-cli"), "-m", arguments.model, "--mmproj", projector, "-t",
               str(arguments.threads), "-n", "1", "-c", "4096", "--no-warmup", "--jinja", "-p", "x"]
    seconds = {}
    for name, path in (("picture", picture), ("30 s of sound", sound)):
        found = PEER_LINE.findall(output_of(command + ["--image", f"{path},{path}"]))
        if len(found) >= 2:
            seconds[name] = sum(int(ms) for ms in found[len(found) // 2:]) / 1000
    return seconds


def shown(values):
    return f"{statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--bench", required=True)
    parser.add_argument("-n", "--times", type=int, default=5)
    parser.add_argument("-t", "--threads", type=int, default=os.cpu_count())
    parser.add_argument("projectors", nargs="+")
    arguments = parser.parse_args()
    print("| projector | | Facet | llama.cpp | ratio |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        picture, sound = os.path.join(folder, "picture.png"), os.path.join(folder, "sound.wav")
        write_picture(picture)
        write_sound(sound)
        for projector in arguments.projectors:
            ours, theirs = {}, {}
            for _ in range(arguments.times):
                for into, seconds in ((ours, run_facet(arguments, projector)),
                                      (theirs, run_peer(arguments, projector, picture, sound))):
                    for name, value in seconds.items():
                        into.setdefault(name, []).append(value)
            name = os.path.basename(projector)
            for what, values in theirs.items():
                ratio = statistics.median(values) / statistics.median(ours[what])
                print(f"| {name} | {what} | {shown(ours[what])} | {shown(values)} | {ratio:.1f} |", flush=True)
            for what in sorted(set(ours) - set(theirs) - {"memory"}):
                print(f"| {name} | {what} | {shown(ours[what])} | | |", flush=True)
            print(f"| {name} | memory, at most | {max(ours['memory'])} MB | | |", flush=True)


if __name__ == "__main__":
    main()
