// SPDX-License-Identifier: Apache-2.0
#include "app/drafting.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "app/embedded_model.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "app/text_width.h"
#include "base/log.h"

namespace facet {
namespace {

Result<DrafterCheckpoint> OpenNamedOrEmbedded(const std::string& path) {
  return path.empty() ? DrafterCheckpoint::FromGgufBytes(EmbeddedDrafter(), "embedded drafter")
                      : DrafterCheckpoint::Open(path);
}

}  // namespace

bool WantsDrafter(const Options& options) {
  const bool has_use = options.command != Command::kBench || options.drafting;
  return has_use && (options.spec == SpecMode::kAuto || options.spec == SpecMode::kMtp);
}

Result<std::optional<DrafterCheckpoint>> OpenDrafter(const Options& options,
                                                     const Checkpoint& checkpoint) {
  if (!WantsDrafter(options)) {
    if (!options.draft.empty()) {
      const bool has_mode = options.spec == SpecMode::kOff || options.spec == SpecMode::kNgram;
      Note(has_mode ? fmt::format("--draft: not loaded, for --spec is {}", NameOf(options.spec))
                    : "--draft: not loaded without --drafting");
    }
    return std::optional<DrafterCheckpoint>();
  }
  if (options.draft.empty() && !options.model.empty()) {
    return options.spec == SpecMode::kMtp
               ? Result<std::optional<DrafterCheckpoint>>(
                     Refuse("--spec", "mtp without a drafter", "--draft MODEL, or --spec auto"))
               : std::optional<DrafterCheckpoint>();
  }
  FACET_ASSIGN(DrafterCheckpoint drafter, OpenNamedOrEmbedded(options.draft));
  FACET_RETURN_IF_ERROR(CheckFits(drafter, checkpoint));
  return std::optional(std::move(drafter));
}

void SetDrafting(const Options& options, EngineOptions* engine) {
  engine->spec = options.spec;
  engine->max_drafts = options.spec_max;
  engine->on_step = [on_step = std::move(engine->on_step)](const StepReport& report) {
    if (!report.draft_error.empty()) {
      Warn("the drafter failed and is not asked any more: " + report.draft_error);
    }
    if (on_step) {
      on_step(report);
    }
  };
}

std::string DraftingText(const Options& options, const DrafterCheckpoint* drafter) {
  std::string text(NameOf(options.spec));
  if (options.spec != SpecMode::kOff) {
    text += fmt::format(", at most {} tokens at a time", options.spec_max);
  }
  if (drafter == nullptr && WantsDrafter(options)) {
    text += ", no drafter";
  }
  if (drafter != nullptr) {
    const std::string name = std::filesystem::path(drafter->path()).filename().string();
    text += fmt::format(", with {} ({})", ShownText(name),
                        ShownBytes(static_cast<double>(drafter->n_bytes())));
  }
  return text;
}

}  // namespace facet
