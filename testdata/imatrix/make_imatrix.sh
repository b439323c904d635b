#!/bin/sh
# Makes the importance matrices of this folder with llama.cpp. LLAMA_BIN is the folder of its programs. Run it here.
set -eu
tiny=../tiny-gguf/facet-tiny-q8_0.gguf
moe=../text/gguf/moe-keqv-Q4_0.gguf
run() { "$LLAMA_BIN/llama-imatrix" -f text.txt -c 256 -b 256 --chunks 1 -t 1 --no-ppl "$@"; }
run -m "$tiny" -o tiny-q8_0.gguf
run -m "$tiny" -o tiny-q8_0.dat --output-format dat
run -m "$moe" -o moe-q4_0.gguf
