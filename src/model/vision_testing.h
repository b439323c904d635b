// SPDX-License-Identifier: Apache-2.0
// What the tests of the encoders of pictures share: goldens, their pictures, and comparison.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "compute/thread_pool.h"
#include "format/safetensors.h"
#include "media/media_item.h"
#include "model/media_checkpoint.h"
#include "model/tap.h"
#include "support/testing.h"

namespace facet::testing {

/// Limit of the largest difference over the rms of what is wanted: testdata/media/README.md. The
/// smallest mistake listed there (sensitivity.json), erf-GELU, makes 3e-4.
inline constexpr double kGoldenTolerance = 1e-4;

class MediaGoldens {
 public:
  explicit MediaGoldens(const std::string& folder)
      : file_(*safetensors::File::Open(TestdataPath("media/" + folder + "/goldens.safetensors"))) {}

  /// The picture "CASE/pixels_u8".
  [[nodiscard]] MediaItem Picture(const std::string& name) const {
    const auto* view = file_.Find(name + "/pixels_u8");
    FACET_CHECK(view != nullptr);
    MediaItem item;
    item.height = static_cast<int>(view->shape[0]);
    item.width = static_cast<int>(view->shape[1]);
    item.n_tokens = item.height / 48 * (item.width / 48);
    item.pixels.resize(view->data.size());
    std::memcpy(item.pixels.data(), view->data.data(), view->data.size());
    return item;
  }

  /// Names of the float32 tensors of a case, without "CASE/".
  [[nodiscard]] std::vector<std::string> Taps(const std::string& name) const {
    std::vector<std::string> taps;
    for (const safetensors::TensorView& view : file_.tensors()) {
      if (view.name.starts_with(name + "/") && view.type == TensorType::kF32) {
        taps.push_back(view.name.substr(name.size() + 1));
      }
    }
    return taps;
  }

  [[nodiscard]] std::vector<float> Numbers(const std::string& name) const {
    const auto* view = file_.Find(name);
    FACET_CHECK(view != nullptr);
    std::vector<float> values(view->data.size() / sizeof(float));
    std::memcpy(values.data(), view->data.data(), view->data.size());
    return values;
  }

 private:
  safetensors::File file_;
};

/// Largest difference over the rms of `wanted`; `found` may have more rows behind.
inline double DifferenceOverRms(const std::vector<float>& found, const std::vector<float>& wanted) {
  FACET_CHECK(!wanted.empty() && found.size() >= wanted.size());
  double largest = 0;
  double squares = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double difference = std::fabs(double{found[i]} - double{wanted[i]});
    largest = difference <= largest ? largest : difference;  // keeps a NaN
    squares += double{wanted[i]} * double{wanted[i]};
  }
  return largest / std::sqrt(squares / static_cast<double>(wanted.size()));
}

using Taken = std::map<std::string, std::vector<float>, std::less<>>;

/// A tap that keeps everything.
inline Tap TapInto(Taken* taken) {
  return [taken](std::string_view name, std::span<const float> values, int64_t) {
    (*taken)[std::string(name)] = {values.begin(), values.end()};
  };
}

inline MediaCheckpoint OpenMediaOrDie(const std::string& relative) {
  Result<MediaCheckpoint> checkpoint = MediaCheckpoint::Open(TestdataPath("media/" + relative));
  if (!checkpoint.ok()) {
    std::fprintf(stderr, "%s\n", checkpoint.error().Message().c_str());
    std::abort();
  }
  return *std::move(checkpoint);
}

}  // namespace facet::testing
