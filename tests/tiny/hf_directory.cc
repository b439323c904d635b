// SPDX-License-Identifier: Apache-2.0
#include "tiny/hf_directory.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/bytes.h"
#include "base/file.h"
#include "format/safetensors.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

void WriteOrDie(const std::string& path, std::string_view bytes) {
  FACET_CHECK(WriteFile(path, bytes).ok());
}

void WriteSafetensors(const std::string& path, std::span<const HfTensor> tensors) {
  Json header;
  std::string data;
  for (const HfTensor& tensor : tensors) {
    Json shape{Json::Array{}};
    for (const int64_t dim : tensor.shape) {
      shape.Append(dim);
    }
    const auto begin = static_cast<int64_t>(data.size());
    data += tensor.data;
    header.Set(tensor.name,
               Json::MakeObject({{"dtype", tensor.dtype},
                                 {"shape", shape},
                                 {"data_offsets",
                                  Json::MakeArray({begin, static_cast<int64_t>(data.size())})}}));
  }
  const std::string text = header.Dump();
  std::string file;
  Append(file, uint64_t{text.size()});
  WriteOrDie(path, file + text + data);
}

bool EndsWith(const HfTensor& tensor, std::string_view end) { return tensor.name.ends_with(end); }

}  // namespace

HfDirectory::HfDirectory(std::string_view relative) : source_(TestdataPath(relative)) {
  config = JsonOrDie(source_ + "/config.json");
  const auto file = safetensors::File::Open(source_ + "/model.safetensors");
  FACET_CHECK(file.ok());
  for (const safetensors::TensorView& view : file->tensors()) {
    tensors.push_back({view.name, std::string(InfoOf(view.type).name), view.shape,
                       std::string(AsText(view.data))});
  }
}

HfTensor& HfDirectory::Find(std::string_view name_end) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const HfTensor& t) { return EndsWith(t, name_end); });
  FACET_CHECK(found != tensors.end());
  return *found;
}

void HfDirectory::Remove(std::string_view name_end) {
  const auto rest = std::remove_if(tensors.begin(), tensors.end(),
                                   [&](const HfTensor& t) { return EndsWith(t, name_end); });
  FACET_CHECK(rest != tensors.end());
  tensors.erase(rest, tensors.end());
}

std::string HfDirectory::Write(const std::string& name, size_t n_shards) const {
  const std::string path = MakeTempDir() + "/" + name;
  std::filesystem::create_directory(path);
  WriteOrDie(path + "/config.json", config.Dump());
  for (const std::string file : {"generation_config.json", "tokenizer.json",
                                 "tokenizer_config.json", "chat_template.jinja"}) {
    const std::string own = source_ + "/" + file;
    WriteOrDie(path + "/" + file,
               ReadOrDie(FileExists(own) ? own : TestdataPath("tiny-hf/" + file)));
  }
  if (n_shards == 1) {
    WriteSafetensors(path + "/model.safetensors", tensors);
    return path;
  }
  Json weight_map;
  const size_t n_each = (tensors.size() + n_shards - 1) / n_shards;
  for (size_t i = 0; i < n_shards; ++i) {
    const auto part = std::span(tensors).subspan(i * n_each);
    const auto own = part.first(std::min(n_each, part.size()));
    const std::string file = "model-" + std::to_string(i) + ".safetensors";
    WriteSafetensors(path + "/" + file, own);
    for (const HfTensor& tensor : own) {
      weight_map.Set(tensor.name, file);
    }
  }
  WriteOrDie(path + "/model.safetensors.index.json",
             Json::MakeObject({{"weight_map", weight_map}}).Dump());
  return path;
}

}  // namespace facet::testing
