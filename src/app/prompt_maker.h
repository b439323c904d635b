// SPDX-License-Identifier: Apache-2.0
// From messages, or a text as it stands, to what the engine takes: tokens, and media in their
// places. The one way of run, chat, batch and tokenize.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/loaded_model.h"
#include "app/options.h"
#include "base/status.h"
#include "chat/chat_template.h"
#include "chat/media_reader.h"
#include "chat/turn_memory.h"

namespace facet {

struct PromptInput {
  Prompt prompt;  ///< with the media's marks written out
  std::vector<int32_t> tokens;
  std::vector<PlacedMedia> media;
  std::vector<std::string> notices;  ///< what a user should know: what was cut, shrunk, unheard
};

/// Refuses media among the options where the model has no encoders for them.
Status CheckTakesMedia(const Options& options, const LoadedModel& model);

class PromptMaker {
 public:
  /// Reads media as the options say; relative paths begin at `folder`, or where it is empty, at the
  /// working directory. The model outlives the maker.
  PromptMaker(const Options& options, const LoadedModel& model, const std::string& folder = "");

  [[nodiscard]] Result<PromptInput> FromMessages(const ChatRequest& request) const;
  /// The text without a template; files stand in it as ArrangeMedia puts them.
  [[nodiscard]] Result<PromptInput> FromText(const std::string& text,
                                             std::span<const MediaFile> files,
                                             const Options& options) const;
  /// The next turn of a conversation: turns that `memory` knows get their tokens back, and files
  /// that were in the turn before are not read again, so that they may be gone.
  [[nodiscard]] Result<PromptInput> FromConversation(const ChatRequest& request,
                                                     const TurnMemory& memory);

 private:
  [[nodiscard]] Result<MediaContent> ReadMedia(const Json& messages) const;
  [[nodiscard]] Result<MediaContent> ReadNewMedia(const Json& messages);
  [[nodiscard]] Result<PromptInput> Finish(Prompt prompt, MediaContent content,
                                           const TurnMemory* memory) const;

  const LoadedModel* model_;
  std::optional<MediaReader> reader_;                    // none: the model takes text only
  std::map<std::string, std::vector<MediaPart>> known_;  // by the text of the message
};

/// {"kind":"image","begin":…,"tokens":…,"width":…,"height":…}, of sound "seconds", for each.
Json MediaJson(std::span<const PlacedMedia> media);
/// "image of 384 x 432, 72 tokens", "sound of 1.92 s, 48 tokens"
std::string MediaText(const MediaItem& item);

}  // namespace facet
