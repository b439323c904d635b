// SPDX-License-Identifier: Apache-2.0
#include "app/prompt_maker.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "app/media_input.h"
#include "chat/media_prompt.h"
#include "media/audio.h"

namespace facet {
namespace {

constexpr double kFramesPerSecond = 100;  // of log-mel
constexpr double kSamplesPerToken = 640;  // of raw sound

std::string_view NameOf(MediaKind kind) {
  switch (kind) {
    case MediaKind::kImage:
      return "image";
    case MediaKind::kVideoFrame:
      return "frame";
    case MediaKind::kAudio:
      break;
  }
  return "sound";
}

double SecondsOf(const MediaItem& item) {
  return item.audio_form == AudioForm::kLogMel ? item.n_frames / kFramesPerSecond
                                               : item.n_tokens * kSamplesPerToken / kSampleRate;
}

void Append(MediaContent more, MediaContent* all) {
  all->parts.insert(all->parts.end(), std::make_move_iterator(more.parts.begin()),
                    std::make_move_iterator(more.parts.end()));
  all->notices.insert(all->notices.end(), std::make_move_iterator(more.notices.begin()),
                      std::make_move_iterator(more.notices.end()));
}

Error NoEncoders(const std::string& where) {
  return Refuse(where, "given for a model without encoders", "--mmproj PATH, or text only");
}

}  // namespace

Status CheckTakesMedia(const Options& options, const LoadedModel& model) {
  if (options.media.empty() || model.media() != nullptr) {
    return {};
  }
  return NoEncoders(fmt::format("--{}", NameOf(options.media[0].kind)));
}

PromptMaker::PromptMaker(const Options& options, const LoadedModel& model,
                         const std::string& folder)
    : model_(&model) {
  if (model.media() != nullptr) {
    reader_.emplace(MediaSettingsFrom(options, model.media_traits(), folder));
  }
}

Result<MediaContent> PromptMaker::ReadMedia(const Json& messages) const {
  if (!HasMedia(messages)) {
    return MediaContent{};
  }
  if (!reader_) {
    return NoEncoders("pictures, sound or video");
  }
  return reader_->Read(messages);
}

Result<MediaContent> PromptMaker::ReadNewMedia(const Json& messages) {
  MediaContent all;
  std::map<std::string, std::vector<MediaPart>> known;  // no more than this conversation's
  for (const Json& message : messages.items()) {
    const Json alone = Json::MakeArray({message});
    if (!HasMedia(alone)) {
      continue;
    }
    const std::string key = message.Dump();
    const auto found = known_.find(key);
    MediaContent content;
    if (found != known_.end()) {
      content.parts = found->second;
    } else {
      FACET_ASSIGN(content, ReadMedia(alone));
    }
    known.emplace(key, content.parts);
    Append(std::move(content), &all);
  }
  known_ = std::move(known);
  return all;
}

Result<PromptInput> PromptMaker::Finish(Prompt prompt, MediaContent content,
                                        const TurnMemory* memory) const {
  PromptInput input;
  input.prompt = std::move(prompt);
  if (!content.parts.empty()) {
    FACET_ASSIGN(input.prompt, ExpandMedia(input.prompt, content.parts, model_->vocab()));
  }
  input.tokens = TokenizePrompt(model_->tokenizer(), model_->vocab(), input.prompt);
  if (memory != nullptr) {
    input.tokens = memory->Restore(std::move(input.tokens));
  }
  if (!content.parts.empty()) {
    FACET_ASSIGN(input.media, PlaceMedia(input.tokens, content.parts, model_->vocab()));
  }
  input.notices = std::move(content.notices);
  return input;
}

Result<PromptInput> PromptMaker::FromMessages(const ChatRequest& request) const {
  FACET_ASSIGN(Prompt prompt, model_->chat_template().Render(request));
  FACET_ASSIGN(MediaContent content, ReadMedia(request.messages));
  return Finish(std::move(prompt), std::move(content), nullptr);
}

Result<PromptInput> PromptMaker::FromConversation(const ChatRequest& request,
                                                  const TurnMemory& memory) {
  FACET_ASSIGN(Prompt prompt, model_->chat_template().Render(request));
  FACET_ASSIGN(MediaContent content, ReadNewMedia(request.messages));
  return Finish(std::move(prompt), std::move(content), &memory);
}

Result<PromptInput> PromptMaker::FromText(const std::string& text, std::span<const MediaFile> files,
                                          const Options& options) const {
  FACET_ASSIGN(const std::vector<MessagePiece> pieces, ArrangeMedia(text, files));
  std::string whole;
  Json parts = Json(Json::Array());
  for (const MessagePiece& piece : pieces) {
    if (piece.file == nullptr) {
      whole += piece.text;
      continue;
    }
    whole += PlaceholderOf(piece.file->kind);
    FACET_ASSIGN(Json part, MediaPartOf(*piece.file, options));
    parts.Append(std::move(part));
  }
  const Json message = Json::MakeObject({{"role", "user"}, {"content", std::move(parts)}});
  FACET_ASSIGN(MediaContent content, ReadMedia(Json::MakeArray({message})));
  return Finish(Prompt{{{std::move(whole), true}}}, std::move(content), nullptr);
}

Json MediaJson(std::span<const PlacedMedia> media) {
  Json all = Json(Json::Array());
  for (const PlacedMedia& placed : media) {
    const MediaItem& item = *placed.item;
    Json entry = Json::MakeObject(
        {{"kind", NameOf(item.kind)}, {"begin", placed.begin}, {"tokens", item.n_tokens}});
    if (item.kind == MediaKind::kAudio) {
      entry.Set("seconds", SecondsOf(item));
    } else {
      entry.Set("width", item.width);
      entry.Set("height", item.height);
    }
    all.Append(std::move(entry));
  }
  return all;
}

std::string MediaText(const MediaItem& item) {
  const std::string size = item.kind == MediaKind::kAudio
                               ? fmt::format("{:.2f} s", SecondsOf(item))
                               : fmt::format("{} x {}", item.width, item.height);
  return fmt::format("{} of {}, {} tokens", NameOf(item.kind), size, item.n_tokens);
}

}  // namespace facet
