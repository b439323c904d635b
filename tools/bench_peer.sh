#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Speed of Facet beside that of llama.cpp, the peer: same checkpoints, same machine, in turn. Builds what is missing, makes
# the checkpoints (random weights of real shape) and prints medians, spread and ratios; see docs/performance.md.
#
# Usage: tools/bench_peer.sh [OPTIONS]
#   --peer DIR      folder with llama-bench and llama-batched-bench (default: built in ~/.cache/facet/peer, which takes
#                   about 15 minutes; needs npm, git, cmake, ninja)
#   --facet FILE    program to measure (default: build/release/facet, built if it is missing)
#   --runs N        times that each program runs each checkpoint (default: 3)
#   --shapes LIST   checkpoints as SHAPE/TYPE, with commas between (default: all rows of the table)
#   --settings LIST matched, default or both (default: matched,default)
#   --threads T     of the matched setting (default: one per physical core)
#   --out DIR       where checkpoints and results.json go (default: build/bench_peer); a checkpoint that is there is used
#   --keep          do not remove checkpoints that were made; without it there is one at a time
#   --docs          also write the tables into docs/performance.md
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
peer_package=node-llama-cpp@3.21.1  # the npm package carries llama.cpp's sources
peer=""
facet=""
rest=()
while [ $# -gt 0 ]; do
  case $1 in
    --peer) peer=${2:?--peer wants a folder}; shift 2 ;;
    --facet) facet=${2:?--facet wants a file}; shift 2 ;;
    --runs | --shapes | --settings | --threads | --out) rest+=("$1" "${2:?$1 wants a value}"); shift 2 ;;
    --keep | --docs) rest+=("$1"); shift ;;
    -h | --help) sed -n '3,18s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "bench_peer: unknown option $1 (--help lists them)" >&2; exit 1 ;;
  esac
done

# Leaves DIR/build/bin/llama-bench and llama-batched-bench.
build_peer() {
  local dir=$1
  mkdir -p "$dir"
  if [ ! -d "$dir/src" ]; then
    (cd "$dir" && npm pack --silent "$peer_package" >/dev/null && tar xzf node-llama-cpp-*.tgz package/llama/gitRelease.bundle)
    git clone -q "$dir/package/llama/gitRelease.bundle" "$dir/src.part"
    # g++ 12 drops the stores to the tile configuration, and the peer would crash on processors with AMX.
    sed -i 's|^    _tile_loadconfig(&tc);|    asm volatile("" : : "r"(\&tc) : "memory");\n&|' \
      "$dir/src.part/ggml/src/ggml-cpu/amx/mmq.cpp"
    mv "$dir/src.part" "$dir/src"
  fi
  cmake -S "$dir/src" -B "$dir/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF \
    -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF >"$dir/configure.log"
  ninja -C "$dir/build" llama-bench llama-batched-bench
}

if [ -z "$peer" ]; then
  peer=${XDG_CACHE_HOME:-$HOME/.cache}/facet/peer/build/bin
  [ -x "$peer/llama-batched-bench" ] || build_peer "${peer%/build/bin}" >&2
fi
if [ -z "$facet" ]; then
  facet=$root/build/release/facet
  [ -x "$facet" ] || { cd "$root" && cmake --preset release && cmake --build build/release --target facet; } >&2
fi
for program in "$peer/llama-bench" "$peer/llama-batched-bench" "$facet"; do
  [ -x "$program" ] || { echo "bench_peer: $program: no such program" >&2; exit 1; }
done
exec python3 "$root/tools/bench_peer.py" --peer "$peer" --facet "$facet" "${rest[@]+"${rest[@]}"}"
