// SPDX-License-Identifier: Apache-2.0
// facet-media: one job from standard input, its answer on standard output
// (media/helper_protocol.h).
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <span>
#include <string_view>

#include "helper/answer.h"
#include "helper/sandbox.h"
#include "helper/sound_task.h"
#include "helper/video_task.h"
#include "media/helper_protocol.h"

extern "C" {
#include <libavutil/log.h>
}

namespace facet::helper {
namespace {

constexpr int64_t kWorkBytes = int64_t{2} << 30;  // what decoders may take, beside the input

void Complain(std::string_view text) { (void)!::write(STDERR_FILENO, text.data(), text.size()); }

Result<std::span<const std::byte>> MapInput() {
  struct stat facts = {};
  if (::fstat(STDIN_FILENO, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size == 0) {
    return Refuse("", "no job", "a file as standard input");
  }
  const auto size = static_cast<size_t>(facts.st_size);
  void* begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0);
  if (begin == MAP_FAILED) {
    return Refuse("", "standard input that cannot be mapped", "a file");
  }
  return std::span(static_cast<const std::byte*>(begin), size);
}

Status Work() {
  FACET_ASSIGN(const auto input, MapInput());
  FACET_ASSIGN(const HelperJob job, ReadJob(input));
  const auto size = static_cast<int64_t>(input.size());
  // Files tell when they were made, and the first use of such times would read the zone's file.
  ::tzset();
  // The frames that are held until all are found, beside what decoders take.
  FACET_RETURN_IF_ERROR(EnterSandbox(
      {.max_memory_bytes = kWorkBytes + size + job.max_bytes, .max_cpu_s = job.timeout_s + 1}));
  const auto file = input.subspan(kHelperJobBytes);
  return job.task == HelperTask::kVideo ? AnswerVideo(file, job) : AnswerSound(file, job);
}

int Main(std::span<char*> arguments) {
  // libav would print what it finds in the file.
  av_log_set_level(AV_LOG_QUIET);
  if (arguments.size() == 3 && std::string_view(arguments[1]) == "--self-test") {
    if (!CanBeConfined()) {
      Complain("not confined in this build\n");
      return 77;
    }
    BreakOut(arguments[2]);
    Complain("not stopped\n");
    return 1;
  }
  if (arguments.size() != 1) {
    Complain("facet-media decodes video and AAC for facet, which starts it (docs/media.md)\n");
    return 2;
  }
  const Status status = Work();
  Answer(status.ok() ? DoneMessage() : FailMessage(status.error()));
  return 0;
}

}  // namespace
}  // namespace facet::helper

// _Exit: what libraries do at the end of a process, the sandbox may forbid.
int main(int argc, char** argv) {
  std::_Exit(facet::helper::Main(std::span(argv, static_cast<size_t>(argc))));
}
