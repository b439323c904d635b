// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <cstdio>
#include <mutex>
#include <utility>

namespace facet {
namespace {

void PrintWarning(std::string_view line) {
  std::fprintf(stderr, "warning: %.*s\n", static_cast<int>(line.size()), line.data());
}

std::mutex& SinkMutex() {
  static std::mutex mutex;
  return mutex;
}

LogSink& CurrentSink() {
  static LogSink sink = PrintWarning;
  return sink;
}

}  // namespace

LogSink SetWarningSink(LogSink sink) {
  const std::lock_guard lock(SinkMutex());
  return std::exchange(CurrentSink(), std::move(sink));
}

void Warn(std::string_view line) {
  const std::lock_guard lock(SinkMutex());
  CurrentSink()(line);
}

}  // namespace facet
