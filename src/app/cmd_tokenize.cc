// SPDX-License-Identifier: Apache-2.0
// `facet tokenize`: text to token ids and back.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "app/commands.h"
#include "app/loaded_model.h"
#include "app/prompt_input.h"
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

std::string Table(const Vocab& vocab, const std::vector<int>& ids) {
  std::string out;
  for (const int id : ids) {
    out += fmt::format("{:>7}  {}\n", id, ShownText(Json(ShownToken(vocab, id)).Dump()));
  }
  return out;
}

std::string AsJson(const Vocab& vocab, const std::vector<int>& ids) {
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
  const std::vector<int> ids = model.tokenizer().Encode(text, !options.no_special);
  if (options.json) {
    return AsJson(vocab, ids);
  }
  return options.ids ? fmt::format("{}\n", fmt::join(ids, " ")) : Table(vocab, ids);
}

}  // namespace

int RunTokenize(const Options& options) {
  if (options.json + options.ids + options.decode > 1) {
    return Fail(Refuse("facet tokenize", "several of --json, --ids and --decode", "one of them"),
                kExitFailed);
  }
  const Result<std::optional<std::string>> text = ReadPromptText(options, true);
  if (!text.ok()) {
    return Fail(text.error(), kExitFailed);
  }
  if (!text->has_value()) {
    return Fail(Refuse("facet tokenize", "no text", "words, -f FILE or text on standard input"),
                kExitFailed);
  }
  const auto model = LoadedModel::Load(options.model);
  if (!model.ok()) {
    return Fail(model.error(), kExitModelRefused);
  }
  const Result<std::string> out = Convert(options, **model, **text);
  if (!out.ok()) {
    return Fail(out.error(), kExitFailed);
  }
  const Status status = WriteAll(STDOUT_FILENO, *out, "standard output");
  return status.ok() ? kExitDone : Fail(status.error(), kExitFailed);
}

}  // namespace facet
