// SPDX-License-Identifier: Apache-2.0
#include "helper/answer.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/bytes.h"

namespace facet::helper {

void Answer(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n_written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (n_written >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(n_written));
    } else if (errno != EINTR) {
      std::_Exit(1);
    }
  }
}

void Answer(std::string_view bytes) { Answer(AsBytes(bytes)); }

}  // namespace facet::helper
