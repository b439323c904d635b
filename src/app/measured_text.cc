// SPDX-License-Identifier: Apache-2.0
#include "app/measured_text.h"

#include "base/file.h"
#include "chat/prompt.h"

namespace facet {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;
/// What the text is an answer to.
constexpr std::string_view kInstruction = "Write a text.";

}  // namespace

Result<std::string> ReadMeasuredText(const std::string& path) {
  FACET_ASSIGN(std::string bytes, ReadFile(path, kMaxTextBytes));
  if (bytes.empty()) {
    return Refuse(path, "an empty file", "a text");
  }
  return bytes;
}

Result<std::vector<int>> MeasuredFrame(const LoadedModel& model, bool is_raw) {
  Prompt prompt;
  if (!is_raw) {
    ChatRequest request;
    request.messages.Append(Json::MakeObject({{"role", "user"}, {"content", kInstruction}}));
    FACET_ASSIGN(prompt, model.chat_template().Render(request));
  }
  return TokenizePrompt(model.tokenizer(), model.vocab(), prompt);
}

}  // namespace facet
