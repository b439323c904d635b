// SPDX-License-Identifier: Apache-2.0
// Video and AAC are decoded by a program of its own, facet-media, because the libraries that can
// are large and their input is hostile: it runs without network or files, with limits of memory and
// time, and answers over a pipe (helper_protocol.h). A crash there is one clear error here.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"
#include "media/audio.h"
#include "media/image.h"
#include "media/video.h"

namespace facet {

struct HelperLimits {
  size_t max_bytes = size_t{256} << 20;        ///< of the file
  int64_t max_pixels = 40'000'000;             ///< of a frame
  int64_t max_frame_bytes = int64_t{1} << 30;  ///< of all frames of a job, as RGB
  double max_seconds = 3600;                   ///< of sound
  int timeout_s = 60;                          ///< of a job
};

/// Whether the first bytes are those of a file that the helper reads as a video or a moving
/// picture: MP4, MOV, WebM, Matroska, AVI, GIF.
bool IsVideoFile(std::span<const std::byte> file);
/// Whether they are those of a file whose sound only the helper reads: m4a, AAC, and what lies in
/// MP4, MOV, WebM, Matroska and AVI.
bool IsForHelper(std::span<const std::byte> file);

/// Starts the helper for each job. Copies are cheap; may be used by several threads.
class MediaHelper {
 public:
  /// `program`: path of facet-media; empty: there is none, and every job is refused with the name
  /// of what is missing.
  explicit MediaHelper(std::string program, HelperLimits limits = {});

  /// `name` is what errors call the file. Frames are turned as the file says; they go to `sink` as
  /// ReadVideoAnswer tells. A file that is cut is refused; a frame that cannot be decoded is left
  /// out.
  [[nodiscard]] Result<VideoFrames> DecodeVideo(std::span<const std::byte> file,
                                                const FrameChoice& choice, const std::string& name,
                                                const FrameSink& sink = {}) const;
  [[nodiscard]] Result<Waveform> DecodeAudio(std::span<const std::byte> file,
                                             const std::string& name) const;

 private:
  std::string program_;
  HelperLimits limits_;
};

}  // namespace facet
