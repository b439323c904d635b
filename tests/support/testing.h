// SPDX-License-Identifier: Apache-2.0
// What tests share: where their data lies, and reading it with failures that abort the test.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace facet::testing {

/// Path of a file below testdata/.
std::string TestdataPath(std::string_view relative);
/// Path of a file below the source tree's root (models/tiny/...).
std::string SourcePath(std::string_view relative);
/// Path in the folder of shared material (FACET_SHARED, else ../shared beside the source tree), or
/// nothing when it is not there: then the test is to be skipped (GTEST_SKIP() << kNoShared).
std::optional<std::string> SharedPath(std::string_view relative);
inline constexpr std::string_view kNoShared = "needs the shared data folder (FACET_SHARED)";

/// The whole file, or abort.
std::string ReadOrDie(const std::string& path);
Json JsonOrDie(const std::string& path);
/// One value per line.
std::vector<Json> JsonLinesOrDie(const std::string& path);

/// Whether this machine hands out pseudo-terminals (a bare chroot may not). Where it does not, the
/// test is to be skipped (GTEST_SKIP() << kNoTerminals).
bool HasTerminals();
inline constexpr std::string_view kNoTerminals = "needs pseudo-terminals (/dev/pts)";

/// A fresh empty directory below the test's temporary folder, removed when the program ends.
std::string MakeTempDir();

}  // namespace facet::testing
