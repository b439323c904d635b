// SPDX-License-Identifier: Apache-2.0
#include "app/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "app/chat_session.h"
#include "app/commands.h"
#include "app/dropped_files.h"
#include "app/history.h"
#include "app/prompt_maker.h"
#include "app/reply_printer.h"
#include "app/report.h"
#include "app/terminal_input.h"
#include "app/text_width.h"
#include "base/log.h"
#include "chat/turn_memory.h"

namespace facet {
namespace {

constexpr std::string_view kPrompt = "> ";
constexpr size_t kMemoryBytes = size_t{16} << 20;  // of turns whose tokens are known

/// $XDG_STATE_HOME/facet/history, else below the home; empty when there is none.
std::string HistoryPath() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') {
    return std::string(state) + "/facet/history";
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.local/state/facet/history" : "";
}

std::string Home() {
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : home;
}

/// A history that cannot be kept is a warning, not an end.
History OpenHistory() {
  const std::string path = HistoryPath();
  if (path.empty()) {
    return {};
  }
  Result<History> history = History::Open(path);
  if (!history.ok()) {
    Warn(history.error().Message() + "; the history is not kept");
    return {};
  }
  return *std::move(history);
}

class Chat {
 public:
  Chat(const Options& options, const LoadedModel& model, Generator* generator)
      : model_(model),
        generator_(generator),
        style_(StyleOf(STDOUT_FILENO, options.no_color)),
        bytes_per_token_(BytesPerToken(model.checkpoint())),
        session_(options, {.knows_thinking = model.chat_template().traits().knows_thinking,
                           .bytes_per_token = bytes_per_token_,
                           .media = model.media_traits(),
                           .home = Home()}),
        prompts_(options, model),
        memory_(&model.vocab(), kMemoryBytes),
        history_(OpenHistory()),
        mode_(IsDumbTerminal() ? nullptr
                               : std::make_unique<TerminalMode>(TerminalMode::Kind::kReply)),
        input_(&history_, ChatSession::CommandNames(), style_, mode_.get()) {}

  int Run() {
    Print(fmt::format("{}{}{}, {} positions. /help lists the commands.\n", style_.dim,
                      ShownText(model_.checkpoint().config().name), style_.reset,
                      generator_->n_context()));
    if (!session_.attached().empty()) {
      Print(ShownText(session_.Run("/image").text) + "\n");
    }
    bool was_interrupted = false;
    while (true) {
      std::string line;
      const TerminalInput::Outcome outcome = input_.ReadLine(kPrompt, &line);
      if (outcome == TerminalInput::Outcome::kEnd ||
          (outcome == TerminalInput::Outcome::kInterrupt && was_interrupted)) {
        return kExitDone;
      }
      was_interrupted = outcome == TerminalInput::Outcome::kInterrupt;
      if (was_interrupted) {
        Print("Ctrl-C again or Ctrl-D leaves.\n");
      } else if (!TakeLine(line)) {
        return kExitDone;
      }
    }
  }

 private:
  void Print(const std::string& text) const {
    [[maybe_unused]] const Status status = WriteAll(STDOUT_FILENO, text, "standard output");
  }

  void PrintError(const std::string& text) const {
    Print(fmt::format("{}{}{}\n", style_.red, ShownText(text), style_.reset));
  }

  /// A command or a message; false: leave.
  bool TakeLine(const std::string& line) {
    if (line.find_first_not_of(" \t\n") == std::string::npos) {
      return true;
    }
    const Status kept = history_.Add(line);
    if (!kept.ok()) {
      Warn(kept.error().Message());
    }
    if (ChatSession::IsCommand(line)) {
      return Show(session_.Run(line));
    }
    std::vector<MediaFile> dropped = DroppedFiles(line, session_.home());
    if (!dropped.empty()) {
      return Show(session_.Attach(std::move(dropped)));
    }
    Reply(ChatSession::TextOf(line));
    return true;
  }

  /// False: leave.
  bool Show(const ChatSession::Answer& answer) const {
    if (answer.is_error) {
      PrintError(answer.text);
    } else if (!answer.text.empty()) {
      Print(ShownText(answer.text) + "\n");
    }
    return !answer.ends;
  }

  void Reply(const std::string& text) {
    const Status added = session_.AddUser(text);
    if (!added.ok()) {
      PrintError(added.error().Message());
      return;
    }
    const Result<facet::Reply> reply = Generate();
    if (!reply.ok()) {
      session_.DropUser();
      PrintError(reply.error().Message());
      return;
    }
    session_.AddReply(reply->content, reply->stats);
    const std::string note = FinishNote(*reply, generator_->n_context());
    if (!note.empty()) {
      Print(fmt::format("{}{}{}\n", style_.dim, note, style_.reset));
    }
    if (session_.options().verbose) {
      NoteSpeed(reply->stats, bytes_per_token_);
    }
  }

  Result<facet::Reply> Generate() {
    FACET_ASSIGN(PromptInput input, prompts_.FromConversation(session_.MakeChatRequest(), memory_));
    for (const std::string& notice : input.notices) {
      Print(fmt::format("{}{}{}\n", style_.dim, ShownText(notice), style_.reset));
    }
    const Options& options = session_.options();
    TextPrinter printer(STDOUT_FILENO, style_);
    Request request = MakeRequest(options, model_, std::move(input.tokens), ChooseSeed(options));
    request.media = std::move(input.media);
    FACET_ASSIGN(facet::Reply reply,
                 generator_->Generate(request, false, [&](const ReplyDelta& delta) {
                   return printer.Print(delta);
                 }));
    FACET_RETURN_IF_ERROR(printer.Finish());
    memory_.Remember(request.prompt, reply.tokens);
    return reply;
  }

  const LoadedModel& model_;
  Generator* generator_;
  Style style_;
  double bytes_per_token_;
  ChatSession session_;
  PromptMaker prompts_;
  TurnMemory memory_;
  History history_;
  std::unique_ptr<TerminalMode> mode_;  // null: a dumb terminal
  InterruptGuard guard_;                // Ctrl-C between two replies ends nothing
  TerminalInput input_;
};

}  // namespace

int RunChat(const Options& options, const LoadedModel& model, Generator* generator) {
  return Chat(options, model, generator).Run();
}

}  // namespace facet
