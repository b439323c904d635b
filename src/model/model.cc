// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compute/thread_pool.h"
#include "model/drafter.h"
#include "model/kv_store.h"
#include "model/media_model.h"
#include "model/packing.h"
#include "model/text_model.h"
#include "model/weights.h"

namespace facet {
namespace {

/// A TextModel with the threads it runs on.
class OwningRunner final : public Runner {
 public:
  OwningRunner(std::unique_ptr<ThreadPool> pool, std::unique_ptr<TextModel> model,
               std::unique_ptr<MediaModel> media, std::unique_ptr<Drafter> drafter)
      : pool_(std::move(pool)),
        model_(std::move(model)),
        media_(std::move(media)),
        drafter_(std::move(drafter)) {}
  [[nodiscard]] const RunnerInfo& info() const override { return model_->info(); }
  Result<std::span<const float>> Run(const Batch& batch) override { return model_->Run(batch); }
  Result<std::vector<float>> Encode(std::span<const MediaItem* const> items) override {
    return media_ == nullptr ? model_->Encode(items) : media_->Encode(items);
  }
  [[nodiscard]] std::span<const float> hidden() const override { return model_->hidden(); }
  Result<std::vector<int32_t>> Draft(std::span<const DraftTask> tasks) override {
    return drafter_ == nullptr ? model_->Draft(tasks) : drafter_->Draft(tasks);
  }
  std::span<std::byte> block(KvGroup group, BlockId id) override {
    return model_->block(group, id);
  }

 private:
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<TextModel> model_;
  std::unique_ptr<MediaModel> media_;  // null: text alone
  std::unique_ptr<Drafter> drafter_;   // null: none
};

Result<Isa> ChooseIsa(const RunnerOptions& options) {
  if (!options.isa.has_value()) {
    return BestIsa();
  }
  const std::vector<Isa> supported = SupportedIsas();
  if (std::find(supported.begin(), supported.end(), *options.isa) == supported.end()) {
    return Refuse("instruction set", std::string(NameOf(*options.isa)),
                  "one that this processor has");
  }
  return *options.isa;
}

/// The file of the text model does not tell the 12B from others; its encoders do.
SpanSight SightOf(const Config& config, const RunnerOptions& options) {
  if (!config.has_bidirectional_spans) {
    return SpanSight::kNone;
  }
  const bool is_unified = options.media != nullptr && options.media->config().vision &&
                          options.media->config().vision->is_unified;
  return is_unified ? SpanSight::kEveryLayer : SpanSight::kSlidingLayers;
}

}  // namespace

Result<std::unique_ptr<TextModel>> MakeTextModel(const Checkpoint& checkpoint,
                                                 const RunnerOptions& options,
                                                 const ComputeContext& context) {
  const Config& config = checkpoint.config();
  FACET_ASSIGN(const KvPoolPlan plan, PlanKv(config, options));
  FACET_ASSIGN(Weights weights, BindWeights(checkpoint));
  if (options.pack) {
    FACET_RETURN_IF_ERROR(PackWeights(checkpoint, context, options.on_packed, &weights));
  }
  RunnerInfo info;
  info.n_vocab = config.n_vocab;
  info.n_context = options.n_context > 0 ? options.n_context : config.n_context;
  info.sliding_window = config.has_sliding_layers() ? config.sliding_window : 0;
  info.n_sliding_blocks = plan.sliding.n_blocks;
  info.n_full_blocks = plan.full.n_blocks;
  info.n_embd = config.n_embd;
  if (options.media != nullptr) {
    info.media = options.media->config().traits();
  }
  info.drafts = options.drafter != nullptr;
  FACET_ASSIGN(KvStore kv, KvStore::Allocate(config, options.kv_type, plan));
  return std::make_unique<TextModel>(&config, std::move(weights), context, std::move(kv), info,
                                     SightOf(config, options));
}

Result<std::unique_ptr<Runner>> MakeRunner(const Checkpoint& checkpoint,
                                           const RunnerOptions& options) {
  FACET_ASSIGN(const Isa isa, ChooseIsa(options));
  const int n_threads = options.n_threads > 0 ? options.n_threads : DefaultThreads();
  auto pool = std::make_unique<ThreadPool>(n_threads);
  const ComputeContext context = {&KernelsFor(isa), pool.get(), options.observer};
  FACET_ASSIGN(auto model, MakeTextModel(checkpoint, options, context));
  std::unique_ptr<MediaModel> media;
  if (options.media != nullptr) {
    FACET_RETURN_IF_ERROR(CheckFits(*options.media, checkpoint));
    FACET_ASSIGN(media, MediaModel::Make(*options.media, context));
  }
  std::unique_ptr<Drafter> drafter;
  if (options.drafter != nullptr) {
    FACET_RETURN_IF_ERROR(CheckFits(*options.drafter, checkpoint));
    const DraftTarget target = {&model->config(), &model->weights(), &model->kv()};
    FACET_ASSIGN(drafter, Drafter::Make(*options.drafter, target, context, options.pack));
  }
  return std::unique_ptr<Runner>(std::make_unique<OwningRunner>(
      std::move(pool), std::move(model), std::move(media), std::move(drafter)));
}

}  // namespace facet
