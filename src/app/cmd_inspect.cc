// SPDX-License-Identifier: Apache-2.0
// `facet inspect`: what a model holds and what it needs. Collected as JSON once; the text for
// people is written from it. Any file of tensors is shown, also one that Facet does not run.
#include <unistd.h>

#include <optional>

#include "app/commands.h"
#include "app/encoders.h"
#include "app/inspection.h"
#include "app/inspection_check.h"
#include "app/inspection_diff.h"
#include "app/inspection_text.h"
#include "app/loaded_model.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "base/log.h"
#include "compute/cpu.h"
#include "compute/thread_pool.h"
#include "model/weights.h"

namespace facet {
namespace {

/// Adds the encoders that would be used with the model, or those that the file itself holds.
void InspectEncoders(const Options& options, const Checkpoint* model, Json* inspection) {
  if (model == nullptr || !options.mmproj.empty()) {
    const auto media = MediaCheckpoint::Open(model == nullptr ? options.model : options.mmproj);
    if (media.ok()) {
      const Status fits = model == nullptr ? Status() : CheckFits(*media, *model);
      AddEncoders(*media, fits.ok() ? "" : fits.error().Message(), inspection);
    } else if (model != nullptr) {
      Warn(media.error().Message());
    }
    return;
  }
  const auto media = OpenEncoders(options, *model);
  if (media.ok() && media->has_value()) {
    AddEncoders(**media, "", inspection);
  }
}

/// Adds the drafter that is to go with the model, or the one that the file itself is.
void InspectDrafter(const Options& options, const Checkpoint* model, Json* inspection) {
  if (model != nullptr && options.draft.empty()) {
    return;
  }
  const auto drafter = DrafterCheckpoint::Open(model == nullptr ? options.model : options.draft);
  if (drafter.ok()) {
    const Status fits = model == nullptr ? Status() : CheckFits(*drafter, *model);
    AddDrafter(*drafter, fits.ok() ? "" : fits.error().Message(), inspection);
  } else if (model != nullptr) {
    Warn(drafter.error().Message());
  }
}

/// Adds what is known of the model, and why it does not run, if it does not.
void InspectModel(Options options, const std::string& path, Json* inspection) {
  options.model = path;
  const auto model = LoadedModel::Load(path);
  InspectEncoders(options, model.ok() ? &(*model)->checkpoint() : nullptr, inspection);
  InspectDrafter(options, model.ok() ? &(*model)->checkpoint() : nullptr, inspection);
  if (!model.ok()) {
    inspection->Set("refused", model.error().Message());
    return;
  }
  AddModel(**model, inspection);
  const auto weights = BindWeights((*model)->checkpoint());
  inspection->Set("refused", weights.ok() ? Json() : Json(weights.error().Message()));
  if (weights.ok()) {
    AddPacking(*weights, inspection);
  }
}

/// Runs a scan of the tensors under a progress line.
template <typename Scan>
Json WithProgress(const char* what, Scan scan) {
  ThreadPool pool(DefaultThreads());
  ProgressLine line(what);
  return scan(&pool, [&line](uint64_t done, uint64_t total) { line.Update(done, total); });
}

}  // namespace

int RunInspect(const Options& options) {
  if (!options.model.empty() && !options.words.empty() && options.words[0] != options.model) {
    return Fail(Refuse("facet inspect", "a model with -m and one without", "one model"),
                kExitFailed);
  }
  const std::string path = options.words.empty() ? options.model : options.words[0];
  const auto source = InspectionSource::Open(path);
  if (!source.ok()) {
    return Fail(source.error(), kExitModelRefused);
  }
  std::optional<InspectionSource> other;
  if (!options.diff.empty()) {
    auto opened = InspectionSource::Open(options.diff);
    if (!opened.ok()) {
      return Fail(opened.error(), kExitModelRefused);
    }
    other = *std::move(opened);
  }
  Json inspection = Inspect(*source);
  InspectModel(options, path, &inspection);
  if (options.tensors) {
    AddTensors(*source, &inspection);
  }
  if (options.check) {
    inspection.Set("check", WithProgress("reading", [&](ThreadPool* pool, const auto& progress) {
                     return CheckValues(*source, pool, progress);
                   }));
  }
  if (other.has_value()) {
    inspection.Set("diff", WithProgress("comparing", [&](ThreadPool* pool, const auto& progress) {
                     return DiffSources(*source, *other, pool, progress);
                   }));
  }
  const std::string out = options.json ? inspection.Dump(2) + "\n" : ShowInspection(inspection);
  const Status status = WriteAll(STDOUT_FILENO, out, "standard output");
  if (!status.ok()) {
    return Fail(status.error(), kExitFailed);
  }
  const bool is_faulty = HasBadValues(inspection["check"]) || HasDifferences(inspection["diff"]);
  return is_faulty ? kExitFailed : kExitDone;
}

}  // namespace facet
