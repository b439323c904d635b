#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the errors of src/quant's encoders with those of llama.cpp, and prints the table of docs/quantization.md.

Needs the Python package numpy, a checkout of llama.cpp (for its gguf-py) with its shared libraries built, and the program
quant_encode, which is built with the tests. Both encodings are decoded by llama.cpp. Importance is drawn anew for every
column of a matrix: a squared normal number times a log-normal one. The exit status is 1 where llama.cpp errs less.

Usage: tools/quantization_table.py LLAMA_CPP build/dev/tests/quant_encode [--libraries LLAMA_CPP/build/bin]
"""
import argparse
import ctypes
import json
import os
import struct
import subprocess
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TYPES = ["Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "Q6_K", "Q5_K", "Q4_K", "Q3_K", "Q2_K", "IQ4_NL", "IQ4_XS", "MXFP4"]
FLOATS = ctypes.POINTER(ctypes.c_float)


class Traits(ctypes.Structure):
    """The beginning of ggml_type_traits."""
    _fields_ = [("name", ctypes.c_char_p), ("block", ctypes.c_int64), ("interleave", ctypes.c_int64),
                ("bytes", ctypes.c_size_t), ("is_quantized", ctypes.c_bool),
                ("to_float", ctypes.CFUNCTYPE(None, ctypes.c_void_p, FLOATS, ctypes.c_int64))]


class InitParams(ctypes.Structure):
    """ggml_init_params."""
    _fields_ = [("size", ctypes.c_size_t), ("buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


def floats(array):
    return array.ctypes.data_as(FLOATS) if array is not None else None


class Ggml:
    def __init__(self, folder):
        self.lib = ctypes.CDLL(os.path.join(folder, "libggml-base.so"))
        self.lib.ggml_get_type_traits.restype = ctypes.POINTER(Traits)
        self.lib.ggml_quantize_chunk.restype = ctypes.c_size_t
        self.lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, FLOATS, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                                 ctypes.c_int64, FLOATS]
        self.lib.ggml_init.argtypes = [InitParams]
        self.lib.ggml_init.restype = ctypes.c_void_p
        self.lib.ggml_init(InitParams(1 << 16, None, False))  # fills its table of halves

    def size(self, type_id, n):
        traits = self.lib.ggml_get_type_traits(type_id).contents
        return n // traits.block * traits.bytes

    def encode(self, type_id, x, importance):
        blocks = np.empty(self.size(type_id, x.size), np.uint8)
        self.lib.ggml_quantize_chunk(type_id, floats(x), blocks.ctypes.data, 0, *x.shape, floats(importance))
        return blocks

    def decode(self, type_id, blocks, shape):
        values = np.empty(shape, np.float32)
        self.lib.ggml_get_type_traits(type_id).contents.to_float(blocks.ctypes.data, floats(values), values.size)
        return values


def encode_ours(program, name, x, importance):
    """The blocks, and the values encoded per second."""
    data = x.tobytes()
    if importance is not None:
        data += np.ascontiguousarray(np.broadcast_to(importance, x.shape)).tobytes()
    done = subprocess.run([program, name, str(x.size)], input=data, capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.uint8).copy(), float(done.stderr)


def golden_source():
    with open(os.path.join(ROOT, "testdata/text/quant/values.safetensors"), "rb") as file:
        data = file.read()
    n_header, = struct.unpack("<Q", data[:8])
    entry = json.loads(data[8:8 + n_header])["source"]
    begin, end = entry["data_offsets"]
    return np.frombuffer(data[8 + n_header + begin:8 + n_header + end], np.float32).reshape(entry["shape"]).copy()


def tiny_matrices(gguf):
    """The matrices of models/tiny, in rows of whole blocks of 256."""
    matrices = []
    for tensor in gguf.GGUFReader(os.path.join(ROOT, "models/tiny/facet-tiny.gguf")).tensors:
        if len(tensor.shape) >= 2 and tensor.n_elements % 256 == 0:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
            width = values.shape[-1] if values.shape[-1] % 256 == 0 else 256
            matrices.append(np.ascontiguousarray(values.reshape(-1, width)))
    return matrices


def data_sets(gguf):
    random = np.random.default_rng(1)
    return {
        "normal": [random.standard_normal((256, 1024)).astype(np.float32)],
        "Student's t, 4": [random.standard_t(4, (256, 1024)).astype(np.float32)],
        "models/tiny": tiny_matrices(gguf),
        "testdata/text/quant": [golden_source()],
    }


def relative_error(x, stored, importance):
    weight = np.ones(x.shape[1]) if importance is None else importance.astype(np.float64)
    return float(((x.astype(np.float64) - stored) ** 2 * weight).sum() / (x.astype(np.float64) ** 2 * weight).sum())


def compare(ggml, program, name, type_id, matrices, is_weighted):
    """Mean relative errors (ours, llama.cpp's), the largest ratio of any matrix, our best speed."""
    ours, theirs, speeds = [], [], []
    for seed, x in enumerate(matrices):
        random = np.random.default_rng(seed)
        importance = None
        if is_weighted:
            importance = random.standard_normal(x.shape[1]) ** 2 * np.exp(random.standard_normal(x.shape[1]))
            importance = importance.astype(np.float32)
        blocks, speed = encode_ours(program, name, x, importance)
        ours.append(relative_error(x, ggml.decode(type_id, blocks, x.shape), importance))
        blocks = ggml.encode(type_id, x, importance)
        theirs.append(relative_error(x, ggml.decode(type_id, blocks, x.shape), importance))
        speeds.append(speed)
    return np.mean(ours), np.mean(theirs), max(a / b for a, b in zip(ours, theirs)), max(speeds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llama_cpp")
    parser.add_argument("quant_encode")
    parser.add_argument("--libraries")
    args = parser.parse_args()
    sys.path.insert(0, os.path.join(args.llama_cpp, "gguf-py"))
    import gguf  # pylint: disable=import-outside-toplevel
    ggml = Ggml(args.libraries or os.path.join(args.llama_cpp, "build", "bin"))
    sets = data_sets(gguf)
    others = list(sets)[1:]
    print("| type | error | llama.cpp | weighted | llama.cpp | " + " | ".join(others) + " | million values/s |")
    print("|---|" + "---|" * (5 + len(others)))
    is_worse = False
    for name in TYPES:
        cells, speed = [], 0
        for label, matrices in sets.items():
            results = [compare(ggml, args.quant_encode, name, int(gguf.GGMLQuantizationType[name]), matrices, weighted)
                       for weighted in (False, True)]
            is_worse |= any(result[2] > 1 for result in results)
            if label == "normal":
                cells += [f"{1000 * error:.3f}" for result in results for error in result[:2]]
                speed = min(result[3] for result in results)
            else:
                cells.append(", ".join(f"{result[2]:.2f}" for result in results))
        print(f"| {name} | " + " | ".join(cells) + f" | {speed / 1e6:.0f} |", flush=True)
    return 1 if is_worse else 0


if __name__ == "__main__":
    sys.exit(main())
