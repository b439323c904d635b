// SPDX-License-Identifier: Apache-2.0
// A file by its URL: resumed where an earlier try ended, checked, and under its final name only
// when it is complete. While it is not, it lies at PATH.part, and PATH.part.json tells of which
// version on the server it is the beginning. Memory does not grow with the file.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/fetch.h"

namespace facet {

struct DownloadRequest {
  std::string url;
  std::string path;        ///< of the file; its folder must exist
  std::string token = {};  ///< see FetchRequest
  /// What the file must have, lower-case hexadecimal; empty: what the server's X-Linked-Etag says,
  /// if that is a digest.
  std::string sha256 = {};
  std::optional<uint64_t> size = {};  ///< that it must have
};

/// What a download tells, and how it waits. Called on the thread that downloads.
struct DownloadHooks {
  /// `total` is 0 while it is not known.
  std::function<void(uint64_t done, uint64_t total)> on_progress;
  /// A line for people: why it is tried again, and when.
  std::function<void(const std::string& line)> on_note;
  /// Lets time pass between two tries.
  std::function<void(std::chrono::milliseconds)> wait;
};

/// Blocks until the file is there. What was cut, refused for the moment (408, 429, 5xx) or stalled
/// is tried again, at most 6 times in a row without a megabyte of progress, after 0.5 s and twice
/// as long each time, or after what the server asks for when that is at most two minutes. A file
/// that is there already is left alone. Refuses what another process downloads at the moment. On
/// failure nothing lies under PATH, and what came stays for the next call unless its digest is
/// wrong.
Status Download(const DownloadRequest& request, const DownloadHooks& hooks);

/// A small text by its URL, tried again likewise; refuses one of more than `limit_bytes`.
Result<std::string> DownloadText(const std::string& url, const std::string& token,
                                 size_t limit_bytes, const DownloadHooks& hooks);

}  // namespace facet
