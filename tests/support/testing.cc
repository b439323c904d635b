// SPDX-License-Identifier: Apache-2.0
#include "support/testing.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "base/file.h"

namespace facet::testing {
namespace {

template <typename T>
T ValueOrDie(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "test data: %s\n", result.error().Message().c_str());
    std::abort();
  }
  return *std::move(result);
}

constexpr uint64_t kLimit = uint64_t{1} << 30;

}  // namespace

std::string SourcePath(std::string_view relative) {
  return std::string(FACET_SOURCE_DIR "/").append(relative);
}

std::string TestdataPath(std::string_view relative) {
  return std::string(FACET_SOURCE_DIR "/testdata/").append(relative);
}

std::optional<std::string> SharedPath(std::string_view relative) {
  const char* chosen = std::getenv("FACET_SHARED");
  std::string path = chosen != nullptr ? chosen : FACET_SOURCE_DIR "/../shared";
  path.append("/").append(relative);
  if (!FileExists(path)) {
    return std::nullopt;
  }
  return path;
}

std::string ReadOrDie(const std::string& path) { return ValueOrDie(ReadFile(path, kLimit)); }

Json JsonOrDie(const std::string& path) {
  return ValueOrDie(ParseJson(ReadOrDie(path), path, {kLimit, 1000}));
}

std::vector<Json> JsonLinesOrDie(const std::string& path) {
  const std::string text = ReadOrDie(path);
  std::vector<Json> lines;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = text.find('\n', begin);
    end = end == std::string::npos ? text.size() : end;
    if (end > begin) {
      lines.push_back(ValueOrDie(
          ParseJson(std::string_view(text).substr(begin, end - begin), path, {kLimit, 1000})));
    }
    begin = end + 1;
  }
  return lines;
}

bool HasTerminals() {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  const bool is_usable = terminal >= 0 && ::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0;
  if (terminal >= 0) {
    ::close(terminal);
  }
  return is_usable;
}

namespace {

// The directories made by this process, removed when it ends.
class TempDirs {
 public:
  ~TempDirs() {
    for (const std::string& path : paths_) {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  }
  void Add(const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_.push_back(path);
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> paths_;
};

}  // namespace

std::string MakeTempDir() {
  static TempDirs made;
  const char* root = std::getenv("TMPDIR");
  std::string path = std::string(root != nullptr ? root : "/tmp") + "/facet-test-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    std::perror("mkdtemp");
    std::abort();
  }
  made.Add(path);
  return path;
}

}  // namespace facet::testing
