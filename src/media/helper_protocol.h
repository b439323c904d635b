// SPDX-License-Identifier: Apache-2.0
// What facet and facet-media say to each other. Facet gives a job and the file's bytes as standard
// input; the answer comes on standard output as a row of messages, each a tag of four letters and
// little-endian fields:
//   video   VIDE n_total:i64 rate:f64 has_sound:u32, then for each chosen frame
//           FRAM index:i64 seconds:f64 width:u32 height:u32 and its pixels, red first; then DONE
//   sound   SOUN rate:u32, then any number of PCMF n:u32 and n samples:f32 of one channel; then
//   DONE
// In place of any message FAIL may stand: found and wanted, each a u32 length and its text.
// The helper may have been taken over by the file it reads, so an answer is believed in nothing:
// every count is checked before memory is taken for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "media/video.h"

namespace facet {

/// Kinds of files, by their first bytes. The helper tries no other than the one it is told.
enum class Container : uint32_t { kIsoMedia = 1, kMatroska, kAvi, kGif, kAdts };

enum class HelperTask : uint32_t { kVideo = 1, kSound };

struct HelperJob {
  HelperTask task = HelperTask::kVideo;
  Container container = Container::kIsoMedia;
  FrameChoice frames = {};
  int64_t max_pixels = 0;  ///< of a frame
  int64_t max_bytes = 0;   ///< of all frames, as RGB
  double max_seconds = 0;  ///< of sound
  int timeout_s = 0;
};

inline constexpr size_t kHelperJobBytes = 64;  ///< of WriteJob; the file follows

std::string WriteJob(const HelperJob& job);
/// Refuses what WriteJob does not write.
Result<HelperJob> ReadJob(std::span<const std::byte> bytes);

// --- the answer, written by the helper

struct VideoHead {
  int64_t n_total = 0;  ///< frames in the file
  double rate = 0;      ///< a second
  bool has_sound = false;
};

struct FrameHead {
  int64_t index = 0;
  double seconds = 0;  ///< from the first frame on
  int width = 0;
  int height = 0;
};

inline constexpr int64_t kMostFramesInFile = int64_t{1} << 22;  ///< 38 hours at 30 a second
inline constexpr uint32_t kMostChunkSamples = 1U << 16;         ///< of one PCMF

std::string VideoMessage(const VideoHead& head);
std::string FrameMessage(const FrameHead& head);  ///< the pixels follow
std::string SoundMessage(int rate);
std::string SamplesMessage(std::span<const float> samples);  ///< 1 to kMostChunkSamples
std::string DoneMessage();
/// Of the error's texts, the first bytes that fit.
std::string FailMessage(const Error& error);

// --- the answer, read by facet

/// Fills all of the bytes it is given, or says why it cannot.
using ByteSource = std::function<Status(std::span<std::byte>)>;

/// Takes sound as it comes: the rate once, then the samples of one channel.
struct SoundSink {
  std::function<Status(int rate)> begin;
  std::function<void(std::span<const float> samples)> add;
};

/// The frames that ChooseFrames names for the file's total and rate, within the limits of the job.
/// Errors have no `where`: the helper's own (FAIL), the source's, or what is wrong with the answer.
/// Frames go to `sink` one by one, so that no more than one is held; without one they are in the
/// result.
Result<VideoFrames> ReadVideoAnswer(const ByteSource& source, const HelperJob& job,
                                    const FrameSink& sink = {});
/// Up to the limit of the job's seconds.
Status ReadSoundAnswer(const ByteSource& source, const HelperJob& job, const SoundSink& sink);

}  // namespace facet
