// SPDX-License-Identifier: Apache-2.0
// Lines for people on stderr: warnings and notes. Libraries warn through here; they never print
// otherwise.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace facet {

using LogSink = std::function<void(std::string_view line)>;

/// Replaces where warnings go (default: "warning: LINE" on stderr) and returns the former sink.
/// Call before threads start; tests use it to collect.
LogSink SetWarningSink(LogSink sink);

/// One line, no newline at its end. Safe from any thread.
void Warn(std::string_view line);

}  // namespace facet
