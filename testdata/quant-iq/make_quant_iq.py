#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The quantisation types that ggml writes only with an importance matrix, and what they dequantise to.

Two tensors of 8 rows x 512 for each type: t.<TYPE>, quantised by ggml's own `ggml_quantize_chunk` with an importance
of 1 everywhere from the source of text/quant; r.<TYPE>, random bytes whose float16 scales are finite. Dequantised by
gguf-py; ggml must give the same bits.
    LLAMA_CPP=<llama.cpp source> LLAMA_BIN=<its bin folder> python3 make_quant_iq.py
"""
import ctypes
import json
import os
import pathlib
import struct
import sys

import numpy as np

sys.path.insert(0, os.environ["LLAMA_CPP"] + "/gguf-py")
import gguf
from gguf.quants import dequantize

HERE = pathlib.Path(__file__).resolve().parent
TYPES = "IQ3_S IQ3_XXS IQ2_S IQ2_XS IQ2_XXS IQ1_S IQ1_M".split()
ROWS, COLS = 8, 512

lib = ctypes.CDLL(os.environ["LLAMA_BIN"] + "/libggml-base.so")
lib.ggml_quantize_chunk.restype = ctypes.c_size_t
lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                    ctypes.c_int64, ctypes.c_void_p]
lib.ggml_row_size.restype = ctypes.c_size_t
lib.ggml_row_size.argtypes = [ctypes.c_int, ctypes.c_int64]


def read_source():
    data = (HERE.parent / "text/quant/values.safetensors").read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    begin, end = json.loads(data[8:8 + n])["source"]["data_offsets"]
    return np.frombuffer(data[8 + n + begin:8 + n + end], np.float32).reshape(ROWS, COLS).copy()


def write_safetensors(path, tensors):
    header, body = {}, b""
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(body), len(body) + values.nbytes]}
        body += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def by_ggml(name, data):
    f = getattr(lib, "dequantize_row_" + name.lower())
    f.argtypes, f.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64], None
    out = np.zeros((ROWS, COLS), np.float32)
    f(data.ctypes.data, out.ctypes.data, ROWS * COLS)
    return out


def random_blocks(name, shape, block_bytes, random):
    """Any bytes, but exponents of the scale below 31."""
    data = random.randint(0, 256, shape, np.uint8).reshape(-1, block_bytes)
    if name == "IQ1_M":  # the scale's nibbles are the top ones of four 16-bit words, the exponent's high bits in the last
        data[:, 55] &= 0xBF
    else:
        data[:, 1] &= 0xBF
    return data.reshape(shape)


source = read_source()
importance = np.ones(COLS, np.float32)
random = np.random.RandomState(8192)
out = {}
writer = gguf.GGUFWriter(HERE / "blocks.gguf", "gemma4")
writer.add_string("general.name", "two tensors per quantisation type")
for name in TYPES:
    t = getattr(gguf.GGMLQuantizationType, name)
    quantised = np.zeros((ROWS, lib.ggml_row_size(int(t), COLS)), np.uint8)
    done = lib.ggml_quantize_chunk(int(t), source.ctypes.data, quantised.ctypes.data, 0, ROWS, COLS, importance.ctypes.data)
    assert done == quantised.nbytes, (name, done)
    block_bytes = gguf.GGML_QUANT_SIZES[t][1]
    for prefix, data in ("t.", quantised), ("r.", random_blocks(name, quantised.shape, block_bytes, random)):
        value = dequantize(data, t).astype(np.float32)
        assert np.isfinite(value).all()
        assert np.array_equal(value.view(np.uint32), by_ggml(name, data).view(np.uint32)), name
        writer.add_tensor(prefix + name, data, raw_shape=data.shape, raw_dtype=t)
        out[prefix + name] = value
    print(f"{name:7s} rms error {np.sqrt(np.mean((out['t.' + name] - source) ** 2)):.2e}")
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
write_safetensors(HERE / "values.safetensors", out)
