// SPDX-License-Identifier: Apache-2.0
// `facet synth`: a checkpoint of real shape with random weights.
#include <optional>
#include <utility>

#include "app/commands.h"
#include "app/embedded_model.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "convert/synth.h"
#include "format/gguf.h"

namespace facet {
namespace {

/// The file whose tokenizer is taken: --vocab, else the model within the program.
Result<gguf::File> OpenVocab(const std::string& path) {
  return path.empty() ? gguf::File::FromBytes(EmbeddedModel(), "embedded model")
                      : gguf::File::Open(path);
}

}  // namespace

int RunSynth(const Options& options) {
  SynthOptions synth;
  synth.out = options.words[0];
  synth.shape = options.shape;
  if (options.drafter && options.projector) {
    return Fail(Refuse("--projector", "given with --drafter", "one of the two"), kExitFailed);
  }
  synth.part = options.drafter     ? SynthPart::kDrafter
               : options.projector ? SynthPart::kProjector
                                   : SynthPart::kModel;
  const std::string otherwise = options.projector ? "f16" : synth.type;
  synth.type = options.type.empty() ? otherwise : options.type;
  synth.leaves_out_centroids = options.no_centroids;
  synth.seed = options.seed.value_or(0);
  if (const Status named = CheckGgufName(options.command, synth.out); !named.ok()) {
    return Fail(named.error(), kExitFailed);
  }
  const Result<gguf::File> vocab = OpenVocab(options.vocab);
  if (!vocab.ok()) {
    return Fail(vocab.error(), kExitModelRefused);
  }
  synth.tokenizer = vocab->metadata();
  synth.tokenizer_name = options.vocab.empty() ? "embedded model" : options.vocab;
  std::optional<ProgressLine> progress("writing");
  synth.on_progress = [&progress](uint64_t done, uint64_t total) { progress->Update(done, total); };
  RemoveOnInterrupt(synth.out + ".part");  // where base/file.h writes what is not complete
  const Status status = WriteSynthetic(synth);
  RemoveOnInterrupt("");
  progress.reset();
  if (!status.ok()) {
    const bool is_of_vocab = status.error().where.starts_with(synth.tokenizer_name);
    return Fail(status.error(), is_of_vocab ? kExitModelRefused : kExitFailed);
  }
  return kExitDone;
}

}  // namespace facet
