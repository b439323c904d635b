// SPDX-License-Identifier: Apache-2.0
#include "app/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "app/terminal.h"
#include "app/text_width.h"

namespace facet {
namespace {

using std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::milliseconds(500);
constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr std::string_view kEraseLine = "\r\x1b[K";

/// Replaces the present line, cut to the terminal's width so that it never wraps.
void Draw(std::string_view text) {
  const std::string shown = ShownText(text);
  const int columns = SizeOfTerminal(STDERR_FILENO).columns - 1;
  size_t end = 0;
  int width = 0;
  while (end < shown.size()) {
    const size_t next = NextGrapheme(shown, end);
    width += GraphemeWidth(std::string_view(shown).substr(end, next - end));
    if (width > columns) {
      break;
    }
    end = next;
  }
  [[maybe_unused]] const Status status =
      WriteAll(STDERR_FILENO, std::string(kEraseLine) + shown.substr(0, end), "standard error");
}

}  // namespace

double SecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

std::string ShownBytes(double n_bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (n_bytes >= 999.5 && unit + 1 < kUnits.size()) {
    n_bytes /= 1000;
    ++unit;
  }
  const int n_decimals = unit == 0 || n_bytes >= 99.95 ? 0 : n_bytes >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", n_bytes, n_decimals, kUnits[unit]);
}

std::string ShownProgress(uint64_t done, uint64_t total, double elapsed_s) {
  const double share = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  const double rate = elapsed_s > 0 ? static_cast<double>(done) / elapsed_s : 0;
  std::string line =
      fmt::format("{:.0f}%  {} of {}", 100 * share, ShownBytes(static_cast<double>(done)),
                  ShownBytes(static_cast<double>(total)));
  if (rate > 0) {
    const double left_s = static_cast<double>(total > done ? total - done : 0) / rate;
    line += fmt::format("  {}/s  {:.0f} s left", ShownBytes(rate), left_s);
  }
  return line;
}

Spinner::Spinner(std::string what) : what_(std::move(what)) {
  if (IsTerminal(STDERR_FILENO) && !IsDumbTerminal()) {
    thread_ = std::thread([this] { Turn(); });
  }
}

Spinner::~Spinner() {
  {
    const std::lock_guard lock(mutex_);
    is_done_ = true;
  }
  wakes_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Spinner::Turn() {
  constexpr std::array<std::string_view, 4> kSigns = {"|", "/", "-", "\\"};
  const auto start = steady_clock::now();
  std::unique_lock lock(mutex_);
  if (wakes_.wait_for(lock, kPatience, [this] { return is_done_; })) {
    return;
  }
  for (size_t turn = 0; !is_done_; ++turn) {
    Draw(fmt::format("{} {}  {:.1f} s", kSigns[turn % kSigns.size()], what_, SecondsSince(start)));
    wakes_.wait_for(lock, kRedraw, [this] { return is_done_; });
  }
  Draw("");
}

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)),
      start_(steady_clock::now()),
      drawn_(start_),
      is_terminal_(IsTerminal(STDERR_FILENO) && !IsDumbTerminal()) {}

ProgressLine::~ProgressLine() { Erase(); }

void ProgressLine::Erase() {
  if (is_shown_) {
    Draw("");
    is_shown_ = false;
  }
}

/// Whether the line is to be drawn now.
bool ProgressLine::IsDue() {
  const auto now = steady_clock::now();
  if (!is_terminal_ || now - start_ < kPatience || (is_shown_ && now - drawn_ < kRedraw)) {
    return false;
  }
  drawn_ = now;
  is_shown_ = true;
  return true;
}

void ProgressLine::Update(uint64_t done, uint64_t total) {
  if (IsDue()) {
    Draw(fmt::format("{}  {}", what_, ShownProgress(done, total, SecondsSince(start_))));
  }
}

void ProgressLine::Show(std::string_view text) {
  if (IsDue()) {
    Draw(fmt::format("{}  {}", what_, text));
  }
}

}  // namespace facet
