// SPDX-License-Identifier: Apache-2.0
#include "app/drafting.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "app/embedded_model.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "app/text_width.h"
#include "base/file.h"
#include "base/log.h"

namespace facet {
namespace {

Result<DrafterCheckpoint> OpenNamedOrEmbedded(const std::string& path) {
  return path.empty() ? DrafterCheckpoint::FromGgufBytes(EmbeddedDrafter(), "embedded drafter")
                      : DrafterCheckpoint::Open(path);
}

/// What of the options has no effect where no drafter is asked.
void NoteUnused(const Options& options) {
  if (options.command != Command::kBench || options.drafting) {
    if (!options.draft.empty()) {
      Note(fmt::format("--draft: not loaded, for --spec is {}", NameOf(options.spec)));
    }
    return;
  }
  const Options otherwise;
  for (const auto& [what, is_given] :
       {std::pair("--draft: not loaded", !options.draft.empty()),
        std::pair("--spec: not used", options.spec != otherwise.spec),
        std::pair("--spec-max: not used", options.spec_max != otherwise.spec_max)}) {
    if (is_given) {
      Note(fmt::format("{} without --drafting", what));
    }
  }
}

}  // namespace

bool WantsDrafter(const Options& options) {
  const bool has_use = options.command != Command::kBench || options.drafting;
  return has_use && (options.spec == SpecMode::kAuto || options.spec == SpecMode::kMtp);
}

Status CheckDrafting(const Options& options) {
  if (!FindOptionByKey("spec")->IsFor(options.command) || !WantsDrafter(options)) {
    return {};
  }
  const bool is_embedded = options.model.empty() && options.synth.empty();
  if (options.spec == SpecMode::kMtp && options.draft.empty() && !is_embedded) {
    return Refuse("--spec", "mtp without a drafter", "--draft MODEL, or --spec auto");
  }
  const bool is_number =
      !options.draft.empty() && options.draft.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && !FileExists(options.draft) && !IsDirectory(options.draft)) {
    return Refuse("--draft", fmt::format("\"{}\"", options.draft),
                  "a drafter; --spec-max N is how many tokens it guesses");
  }
  return {};
}

Result<std::optional<DrafterCheckpoint>> OpenDrafter(const Options& options,
                                                     const Checkpoint& checkpoint) {
  std::optional<DrafterCheckpoint> none;
  if (!WantsDrafter(options)) {
    NoteUnused(options);
    return none;
  }
  if (options.draft.empty() && !options.model.empty()) {
    return none;
  }
  FACET_ASSIGN(DrafterCheckpoint drafter, OpenNamedOrEmbedded(options.draft));
  FACET_RETURN_IF_ERROR(CheckFits(drafter, checkpoint));
  return std::optional(std::move(drafter));
}

Status CheckFoundDrafter(const std::string& path, const std::string& model) {
  FACET_ASSIGN(const DrafterCheckpoint drafter, DrafterCheckpoint::Open(path));
  const Result<Checkpoint> checkpoint = Checkpoint::Open(model);
  return checkpoint.ok() ? CheckFits(drafter, *checkpoint) : Status();
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
