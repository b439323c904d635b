// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <gtest/gtest.h>

#include <functional>

namespace facet {
namespace {

/// The numbers of reference.md section 2, typed again here on purpose: the table of config.cc is
/// checked against it.
struct Size {
  std::string label;
  int n_layers, period, n_embd, n_ff, n_ff_shared, n_heads, n_kv_sliding, n_kv_full, window, n_ple,
      n_shared;
  int n_experts, n_used, n_ff_expert;
};

const Size kSizes[] = {
    {"E2B", 35, 5, 1536, 6144, 12288, 8, 1, 1, 512, 256, 20, 0, 0, 0},
    {"E4B", 42, 6, 2560, 10240, 10240, 8, 2, 2, 512, 256, 18, 0, 0, 0},
    {"12B", 48, 6, 3840, 15360, 15360, 16, 8, 1, 1024, 0, 0, 0, 0, 0},
    {"26B-A4B", 30, 6, 2816, 2112, 2112, 16, 8, 2, 1024, 0, 0, 128, 8, 704},
    {"31B", 60, 6, 5376, 21504, 21504, 32, 16, 4, 1024, 0, 0, 0, 0, 0},
};

Config Released(const Size& s) {
  Config c;
  c.name = s.label;
  c.n_layers = s.n_layers;
  c.n_embd = s.n_embd;
  c.n_heads = s.n_heads;
  c.n_vocab = 262144;
  c.n_context = 131072;
  c.sliding_window = s.window;
  c.n_embd_per_layer = s.n_ple;
  c.n_shared_kv_layers = s.n_shared;
  c.n_experts = s.n_experts;
  c.n_experts_used = s.n_used;
  c.n_ff_expert = s.n_ff_expert;
  for (int l = 0; l < s.n_layers; ++l) {
    const bool is_full = l % s.period == s.period - 1;
    LayerDesc layer;
    layer.kind = is_full ? LayerKind::kFull : LayerKind::kSliding;
    layer.d_head = is_full ? 512 : 256;
    layer.n_kv_heads = is_full ? s.n_kv_full : s.n_kv_sliding;
    layer.n_ff = l >= s.n_layers - s.n_shared ? s.n_ff_shared : s.n_ff;
    c.layers.push_back(layer);
  }
  return c;
}

std::string ErrorAfter(const Size& size, const std::function<void(Config*)>& change) {
  Config c = Released(size);
  change(&c);
  const Status status = CompleteConfig(&c, "m.gguf");
  return status.ok() ? "accepted" : status.error().Message();
}

TEST(CompleteConfig, NamesEveryReleasedSize) {
  for (const Size& size : kSizes) {
    Config c = Released(size);
    const Status status = CompleteConfig(&c, "m.gguf");
    ASSERT_TRUE(status.ok()) << status.error().Message();
    EXPECT_EQ(c.size_label, size.label);
  }
}

TEST(CompleteConfig, FindsTheDonorsOfSharedLayers) {
  Config e2b = Released(kSizes[0]);
  ASSERT_TRUE(CompleteConfig(&e2b, "m").ok());
  Config e4b = Released(kSizes[1]);
  ASSERT_TRUE(CompleteConfig(&e4b, "m").ok());
  EXPECT_EQ(e2b.layers[12].kv_layer, 12);
  EXPECT_EQ(e2b.layers[15].kv_layer, 13);
  EXPECT_EQ(e2b.layers[34].kv_layer, 14);
  EXPECT_EQ(e4b.layers[24].kv_layer, 22);
  EXPECT_EQ(e4b.layers[41].kv_layer, 23);
}

TEST(CompleteConfig, RefusesAReleasedSizeWithAnyNumberChanged) {
  const Size& e2b = kSizes[0];
  EXPECT_EQ(ErrorAfter(e2b, [](Config* c) { c->n_heads = 16; }),
            "m.gguf: attention heads 16, wanted 8 for Gemma 4 E2B");
  EXPECT_EQ(ErrorAfter(e2b, [](Config* c) { c->sliding_window = 1024; }),
            "m.gguf: sliding window 1024, wanted 512 for Gemma 4 E2B");
  EXPECT_EQ(ErrorAfter(e2b, [](Config* c) { c->n_embd_per_layer = 0; }),
            "m.gguf: per-layer embedding width 0, wanted 256 for Gemma 4 E2B");
  EXPECT_EQ(ErrorAfter(e2b, [](Config* c) { c->n_shared_kv_layers = 15; }),
            "m.gguf: shared KV layers 15, wanted 20 for Gemma 4 E2B");
  EXPECT_EQ(ErrorAfter(e2b, [](Config* c) { c->layers[3].d_head = 128; }),
            "m.gguf: layer 3 head size 128, wanted 256 for Gemma 4 E2B");
  EXPECT_EQ(ErrorAfter(e2b, [](Config* c) { c->layers[20].n_ff = 6144; }),
            "m.gguf: layer 20 feed-forward width 6144, wanted 12288 for Gemma 4 E2B");
  EXPECT_EQ(ErrorAfter(kSizes[3], [](Config* c) { c->n_experts = 64; }),
            "m.gguf: experts 64, wanted 128 for Gemma 4 26B-A4B");
  EXPECT_EQ(ErrorAfter(kSizes[4], [](Config* c) { c->layers[5].n_kv_heads = 16; }),
            "m.gguf: layer 5 KV heads 16, wanted 4 for Gemma 4 31B");
  EXPECT_EQ(ErrorAfter(kSizes[4], [](Config* c) { c->layers[5].kind = LayerKind::kSliding; }),
            "m.gguf: layer 5 full attention 0, wanted 1 for Gemma 4 31B");
}

TEST(CompleteConfig, RefusesNumbersThatCannotBe) {
  const Size& size = kSizes[2];
  EXPECT_EQ(ErrorAfter(size, [](Config* c) { c->n_embd = 0; }),
            "m.gguf: embedding width 0, wanted 1 to 65536");
  EXPECT_EQ(ErrorAfter(size, [](Config* c) { c->n_embd = 1 << 20; }),
            "m.gguf: embedding width 1048576, wanted 1 to 65536");
  EXPECT_EQ(ErrorAfter(size, [](Config* c) { c->n_vocab = -5; }),
            "m.gguf: vocabulary size -5, wanted 1 to 16777216");
  EXPECT_EQ(ErrorAfter(size, [](Config* c) { c->n_shared_kv_layers = 48; }),
            "m.gguf: shared KV layers 48, wanted 0 to 47");
  EXPECT_EQ(ErrorAfter(size, [](Config* c) { c->layers[7].d_head = 33; }),
            "m.gguf: layer 7 head size 33, wanted an even number");
  EXPECT_EQ(ErrorAfter(size, [](Config* c) { c->layers[7].n_kv_heads = 3; }),
            "m.gguf: layer 7: 16 attention heads over 3 KV heads, wanted a whole ratio");
  EXPECT_EQ(ErrorAfter(size, [](Config* c) { c->sliding_window = 0; }),
            "m.gguf: sliding window 0, wanted 1 to 16777216");
  EXPECT_EQ(ErrorAfter(size, [](Config* c) { c->norm_eps = 0; }),
            "m.gguf: norm epsilon 0, wanted above 0 and below 1");
  EXPECT_EQ(ErrorAfter(size, [](Config* c) { c->rope_theta_full = 0.5F; }),
            "m.gguf: rope bases 0.5 and 10000, wanted above 1");
  EXPECT_EQ(ErrorAfter(kSizes[3], [](Config* c) { c->n_experts_used = 200; }),
            "m.gguf: experts used 200, wanted 1 to 128");
}

TEST(CompleteConfig, RefusesSharedLayersWithoutADonor) {
  Config c;
  c.n_layers = 2;
  c.n_embd = 64;
  c.n_heads = 2;
  c.n_vocab = 100;
  c.n_context = 100;
  c.sliding_window = 8;
  c.n_shared_kv_layers = 1;
  c.layers = {{LayerKind::kSliding, 32, 1, 64, 0, false}, {LayerKind::kFull, 32, 1, 64, 0, false}};
  const Status status = CompleteConfig(&c, "m");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().Message(),
            "m: layer 1 shares KV and no layer before 1 of its kind writes any");
  c.layers[0].kind = LayerKind::kFull;
  c.layers[0].d_head = 16;
  const Status other = CompleteConfig(&c, "m");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().Message(),
            "m: layer 1 with 1 KV heads of 32 shares the KV of layer 0, wanted 1 heads of 16");
}

}  // namespace
}  // namespace facet
