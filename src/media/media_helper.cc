// SPDX-License-Identifier: Apache-2.0
#include "media/media_helper.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "media/audio_resample.h"
#include "media/helper_process.h"
#include "media/helper_protocol.h"

namespace facet {
namespace {

constexpr std::string_view kContainers = "MP4, MOV, WebM, Matroska, AVI or GIF";
constexpr std::string_view kSoundContainers = "m4a, AAC, MP4, MOV, WebM, Matroska or AVI";

/// The type of the first box of an ISO media file and, where it is "ftyp", the brand.
struct IsoMark {
  std::string_view box;
  std::string_view brand;
};

std::string_view TextAt(std::span<const std::byte> file, size_t begin, size_t size) {
  return file.size() < begin + size ? std::string_view() : AsText(file.subspan(begin, size));
}

IsoMark IsoMarkOf(std::span<const std::byte> file) {
  const std::string_view box = TextAt(file, 4, 4);
  return {.box = box, .brand = box == "ftyp" ? TextAt(file, 8, 4) : std::string_view()};
}

bool IsOneOf(std::string_view text, std::span<const std::string_view> all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

/// Still pictures have the same kind of container, and other readers.
bool IsIsoMedia(std::span<const std::byte> file) {
  static constexpr std::array<std::string_view, 6> kBoxes = {"ftyp", "moov", "mdat",
                                                             "wide", "free", "skip"};
  static constexpr std::array<std::string_view, 9> kPictures = {
      "avif", "avis", "heic", "heix", "heim", "heis", "hevc", "mif1", "msf1"};
  const IsoMark mark = IsoMarkOf(file);
  return IsOneOf(mark.box, kBoxes) && !IsOneOf(mark.brand, kPictures);
}

bool IsIsoSound(std::span<const std::byte> file) {
  static constexpr std::array<std::string_view, 3> kSounds = {"M4A ", "M4B ", "M4P "};
  return IsOneOf(IsoMarkOf(file).brand, kSounds);
}

/// A frame of AAC: twelve bits of 1, one of version, two of layer 0.
bool IsAdts(std::span<const std::byte> file) {
  return file.size() >= 2 && file[0] == std::byte{0xFF} &&
         (file[1] & std::byte{0xF6}) == std::byte{0xF0};
}

std::optional<Container> ContainerOf(std::span<const std::byte> file) {
  if (IsIsoMedia(file)) {
    return Container::kIsoMedia;
  }
  if (TextAt(file, 0, 4) == "\x1A\x45\xDF\xA3") {
    return Container::kMatroska;
  }
  if (TextAt(file, 0, 4) == "RIFF" && TextAt(file, 8, 4) == "AVI ") {
    return Container::kAvi;
  }
  if (TextAt(file, 0, 6) == "GIF87a" || TextAt(file, 0, 6) == "GIF89a") {
    return Container::kGif;
  }
  if (IsAdts(file)) {
    return Container::kAdts;
  }
  return std::nullopt;
}

/// What a file is called where it cannot be read at all.
std::string MagicText(std::span<const std::byte> file) {
  std::string text = file.empty() ? "an empty file" : "a file that begins with the bytes";
  for (const std::byte byte : file.first(std::min<size_t>(file.size(), 4))) {
    text += fmt::format(" {:02X}", static_cast<unsigned>(byte));
  }
  return text;
}

Error WithName(Error error, const std::string& name) {
  error.where = error.where.empty() ? name : name + ": " + error.where;
  return error;
}

/// What a job needs, whatever it is. `what` is what there would be to decode.
Status CheckJob(const std::string& program, std::span<const std::byte> file,
                const HelperLimits& limits, std::string_view what, const std::string& name) {
  if (file.size() > limits.max_bytes) {
    return Refuse(name, fmt::format("{} bytes", file.size()),
                  fmt::format("at most {}", limits.max_bytes));
  }
  if (!program.empty()) {
    return {};
  }
  return Refuse(name, fmt::format("{}, and there is no facet-media to decode it", what),
                "facet-media beside facet: build it with the packages libavformat-dev "
                "libavcodec-dev libswscale-dev libavutil-dev libseccomp-dev (docs/media.md)");
}

/// Starts the job; the file is of a kind that ContainerOf knows.
Result<std::unique_ptr<HelperProcess>> StartJob(const std::string& program, const HelperJob& job,
                                                std::span<const std::byte> file,
                                                const std::string& name) {
  auto process = HelperProcess::Start(program, AsBytes(WriteJob(job)), file, job.timeout_s);
  return process.ok() ? std::move(process) : WithName(process.error(), name);
}

ByteSource SourceOf(HelperProcess& process) {
  return [&process](std::span<std::byte> bytes) { return process.Read(bytes); };
}

HelperJob JobOf(HelperTask task, std::span<const std::byte> file, const HelperLimits& limits) {
  return {.task = task,
          .container = *ContainerOf(file),
          .frames = {},
          .max_pixels = limits.max_pixels,
          .max_bytes = limits.max_frame_bytes,
          .max_seconds = limits.max_seconds,
          .timeout_s = limits.timeout_s};
}

}  // namespace

bool IsVideoFile(std::span<const std::byte> file) {
  const auto container = ContainerOf(file);
  return container && container != Container::kAdts && !IsIsoSound(file);
}

bool IsForHelper(std::span<const std::byte> file) {
  const auto container = ContainerOf(file);
  return container && container != Container::kGif;
}

MediaHelper::MediaHelper(std::string program, HelperLimits limits)
    : program_(std::move(program)), limits_(limits) {}

Result<VideoFrames> MediaHelper::DecodeVideo(std::span<const std::byte> file,
                                             const FrameChoice& choice, const std::string& name,
                                             const FrameSink& sink) const {
  if (!IsVideoFile(file)) {
    return Refuse(name, IsForHelper(file) ? "a file of sound" : MagicText(file),
                  fmt::format("a video: {}", kContainers));
  }
  FACET_RETURN_IF_ERROR(CheckJob(program_, file, limits_, "a video", name));
  HelperJob job = JobOf(HelperTask::kVideo, file, limits_);
  job.frames = choice;
  FACET_ASSIGN(const auto process, StartJob(program_, job, file, name));
  auto video = ReadVideoAnswer(SourceOf(*process), job, sink);
  return video.ok() ? std::move(video) : WithName(video.error(), name);
}

Result<Waveform> MediaHelper::DecodeAudio(std::span<const std::byte> file,
                                          const std::string& name) const {
  if (!IsForHelper(file)) {
    return Refuse(name, MagicText(file), fmt::format("sound in {}", kSoundContainers));
  }
  FACET_RETURN_IF_ERROR(CheckJob(program_, file, limits_, "sound in AAC or in a video", name));
  const HelperJob job = JobOf(HelperTask::kSound, file, limits_);
  FACET_ASSIGN(const auto process, StartJob(program_, job, file, name));
  std::optional<Resampler> resampler;
  const auto begin = [&](int rate) -> Status {
    FACET_ASSIGN(resampler, Resampler::Create(rate, name));
    return {};
  };
  const auto add = [&](std::span<const float> samples) { resampler->Add(samples); };
  if (const Status status = ReadSoundAnswer(SourceOf(*process), job, {begin, add}); !status.ok()) {
    return WithName(status.error(), name);
  }
  Waveform waveform;
  FACET_ASSIGN(waveform.samples, resampler->Finish());
  return waveform;
}

}  // namespace facet
