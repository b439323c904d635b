// SPDX-License-Identifier: Apache-2.0
// `facet tokenize`: text to token ids and back.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "app/commands.h"
#include "app/loaded_model.h"
#include "app/prompt_input.h"
#include "app/prompt_maker.h"
#include "app/terminal.h"
#include "app/text_width.h"
#include "text/detokenizer.h"

namespace facet {
namespace {

/// What the token adds to a text; a byte token, which may be a part of a character, as the
/// vocabulary spells it.
std::string_view ShownToken(const Vocab& vocab, int id) {
  return vocab.kind(id) == TokenKind::kByte ? vocab.text(id) : vocab.bytes(id);
}

/// One line for each token; for the soft tokens of a picture or a sound, which are all the same,
/// one line with their number.
std::string Table(const Vocab& vocab, const std::vector<int32_t>& ids,
                  std::span<const PlacedMedia> media) {
  std::string out;
  size_t i = 0;
  while (i < ids.size()) {
    const std::string shown = ShownText(Json(ShownToken(vocab, ids[i])).Dump());
    const bool is_item = !media.empty() && static_cast<size_t>(media[0].begin) == i;
    out += fmt::format("{:>7}  {}", ids[i], shown);
    if (is_item) {
      out += fmt::format(" x {}  ({})", media[0].item->n_tokens, MediaText(*media[0].item));
      i = static_cast<size_t>(media[0].end());
      media = media.subspan(1);
    } else {
      ++i;
    }
    out += '\n';
  }
  return out;
}

std::string AsJson(const Vocab& vocab, const std::vector<int32_t>& ids) {
  Json all = Json(Json::Array());
  for (const int id : ids) {
    all.Append(Json::MakeObject({{"id", id}, {"text", ShownToken(vocab, id)}}));
  }
  return all.Dump() + "\n";
}

/// Ids between blanks, commas or brackets.
Result<std::vector<int>> ParseIds(std::string_view text, int n_vocab) {
  std::vector<int> ids;
  constexpr std::string_view kBetween = " \t\r\n,[]";
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) {
      return ids;
    }
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    int id = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size() || id < 0 || id >= n_vocab) {
      return Refuse("--decode", fmt::format("\"{}\"", word),
                    fmt::format("token ids from 0 to {}", n_vocab - 1));
    }
    ids.push_back(id);
    text.remove_prefix(word.size());
  }
}

/// Ids of a text; with media, of the prompt that `facet run --raw` makes of both.
Result<PromptInput> Encode(const Options& options, const LoadedModel& model,
                           const std::string& text) {
  if (!options.media.empty()) {
    return PromptMaker(options, model).FromText(text, options.media, options);
  }
  PromptInput input;
  input.tokens = model.tokenizer().Encode(text, !options.no_special);
  return input;
}

Result<std::string> Convert(const Options& options, const LoadedModel& model,
                            const std::string& text) {
  const Vocab& vocab = model.vocab();
  if (options.decode) {
    FACET_ASSIGN(const std::vector<int> ids, ParseIds(text, vocab.size()));
    std::string decoded = Decode(vocab, ids, options.no_special);
    if (!decoded.empty() && !decoded.ends_with('\n')) {
      decoded += '\n';
    }
    return IsTerminal(STDOUT_FILENO) ? ShownText(decoded) : decoded;
  }
  FACET_ASSIGN(const PromptInput input, Encode(options, model, text));
  for (const std::string& notice : input.notices) {
    Note(ShownLine(notice));
  }
  if (options.json) {
    return AsJson(vocab, input.tokens);
  }
  return options.ids ? fmt::format("{}\n", fmt::join(input.tokens, " "))
                     : Table(vocab, input.tokens, input.media);
}

/// What does not depend on the model.
Status CheckOptions(const Options& options) {
  if (options.json + options.ids + options.decode > 1) {
    return Refuse("facet tokenize", "several of --json, --ids and --decode", "one of them");
  }
  if (!options.media.empty() && (options.decode || options.no_special)) {
    return Refuse(options.decode ? "--decode" : "--no-special", "given with files of media",
                  "one of them");
  }
  return {};
}

}  // namespace

int RunTokenize(const Options& options) {
  const Status usable = CheckOptions(options);
  if (!usable.ok()) {
    return Fail(usable.error(), kExitFailed);
  }
  const Result<std::optional<std::string>> text = ReadPromptText(options, true);
  if (!text.ok()) {
    return Fail(text.error(), kExitFailed);
  }
  if (!text->has_value() && options.media.empty()) {
    return Fail(Refuse("facet tokenize", "no text", "words, -f FILE or text on standard input"),
                kExitFailed);
  }
  const auto model = options.media.empty() ? LoadedModel::Load(options.model)
                                           : LoadedModel::LoadWithMedia(options);
  if (!model.ok()) {
    return Fail(model.error(), kExitModelRefused);
  }
  const Status takes = CheckTakesMedia(options, **model);
  if (!takes.ok()) {
    return Fail(takes.error(), kExitFailed);
  }
  const Result<std::string> out = Convert(options, **model, text->value_or(""));
  if (!out.ok()) {
    return Fail(out.error(), kExitFailed);
  }
  const Status status = WriteAll(STDOUT_FILENO, *out, "standard output");
  return status.ok() ? kExitDone : Fail(status.error(), kExitFailed);
}

}  // namespace facet
