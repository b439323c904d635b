#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dense-k256/model.safetensors without transformers, from the rules in tinylib.py.

What: make_models.py fills every tensor from a generator of its own, seeded by model seed and tensor name, so a
checkpoint is determined by the names and shapes of its tensors. This script states those of a dense k_eq_v model
from config.json, hands them to the very same `tinylib.fill` (transformers is replaced by an empty stand-in, which
`fill` never touches), and writes the file as the safetensors library does.

Needs: torch (1.13.1 of Debian 12 is enough: apt-get install python3-torch) and numpy, on x86-64 with AVX2. torch
draws normals by other approximations of log and cos in its AVX2 code than in its portable code; about one value in
8000 then differs in bfloat16, mostly by its last bit. The stored files come from the AVX2 code, hence
ATEN_CPU_CAPABILITY below.

Proof, repeated on every run, each step fatal when it fails:
  1. the same method makes the stored files of dense-keqv, moe-keqv, etype-plain and etype-sharing again, byte for
     byte; for dense-keqv names and shapes come from config.json, as for dense-k256, for the others from their header;
  2. on the new file numpy_reference.py gives the logits of dense-k256/goldens.safetensors, made by transformers from
     the original weights: float64 (last row) to 1e-9, float32 (all rows) to 1e-4, and the same argmax in every row.
     The embeddings are tied, so every stored value takes part in the last row of logits.

Usage: /usr/bin/python3 make_k256.py        (8 s)
"""
import os
import sys
from unittest import mock

os.environ["ATEN_CPU_CAPABILITY"] = "avx2"      # read when torch is loaded
sys.modules.update({name: mock.MagicMock() for name in (
    "transformers", "transformers.models", "transformers.models.gemma4")})

import json
import pathlib
import struct

import numpy as np
import torch
from torch import nn

import numpy_reference
import tinylib

HERE = pathlib.Path(__file__).resolve().parent
PREFIX = "model.language_model."
NAME = "dense-k256"


def dense_shapes(config):
    """Names and shapes of a dense target without PLE, KV sharing or experts, with K = V on full layers."""
    c = config["text_config"]
    hidden, ffn, heads = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"]
    full = next(iter(c.get("per_layer_config", {}).values()), None) or dict(
        head_dim=c["global_head_dim"], num_key_value_heads=c["num_global_key_value_heads"])
    shapes = {"embed_tokens.weight": [c["vocab_size"], hidden], "norm.weight": [hidden]}
    for layer, kind in enumerate(c["layer_types"]):
        of_kind = full if kind == "full_attention" else c
        dim, kv_heads = of_kind["head_dim"], of_kind["num_key_value_heads"]
        tensors = {
            "input_layernorm.weight": [hidden],
            "post_attention_layernorm.weight": [hidden],
            "pre_feedforward_layernorm.weight": [hidden],
            "post_feedforward_layernorm.weight": [hidden],
            "layer_scalar": [1],
            "mlp.gate_proj.weight": [ffn, hidden],
            "mlp.up_proj.weight": [ffn, hidden],
            "mlp.down_proj.weight": [hidden, ffn],
            "self_attn.q_norm.weight": [dim],
            "self_attn.k_norm.weight": [dim],
            "self_attn.q_proj.weight": [heads * dim, hidden],
            "self_attn.k_proj.weight": [kv_heads * dim, hidden],
            "self_attn.o_proj.weight": [hidden, heads * dim],
        }
        if kind == "sliding_attention":
            tensors["self_attn.v_proj.weight"] = [kv_heads * dim, hidden]
        shapes.update({f"layers.{layer}.{leaf}": shape for leaf, shape in tensors.items()})
    return {PREFIX + name: shape for name, shape in shapes.items()}


def shapes_of_file(path):
    raw = path.read_bytes()
    (size,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + size])
    return {name: t["shape"] for name, t in header.items() if name != "__metadata__"}


def module_of(shapes):
    """A tree of empty modules that owns one parameter per name: all that `fill` asks of a model."""
    root = nn.Module()
    for name, shape in shapes.items():
        *path, leaf = name.split(".")
        owner = root
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, nn.Module())
            owner = owner._modules[part]
        owner.register_parameter(leaf, nn.Parameter(torch.empty(shape)))
    return root


def checkpoint_bytes(name, shapes):
    """The file as safetensors writes it: tensors by name, compact header padded with blanks to 8 bytes."""
    spec, model = tinylib.TARGETS[name], module_of(shapes)
    assert spec["dtype"] == "bfloat16"
    tinylib.fill(model, spec["seed"], torch.bfloat16,
                 **{k: spec[k] for k in ("embedding_std", "final_norm_mean") if k in spec})
    header, data = {"__metadata__": {"format": "pt"}}, bytearray()
    for tensor, p in sorted(model.named_parameters()):
        begin = len(data)
        data += p.detach().to(torch.bfloat16).view(torch.int16).numpy().astype("<i2").tobytes()
        header[tensor] = dict(dtype="BF16", shape=list(p.shape), data_offsets=[begin, len(data)])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(data)


def config_of(name):
    return json.loads((HERE / name / "config.json").read_text())


def prove_method():
    for name in ("dense-keqv", "moe-keqv", "etype-plain", "etype-sharing"):
        path = HERE / name / "model.safetensors"
        shapes = dense_shapes(config_of(name)) if name == "dense-keqv" else shapes_of_file(path)
        if checkpoint_bytes(name, shapes) != path.read_bytes():
            sys.exit(f"{path}: this torch ({torch.__version__}) makes other bytes")
        print(f"{name}: {len(shapes)} tensors, {path.stat().st_size} bytes, all equal")


def goldens_agree():
    """True when the written file computes what transformers computed with the original weights."""
    folder, agree = HERE / NAME, True
    model = numpy_reference.Checkpoint(folder, PREFIX)
    gold = numpy_reference.read_safetensors(folder / "goldens.safetensors")
    for case in json.loads((folder / "cases.json").read_text())["cases"]:
        n = case["name"]
        logits, _, _ = numpy_reference.target_forward(model, case["ids"])
        exact = np.abs(logits[-1] - gold[n + ".last_logits_float64"]).max()
        single = np.abs(logits - gold[n + ".logits"]).max()
        same = bool((logits.argmax(-1) == gold[n + ".argmax"]).all())
        print(f"{NAME} {n}: float64 logits of the last row differ by {exact:.1e}, all float32 "
              f"logits by {single:.1e}, argmax of {len(logits)} rows {'same' if same else 'DIFFERS'}")
        agree = agree and same and exact < 1e-9 and single < 1e-4
    return agree


if __name__ == "__main__":
    prove_method()
    target = HERE / NAME / "model.safetensors"
    content = checkpoint_bytes(NAME, dense_shapes(config_of(NAME)))
    target.write_bytes(content)
    if not goldens_agree():
        target.unlink()
        sys.exit(f"{target}: does not agree with goldens.safetensors; not kept")
    print(f"{target}: {len(content)} bytes")
