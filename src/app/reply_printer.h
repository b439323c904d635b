// SPDX-License-Identifier: Apache-2.0
// A reply on its way to standard output: for a person at a terminal, for a pipe, or as JSON lines.
// The commands that print offer no tools, so a reply is content and thoughts.
#pragma once

#include <string>

#include "app/generator.h"
#include "app/terminal.h"
#include "base/json.h"
#include "base/status.h"
#include "chat/reply.h"

namespace facet {

/// Text. On a terminal thoughts are shown dimmed before the answer and control characters are made
/// harmless; elsewhere the answer's text goes out as it is, and nothing else. A text that does not
/// end with a line break gets one.
class TextPrinter {
 public:
  TextPrinter(int fd, Style style) : fd_(fd), is_terminal_(IsTerminal(fd)), style_(style) {}
  Status Print(const ReplyDelta& delta);
  Status Finish();

 private:
  Status Write(const std::string& text);
  [[nodiscard]] std::string Switch(ReplyDelta::Kind kind);

  int fd_;
  bool is_terminal_;
  Style style_;
  ReplyDelta::Kind kind_ = ReplyDelta::Kind::kContent;
  char last_ = '\n';  // byte written
};

/// One JSON object per line: {"event":"start",…} (with "media", where there are some: MediaJson),
/// {"event":"delta","kind":"content"|"thought","text":…},
/// {"event":"finish","reason":…,"usage":…,"timings":…}.
class JsonPrinter {
 public:
  explicit JsonPrinter(int fd) : fd_(fd) {}
  Status Start(const LoadedModel& model, const Request& request, int n_context);
  Status Print(const ReplyDelta& delta);
  Status Finish(const Reply& reply, double load_s);

 private:
  Status Write(const Json& line);
  int fd_;
};

/// Why the reply ended, in brackets, when it did not end by itself; else empty.
std::string FinishNote(const Reply& reply, int n_context);

}  // namespace facet
