// SPDX-License-Identifier: Apache-2.0
// One media part of a message as clients write it: OpenAI's forms of pictures and sound, the forms
// that other servers have for video, and ours for files and for frames one by one. Checked here
// once; media_reader.h reads what they name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "chat/media_prompt.h"

namespace facet {

/// Where the bytes of a picture, clip or video come from. Views the part.
struct GivenFile {
  enum class Form { kUrl, kBase64, kPath };
  Form form = Form::kUrl;
  std::string_view text;  ///< the URL, the base64, the path
  std::string where;      ///< the member that has it
};

enum class ImageDetail { kAuto, kLow, kHigh };

/// A part, checked. Nothing has been read yet.
struct GivenMedia {
  MediaPartKind kind = MediaPartKind::kImage;
  std::vector<GivenFile> files = {};  ///< one; of a video in frames, each of them
  ImageDetail detail = ImageDetail::kAuto;
  bool has_frames = false;           ///< the files are frames of a video
  std::vector<double> seconds = {};  ///< has_frames: when each is shown, ascending
  std::optional<double> fps = {};    ///< of a video file: so many frames a second are wanted
  std::optional<int> n_frames = {};  ///< of a video file: at most so many
};

/// Whether the type of the part is one of media.
bool IsMediaPart(const Json& part);

/// A part that IsMediaPart. Lives as long as `part`. `where` names it ("messages[0].content[1]").
Result<GivenMedia> ReadMediaPart(const Json& part, const std::string& where);

/// The type under which templates know it: {"type": "image"}, "audio" or "video".
std::string_view TemplateType(const Json& part);

/// Bytes of the URLs and base64 in the media parts of messages of any shape: what no template sees.
size_t MediaBytes(const Json& messages);

}  // namespace facet
