// SPDX-License-Identifier: Apache-2.0
// How long the encoders of a projector take: one picture of 256 soft tokens (768 x 768 pixels,
// which llama.cpp encodes as they are too), four of them together, and 30 seconds of sound. A line
// of JSON each, with the memory of the process so far. tools/bench_media.py sets it beside
// llama.cpp.
//
//   media_bench MMPROJ.gguf [THREADS]
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/random.h"
#include "compute/thread_pool.h"
#include "media/prepare_audio.h"
#include "media/prepare_image.h"
#include "model/media_model.h"

namespace facet {
namespace {

MediaItemPtr RandomPicture(uint64_t seed) {
  constexpr int kSide = 768;
  constexpr int kBudget = 280;
  Image image{.width = kSide, .height = kSide, .rgb = {}};
  image.rgb.resize(size_t{3} * kSide * kSide);
  for (size_t i = 0; i < image.rgb.size(); ++i) {
    image.rgb[i] = static_cast<uint8_t>(RandomBits(seed, i));
  }
  return *PrepareImage(image, MediaKind::kImage, kBudget, "picture");
}

MediaItemPtr Noise(AudioForm form) {
  constexpr size_t kSamples = size_t{30} * kSampleRate;
  constexpr double kLoudness = 0.1;
  Waveform waveform;
  waveform.samples.resize(kSamples);
  for (size_t i = 0; i < kSamples; ++i) {
    waveform.samples[i] = static_cast<float>(kLoudness * (RandomUniform(1, i) - 0.5));
  }
  return PrepareAudio(waveform, form, LongAudio::kRefuse, "noise")->items.front();
}

int PeakMegabytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  constexpr long kKilobytesPerMegabyte = 1024;
  return static_cast<int>(usage.ru_maxrss / kKilobytesPerMegabyte);
}

void Measure(const char* what, const std::vector<MediaItemPtr>& items, MediaModel* model) {
  std::vector<const MediaItem*> pointers;
  int n_tokens = 0;
  for (const MediaItemPtr& item : items) {
    pointers.push_back(item.get());
    n_tokens += item->n_tokens;
  }
  const auto began = std::chrono::steady_clock::now();
  const auto soft = model->Encode(pointers);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  if (!soft.ok()) {
    std::fprintf(stderr, "%s\n", soft.error().Message().c_str());
    std::exit(1);
  }
  fmt::print("{{\"what\": \"{}\", \"tokens\": {}, \"seconds\": {:.4f}, \"peak_mb\": {}}}\n", what,
             n_tokens, seconds.count(), PeakMegabytes());
  std::fflush(stdout);
}

int Run(int n_arguments, char** arguments) {
  if (n_arguments < 2) {
    std::fprintf(stderr, "usage: media_bench MMPROJ.gguf [THREADS]\n");
    return 1;
  }
  const int n_threads = n_arguments > 2 ? std::atoi(arguments[2]) : DefaultThreads();
  const auto checkpoint = MediaCheckpoint::Open(arguments[1]);
  if (!checkpoint.ok()) {
    std::fprintf(stderr, "%s\n", checkpoint.error().Message().c_str());
    return 1;
  }
  ThreadPool pool(std::max(n_threads, 1));
  const auto model = MediaModel::Make(*checkpoint, {&KernelsFor(BestIsa()), &pool});
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.error().Message().c_str());
    return 1;
  }
  const MediaTraits traits = checkpoint->config().traits();
  if (traits.sees) {
    Measure("picture", {RandomPicture(1)}, model->get());
    Measure("picture", {RandomPicture(2)}, model->get());
    Measure("4 pictures", {RandomPicture(3), RandomPicture(4), RandomPicture(5), RandomPicture(6)},
            model->get());
  }
  if (traits.hears) {
    Measure("30 s of sound", {Noise(traits.audio_form)}, model->get());
    Measure("30 s of sound", {Noise(traits.audio_form)}, model->get());
  }
  return 0;
}

}  // namespace
}  // namespace facet

int main(int n_arguments, char** arguments) { return facet::Run(n_arguments, arguments); }
