// SPDX-License-Identifier: Apache-2.0
// What the tests of the drafter share: goldens, and files of drafters that are changed and written
// anew.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "format/gguf.h"
#include "format/safetensors.h"
#include "model/checkpoint.h"
#include "model/drafter_checkpoint.h"
#include "support/testing.h"

namespace facet::testing {

/// The value, or abort with the error.
template <typename T>
T ValueOrDie(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().Message().c_str());
    std::abort();
  }
  return *std::move(result);
}

inline Checkpoint OpenTarget(const std::string& relative) {
  return ValueOrDie(Checkpoint::Open(TestdataPath(relative)));
}

inline DrafterCheckpoint OpenDrafter(const std::string& relative) {
  return ValueOrDie(DrafterCheckpoint::Open(TestdataPath(relative)));
}

inline std::vector<int32_t> TokensOf(const Json& json) {
  std::vector<int32_t> tokens;
  for (const Json& item : json.items()) {
    tokens.push_back(static_cast<int32_t>(item.as_int()));
  }
  return tokens;
}

/// A tensor of float32 values of a file of goldens.
inline std::vector<float> FloatsOf(const safetensors::File& file, const std::string& name) {
  const safetensors::TensorView* view = file.Find(name);
  FACET_CHECK(view != nullptr && view->type == TensorType::kF32);
  std::vector<float> values(view->data.size() / sizeof(float));
  std::memcpy(values.data(), view->data.data(), view->data.size());
  return values;
}

/// A GGUF file of a drafter taken apart.
struct DrafterParts {
  struct Part {
    std::string name;
    TensorType type;
    std::vector<int64_t> shape;
    std::string data;
  };
  gguf::Metadata metadata;
  std::vector<Part> tensors;

  explicit DrafterParts(const std::string& relative) {
    const gguf::File file = ValueOrDie(gguf::File::Open(TestdataPath(relative)));
    metadata = file.metadata();
    for (const gguf::TensorView& view : file.tensors()) {
      tensors.push_back({view.name,
                         view.type,
                         view.shape,
                         {reinterpret_cast<const char*>(view.data.data()), view.data.size()}});
    }
  }

  Part& Tensor(std::string_view name) {
    for (Part& tensor : tensors) {
      if (tensor.name == name) {
        return tensor;
      }
    }
    FACET_CHECK(false);
  }

  void Drop(std::string_view name) {
    std::erase_if(tensors, [name](const Part& tensor) { return tensor.name == name; });
  }

  void SetHead(uint32_t n_centroids, uint32_t n_top) {
    metadata.Set("gemma4-assistant.assistant.num_centroids", gguf::Value::U32(n_centroids));
    metadata.Set("gemma4-assistant.assistant.centroid_intermediate_top_k", gguf::Value::U32(n_top));
  }

  /// The file, which lies in a temporary folder.
  [[nodiscard]] DrafterCheckpoint Open() const {
    std::vector<gguf::TensorToWrite> to_write;
    for (const Part& tensor : tensors) {
      to_write.push_back({tensor.name, tensor.type, tensor.shape, gguf::WholeTensor(tensor.data)});
    }
    const std::string path = MakeTempDir() + "/drafter.gguf";
    FACET_CHECK(gguf::Write(path, metadata, to_write).ok());
    return ValueOrDie(DrafterCheckpoint::Open(path));
  }
};

}  // namespace facet::testing
