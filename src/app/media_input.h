// SPDX-License-Identifier: Apache-2.0
// Pictures, sound and video on their way from the command line or a chat into a message: where in
// the text each stands, how they are to be read, and the program that decodes what this one does
// not.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/options.h"
#include "base/json.h"
#include "base/status.h"
#include "chat/media_reader.h"
#include "media/media_item.h"

namespace facet {

/// Path of facet-media: `named`, else beside this program or in ../libexec/facet, else in PATH;
/// empty: there is none.
std::string FindMediaHelper(const std::string& named);

/// How the options want media read for a model that takes `traits`. Files are opened; relative
/// paths begin at `folder`, or where it is empty, at the working directory. URLs are not fetched.
MediaSettings MediaSettingsFrom(const Options& options, const MediaTraits& traits,
                                const std::string& folder);

/// A stretch of text, or a file.
struct MessagePiece {
  std::string text = {};
  const MediaFile* file = nullptr;  ///< null: text
};

/// Files and text in the order in which they stand in a message: files first, then the text, or
/// where the text has placeholders (<|image|>, <|audio|>, <|video|>), the files in their places.
/// Refused where there are placeholders, but not one for each file. Without files all is text.
Result<std::vector<MessagePiece>> ArrangeMedia(const std::string& text,
                                               std::span<const MediaFile> files);
std::string_view PlaceholderOf(MediaPartKind kind);
std::string_view NameOf(MediaPartKind kind);  ///< "image", "audio", "video"

/// The file as a content part, {"type":"image","path":…}; of a folder of pictures, the frames that
/// the options choose and their times.
Result<Json> MediaPartOf(const MediaFile& file, const Options& options);

/// The content of a message: the text, or with files the parts.
Result<Json> MessageContent(const std::string& text, std::span<const MediaFile> files,
                            const Options& options);

}  // namespace facet
