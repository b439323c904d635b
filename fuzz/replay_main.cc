// SPDX-License-Identifier: Apache-2.0
// Runs the files of the folders given as arguments through a fuzz target, in the order of their
// names. Fails when a folder has no file: a corpus that is not found must not pass for one without
// faults.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

/// Nothing when the folder cannot be read.
std::vector<std::filesystem::path> FilesIn(const char* folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void Replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // A block of exactly this size, so that a sanitizer sees a read behind it.
  const auto copy = std::make_unique<uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  (void)LLVMFuzzerTestOneInput(copy.get(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const auto files = FilesIn(argv[i]);
    if (files.empty()) {
      std::fprintf(stderr, "%s: no files\n", argv[i]);
      return 1;
    }
    for (const auto& file : files) {
      Replay(file);
    }
    std::printf("%s: %zu files\n", argv[i], files.size());
  }
  return argc > 1 ? 0 : 1;
}
