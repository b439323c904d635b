// SPDX-License-Identifier: Apache-2.0
// Everything a command needs of a model before it computes: weights, vocabulary, tokenizer, chat
// template, which tokens end a reply, and encoders of pictures and sound and a drafter where they
// are wanted. From files, a directory, or the program itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/options.h"
#include "base/status.h"
#include "chat/chat_template.h"
#include "engine/request.h"
#include "media/media_item.h"
#include "model/checkpoint.h"
#include "model/drafter_checkpoint.h"
#include "model/media_checkpoint.h"
#include "model/model.h"
#include "model/weights.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace facet {

/// The weights alone. `path` empty: the embedded model, which is said in one line on standard
/// error.
Result<Checkpoint> OpenCheckpoint(const std::string& path);

/// Immutable once loaded; the parts refer to one another, so it never moves.
class LoadedModel {
 public:
  /// `path` is as OpenCheckpoint takes it. A template in the file that does not work is a warning,
  /// and the built-in one is used.
  static Result<std::unique_ptr<LoadedModel>> Load(const std::string& path);
  /// The model of the options, and the encoders that go with it (OpenEncoders).
  static Result<std::unique_ptr<LoadedModel>> LoadWithMedia(const Options& options);
  /// The model of the options with the drafter that goes with it (OpenDrafter), and with encoders
  /// if they are wanted.
  static Result<std::unique_ptr<LoadedModel>> LoadToGenerate(const Options& options,
                                                             bool wants_media);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  [[nodiscard]] const Checkpoint& checkpoint() const { return checkpoint_; }
  [[nodiscard]] const Vocab& vocab() const { return vocab_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }
  [[nodiscard]] const ChatTemplate& chat_template() const { return chat_template_; }
  /// Those of the file and those that the vocabulary knows by name; ascending.
  [[nodiscard]] const std::vector<int32_t>& end_tokens() const { return end_tokens_; }
  /// Never to be drawn: what the file says, and rows of the output matrix that no token belongs to;
  /// ascending.
  [[nodiscard]] const std::vector<int32_t>& suppressed_tokens() const { return suppressed_tokens_; }
  /// The encoders; null: text only.
  [[nodiscard]] const MediaCheckpoint* media() const { return media_ ? &*media_ : nullptr; }
  /// Null: none.
  [[nodiscard]] const DrafterCheckpoint* drafter() const { return drafter_ ? &*drafter_ : nullptr; }
  /// What the encoders take; nothing, where there are none.
  [[nodiscard]] const MediaTraits& media_traits() const { return media_traits_; }

 private:
  LoadedModel(Checkpoint checkpoint, Vocab vocab, ChatTemplate chat_template);
  Status CollectTokens();

  Checkpoint checkpoint_;
  Vocab vocab_;
  Tokenizer tokenizer_;
  ChatTemplate chat_template_;
  std::vector<int32_t> end_tokens_;
  std::vector<int32_t> suppressed_tokens_;
  std::optional<MediaCheckpoint> media_;
  MediaTraits media_traits_;
  std::optional<DrafterCheckpoint> drafter_;
};

/// What the options say about memory and processors, with defaults filled in; without encoders
/// and drafter. The arranging of weights is shown on the terminal.
Result<RunnerOptions> RunnerOptionsFrom(const Options& options, const Config& config);

/// What the options say about drawing tokens, with the model's defaults filled in.
SamplingParams SamplingFrom(const Options& options, const GenerationDefaults& defaults,
                            uint64_t seed);

}  // namespace facet
