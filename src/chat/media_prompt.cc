// SPDX-License-Identifier: Apache-2.0
#include "chat/media_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "media/video.h"

namespace facet {
namespace {

/// The tokens around and of an item. The soft token's text is the placeholder, too.
struct Marks {
  std::string_view open;
  std::string_view soft;
  std::string_view close;
};

constexpr Marks MarksOf(MediaPartKind kind) {
  switch (kind) {
    case MediaPartKind::kImage:
      return {"<|image>", "<|image|>", "<image|>"};
    case MediaPartKind::kAudio:
      return {"<|audio>", "<|audio|>", "<audio|>"};
    case MediaPartKind::kVideo:
      break;
  }
  return {"<|image>", "<|video|>", "<image|>"};  // each frame is a picture
}

constexpr MediaPartKind kKinds[] = {MediaPartKind::kImage, MediaPartKind::kAudio,
                                    MediaPartKind::kVideo};

struct Placeholder {
  size_t begin;
  size_t size;
  MediaPartKind kind;
};

std::optional<Placeholder> FindPlaceholder(std::string_view text, size_t from) {
  std::optional<Placeholder> first;
  for (const MediaPartKind kind : kKinds) {
    const std::string_view placeholder = MarksOf(kind).soft;
    const size_t begin = text.find(placeholder, from);
    if (begin != std::string_view::npos && (!first || begin < first->begin)) {
      first = {begin, placeholder.size(), kind};
    }
  }
  return first;
}

std::vector<MediaPartKind> WrittenKinds(const Prompt& prompt) {
  std::vector<MediaPartKind> kinds;
  for (const TextRun& run : prompt.runs) {
    if (!run.parse_special) {
      continue;
    }
    for (auto found = FindPlaceholder(run.text, 0); found;
         found = FindPlaceholder(run.text, found->begin + found->size)) {
      kinds.push_back(found->kind);
    }
  }
  return kinds;
}

/// What the template wrote must be what it was given.
Status CheckWritten(const Prompt& prompt, std::span<const MediaPart> parts) {
  const std::vector<MediaPartKind> written = WrittenKinds(prompt);
  const std::string found =
      fmt::format("{} part{} of media", parts.size(), parts.size() == 1 ? "" : "s");
  if (written.empty() && !parts.empty()) {
    return Refuse("messages", found, "none (the model's chat template knows no media)");
  }
  if (written.size() != parts.size()) {
    return Refuse("messages", found,
                  fmt::format("{}, as the model's chat template writes", written.size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (written[i] != parts[i].kind) {
      return Refuse("messages", found, "them in the order in which the chat template writes them");
    }
  }
  return {};
}

/// The id of a mark. What is no special token could be typed.
Result<int32_t> FindMark(const Vocab& vocab, std::string_view text) {
  const std::optional<int> id = vocab.Find(text);
  if (!id || !vocab.is_special(*id)) {
    return Refuse("tokenizer", fmt::format("no token {}", text), "the marks of media");
  }
  return *id;
}

struct MarkIds {
  int32_t open;
  int32_t soft;
  int32_t close;
};

Result<MarkIds> FindMarks(const Vocab& vocab, MediaPartKind kind) {
  const Marks marks = MarksOf(kind);
  MarkIds ids = {};
  FACET_ASSIGN(ids.open, FindMark(vocab, marks.open));
  FACET_ASSIGN(ids.soft, FindMark(vocab, marks.soft));
  FACET_ASSIGN(ids.close, FindMark(vocab, marks.close));
  return ids;
}

void AppendExpansion(const MediaPart& part, std::string* text) {
  const Marks marks = MarksOf(part.kind);
  for (size_t i = 0; i < part.items.size(); ++i) {
    if (part.kind == MediaPartKind::kVideo) {
      *text += i == 0 ? "" : " ";
      *text += TimestampText(part.seconds[i]);
      *text += ' ';
    }
    *text += marks.open;
    for (int n = 0; n < part.items[i]->n_tokens; ++n) {
      *text += marks.soft;
    }
    *text += marks.close;
  }
}

/// Where the item lies that begins at or after `from`.
Result<PlacedMedia> PlaceItem(std::span<const int32_t> prompt, size_t from, const MarkIds& marks,
                              const MediaItemPtr& item) {
  const auto soft =
      std::find(prompt.begin() + static_cast<ptrdiff_t>(from), prompt.end(), marks.soft);
  const auto begin = static_cast<size_t>(soft - prompt.begin());
  const auto end = std::find_if(soft, prompt.end(), [&](int32_t id) { return id != marks.soft; });
  const bool is_marked = begin > 0 && soft != prompt.end() && prompt[begin - 1] == marks.open &&
                         end != prompt.end() && *end == marks.close;
  if (!is_marked || end - soft != item->n_tokens) {
    return Refuse("prompt", fmt::format("{} soft tokens from {} on", end - soft, begin),
                  fmt::format("{} between their marks", item->n_tokens));
  }
  return PlacedMedia{static_cast<int>(begin), item};
}

}  // namespace

Result<Prompt> ExpandMedia(const Prompt& prompt, std::span<const MediaPart> parts,
                           const Vocab& vocab) {
  FACET_RETURN_IF_ERROR(CheckWritten(prompt, parts));
  for (const MediaPart& part : parts) {
    FACET_RETURN_IF_ERROR(FindMarks(vocab, part.kind));
  }
  Prompt expanded;
  expanded.runs.reserve(prompt.runs.size());
  size_t n_parts = 0;
  for (const TextRun& run : prompt.runs) {
    TextRun& out = expanded.runs.emplace_back(TextRun{{}, run.parse_special});
    size_t at = 0;
    while (run.parse_special) {
      const std::optional<Placeholder> found = FindPlaceholder(run.text, at);
      if (!found) {
        break;
      }
      out.text.append(run.text, at, found->begin - at);
      AppendExpansion(parts[n_parts++], &out.text);
      at = found->begin + found->size;
    }
    out.text.append(run.text, at);
  }
  return expanded;
}

Result<std::vector<PlacedMedia>> PlaceMedia(std::span<const int32_t> prompt,
                                            std::span<const MediaPart> parts, const Vocab& vocab) {
  std::vector<PlacedMedia> placed;
  size_t at = 0;
  for (const MediaPart& part : parts) {
    FACET_ASSIGN(const MarkIds marks, FindMarks(vocab, part.kind));
    for (const MediaItemPtr& item : part.items) {
      FACET_ASSIGN(PlacedMedia place, PlaceItem(prompt, at, marks, item));
      at = static_cast<size_t>(place.end());
      placed.push_back(std::move(place));
    }
  }
  return placed;
}

}  // namespace facet
