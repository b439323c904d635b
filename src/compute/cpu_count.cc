// SPDX-License-Identifier: Apache-2.0
#include "compute/cpu_count.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace facet {
namespace {

constexpr uint64_t kMaxFileBytes = 1 << 20;

std::string ReadOrEmpty(const std::string& path) {
  auto text = ReadFile(path, kMaxFileBytes);
  return text.ok() ? *std::move(text) : std::string();
}

std::optional<int64_t> LeadingInt(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) {
    return std::nullopt;
  }
  return value;
}

int64_t CountDistinctCores(const std::string& root, const std::vector<int>& allowed) {
  std::set<std::pair<int64_t, int64_t>> cores;  // package, core
  int64_t n_unknown = 0;
  for (const int cpu : allowed) {
    const std::string folder =
        root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const auto core = LeadingInt(ReadOrEmpty(folder + "core_id"));
    const auto package = LeadingInt(ReadOrEmpty(folder + "physical_package_id"));
    if (core.has_value() && package.has_value()) {
      cores.emplace(*package, *core);
    } else {
      ++n_unknown;
    }
  }
  return static_cast<int64_t>(cores.size()) + n_unknown;
}

// Whole processors of "quota period"; nothing when unlimited ("max", -1).
std::optional<int64_t> WholeProcessors(std::string_view quota, std::string_view period) {
  const auto quota_us = LeadingInt(quota);
  const auto period_us = LeadingInt(period);
  if (!quota_us.has_value() || !period_us.has_value() || *quota_us <= 0 || *period_us <= 0) {
    return std::nullopt;
  }
  return std::max<int64_t>(1, *quota_us / *period_us);
}

std::optional<int64_t> QuotaOfGroup(const std::string& folder, bool is_version_2) {
  if (!is_version_2) {
    return WholeProcessors(ReadOrEmpty(folder + "/cpu.cfs_quota_us"),
                           ReadOrEmpty(folder + "/cpu.cfs_period_us"));
  }
  const std::string line = ReadOrEmpty(folder + "/cpu.max");
  const size_t space = line.find(' ');
  if (space == std::string::npos) {
    return std::nullopt;
  }
  return WholeProcessors(line, std::string_view(line).substr(space + 1));
}

// The least quota of the group `path` below the mount point and of all groups above it.
int64_t LeastQuota(const std::string& mount, std::string path, bool is_version_2, int64_t limit) {
  while (true) {
    const auto quota = QuotaOfGroup(mount + path, is_version_2);
    limit = quota.has_value() ? std::min(limit, *quota) : limit;
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) {
      return limit;
    }
    path.resize(slash);
  }
}

bool HasController(std::string_view list, std::string_view name) {
  std::istringstream names{std::string(list)};
  for (std::string entry; std::getline(names, entry, ',');) {
    if (entry == name) {
      return true;
    }
  }
  return false;
}

// Lines of /proc/self/cgroup are "id:controllers:path"; version 2 has no controllers.
int64_t LimitByCgroups(const std::string& root, int64_t limit) {
  std::istringstream lines(ReadOrEmpty(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    const std::string base = root + "/sys/fs/cgroup";
    if (controllers.empty()) {
      limit = LeastQuota(base, path, true, limit);
    } else if (HasController(controllers, "cpu")) {
      limit = LeastQuota(base + "/cpu", path, false, limit);
      limit = LeastQuota(std::string(base).append("/").append(controllers), path, false, limit);
    }
  }
  return limit;
}

}  // namespace

int CountCores(const std::string& root, const std::vector<int>& allowed) {
  const int64_t limit = LimitByCgroups(root, CountDistinctCores(root, allowed));
  return static_cast<int>(std::max<int64_t>(1, limit));
}

}  // namespace facet
