// SPDX-License-Identifier: Apache-2.0
#include "media/audio_resample.h"

#include <fmt/format.h>
#include <soxr.h>

#include <array>
#include <cmath>
#include <utility>

#include "media/audio.h"

namespace facet {

void Resampler::Closer::operator()(soxr* resampler) const { soxr_delete(resampler); }

Result<Resampler> Resampler::Create(int rate, const std::string& name) {
  if (rate == kSampleRate) {
    return Resampler(name, rate, nullptr);
  }
  soxr_error_t error = nullptr;
  const soxr_io_spec_t form = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
  const soxr_runtime_spec_t one_thread = soxr_runtime_spec(1);
  std::unique_ptr<soxr, Closer> resampler(
      soxr_create(rate, kSampleRate, 1, &error, &form, &quality, &one_thread));
  if (error != nullptr || resampler == nullptr) {
    return Refuse(name, fmt::format("a rate of {} Hz, which soxr does not take ({})", rate,
                                    error == nullptr ? "no reason given" : error));
  }
  return Resampler(name, rate, std::move(resampler));
}

void Resampler::Add(std::span<const float> samples) {
  n_added_ += static_cast<int64_t>(samples.size());
  if (resampler_ == nullptr) {
    out_.insert(out_.end(), samples.begin(), samples.end());
    return;
  }
  std::array<float, 4096> block;
  size_t n_taken = 0;
  size_t n_out = 0;
  if (error_ != nullptr) {
    return;
  }
  do {
    error_ = soxr_process(resampler_.get(), samples.data(), samples.size(), &n_taken, block.data(),
                          block.size(), &n_out);
    samples = samples.subspan(n_taken);
    out_.insert(out_.end(), block.data(), block.data() + n_out);
  } while (error_ == nullptr &&
           (n_out == block.size() || (!samples.empty() && n_taken + n_out > 0)));
}

Result<std::vector<float>> Resampler::Finish() {
  if (resampler_ != nullptr && error_ == nullptr) {
    std::array<float, 4096> block;
    size_t n_out = 0;
    do {
      error_ =
          soxr_process(resampler_.get(), nullptr, 0, nullptr, block.data(), block.size(), &n_out);
      out_.insert(out_.end(), block.data(), block.data() + n_out);
    } while (error_ == nullptr && n_out > 0);
  }
  if (error_ != nullptr) {
    return Refuse(name_, fmt::format("a failure of soxr ({})", error_), "sound that it resamples");
  }
  const double ratio = static_cast<double>(kSampleRate) / rate_;
  out_.resize(static_cast<size_t>(std::ceil(static_cast<double>(n_added_) * ratio)));
  return std::exchange(out_, {});
}

}  // namespace facet
