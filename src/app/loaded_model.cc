// SPDX-License-Identifier: Apache-2.0
#include "app/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "app/drafting.h"
#include "app/embedded_model.h"
#include "app/encoders.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "base/log.h"

namespace facet {
namespace {

constexpr int kDefaultContext = 8192;

Result<Vocab> ReadVocab(const Checkpoint& checkpoint) {
  if (const gguf::Metadata* metadata = checkpoint.gguf_metadata()) {
    return Vocab::FromGguf(*metadata, checkpoint.path());
  }
  return Vocab::FromTokenizerJson(checkpoint.tokenizer_json(), checkpoint.tokenizer_config_json(),
                                  checkpoint.path());
}

Result<ChatTemplate> LoadTemplate(const Checkpoint& checkpoint, const Vocab& vocab) {
  const auto text_of = [&vocab](int id) {
    return id < 0 ? std::string() : std::string(vocab.text(id));
  };
  const std::string bos = text_of(vocab.bos_id());
  const std::string eos = text_of(vocab.eos_id());
  Result<ChatTemplate> own = ChatTemplate::Load(checkpoint.chat_template(),
                                                checkpoint.path() + ": chat template", bos, eos);
  if (own.ok() || checkpoint.chat_template().empty()) {
    return own;
  }
  Warn(own.error().Message() + "; the built-in template is used");
  return ChatTemplate::Load("", "built-in chat template", bos, eos);
}

/// A line that begins with the first call and is gone with the last.
std::function<void(int64_t, int64_t)> ShowPacking() {
  return [line = std::shared_ptr<ProgressLine>()](int64_t done, int64_t total) mutable {
    if (line == nullptr) {
      line = std::make_shared<ProgressLine>("arranging weights");
    }
    line->Update(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
    if (done == total) {
      line.reset();
    }
  };
}

void SortUnique(std::vector<int32_t>* ids) {
  std::sort(ids->begin(), ids->end());
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
}

Status CheckIds(const std::vector<int32_t>& ids, int n_vocab, const std::string& where) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= n_vocab) {
      return Refuse(where, fmt::format("token {}", id), fmt::format("0 to {}", n_vocab - 1));
    }
  }
  return {};
}

}  // namespace

Result<Checkpoint> OpenCheckpoint(const std::string& path) {
  if (!path.empty()) {
    return Checkpoint::Open(path);
  }
  Note("no model given: using the embedded tiny model (a toy; -m MODEL for a real one)");
  return Checkpoint::FromGgufBytes(EmbeddedModel(), "embedded model");
}

LoadedModel::LoadedModel(Checkpoint checkpoint, Vocab vocab, ChatTemplate chat_template)
    : checkpoint_(std::move(checkpoint)),
      vocab_(std::move(vocab)),
      tokenizer_(&vocab_),
      chat_template_(std::move(chat_template)) {}

Result<std::unique_ptr<LoadedModel>> LoadedModel::Load(const std::string& path) {
  FACET_ASSIGN(Checkpoint checkpoint, OpenCheckpoint(path));
  FACET_ASSIGN(Vocab vocab, ReadVocab(checkpoint));
  FACET_ASSIGN(ChatTemplate chat_template, LoadTemplate(checkpoint, vocab));
  std::unique_ptr<LoadedModel> model(
      new LoadedModel(std::move(checkpoint), std::move(vocab), std::move(chat_template)));
  FACET_RETURN_IF_ERROR(model->CollectTokens());
  return model;
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::LoadWithMedia(const Options& options) {
  FACET_ASSIGN(std::unique_ptr<LoadedModel> model, Load(options.model));
  FACET_ASSIGN(model->media_, OpenEncoders(options, model->checkpoint_));
  if (model->media_) {
    model->media_traits_ = model->media_->config().traits();
    if (options.model.empty()) {
      model->media_traits_.image_tokens = kEmbeddedImageTokens;
    }
  }
  return model;
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::LoadToGenerate(const Options& options,
                                                                 bool wants_media) {
  FACET_ASSIGN(std::unique_ptr<LoadedModel> model,
               wants_media ? LoadWithMedia(options) : Load(options.model));
  FACET_ASSIGN(model->drafter_, OpenDrafter(options, model->checkpoint_));
  return model;
}

Status LoadedModel::CollectTokens() {
  const GenerationDefaults& defaults = checkpoint_.defaults();
  const int n_vocab = checkpoint_.config().n_vocab;
  if (vocab_.size() > n_vocab) {
    return Refuse(checkpoint_.path(), fmt::format("a tokenizer of {} tokens", vocab_.size()),
                  fmt::format("at most the {} of the embedding matrix", n_vocab));
  }
  end_tokens_.assign(defaults.end_tokens.begin(), defaults.end_tokens.end());
  end_tokens_.insert(end_tokens_.end(), vocab_.end_ids().begin(), vocab_.end_ids().end());
  SortUnique(&end_tokens_);
  FACET_RETURN_IF_ERROR(CheckIds(end_tokens_, n_vocab, checkpoint_.path() + ": end tokens"));

  suppressed_tokens_.assign(defaults.suppressed_tokens.begin(), defaults.suppressed_tokens.end());
  suppressed_tokens_.insert(suppressed_tokens_.end(), vocab_.suppressed_ids().begin(),
                            vocab_.suppressed_ids().end());
  for (int32_t id = vocab_.size(); id < n_vocab; ++id) {
    suppressed_tokens_.push_back(id);
  }
  SortUnique(&suppressed_tokens_);
  return CheckIds(suppressed_tokens_, n_vocab, checkpoint_.path() + ": suppressed tokens");
}

Result<RunnerOptions> RunnerOptionsFrom(const Options& options, const Config& config) {
  RunnerOptions runner;
  runner.n_context = options.ctx_size.value_or(std::min(config.n_context, kDefaultContext));
  if (runner.n_context == 0) {
    runner.n_context = config.n_context;
  }
  runner.n_threads = options.threads;
  runner.pack = !options.no_pack;
  runner.on_packed = ShowPacking();
  runner.kv_type = FindKvType(options.kv_type).value_or(KvType::kF16);
  if (options.cpu_isa != "auto") {
    const auto isas = SupportedIsas();
    runner.isa = FindIsa(options.cpu_isa);
    if (!runner.isa || std::find(isas.begin(), isas.end(), *runner.isa) == isas.end()) {
      std::string wanted = "one of auto";
      for (const Isa isa : isas) {
        wanted += fmt::format(", {}", NameOf(isa));
      }
      return Refuse("--cpu-isa", fmt::format("\"{}\"", options.cpu_isa), wanted);
    }
  }
  FACET_RETURN_IF_ERROR(PlanKv(config, runner));
  return runner;
}

SamplingParams SamplingFrom(const Options& options, const GenerationDefaults& defaults,
                            uint64_t seed) {
  return {.temperature = options.temperature.value_or(defaults.temperature),
          .top_k = options.top_k.value_or(defaults.top_k),
          .top_p = options.top_p.value_or(defaults.top_p),
          .min_p = options.min_p,
          .repetition_penalty = options.repeat_penalty,
          .presence_penalty = options.presence_penalty,
          .frequency_penalty = options.frequency_penalty,
          .logit_bias = options.logit_bias,
          .seed = seed};
}

}  // namespace facet
