// SPDX-License-Identifier: Apache-2.0
// Models that see and hear, from pixels and samples to logits and text, against transformers
// (testdata/media/README.md): the Hugging Face directories, and the files that llama.cpp's
// converter made of them. Tolerances: 5e-4 of the root mean square on logits (the reference's own
// float32 differs from float64 by up to 1.1e-4 of it), 1e-4 of it on soft tokens; greedy text is
// equal. Then the numbers contract: any chunks, neighbours and reuse give the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/file.h"
#include "compute/thread_pool.h"
#include "engine/engine.h"
#include "format/safetensors.h"
#include "media/audio.h"
#include "media/image.h"
#include "media/prepare_audio.h"
#include "media/prepare_image.h"
#include "model/media_checkpoint.h"
#include "model/media_model.h"
#include "model/model.h"
#include "support/testing.h"
#include "tiny/driver.h"

namespace facet::testing {
namespace {

constexpr double kLogitTolerance = 5e-4;
constexpr double kSoftTolerance = 1e-4;

template <typename T>
T ValueOrDie(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.error().Message();
    std::abort();
  }
  return *std::move(result);
}

std::vector<int32_t> Ints(const Json& json) {
  std::vector<int32_t> out;
  for (const Json& item : json.items()) {
    out.push_back(static_cast<int32_t>(item.as_int()));
  }
  return out;
}

/// A file of tensors.
class Tensors {
 public:
  explicit Tensors(const std::string& path)
      : file_(ValueOrDie(safetensors::File::Open(TestdataPath(path)))) {}

  template <typename T>
  [[nodiscard]] std::vector<T> Values(const std::string& name) const {
    const auto* view = file_.Find(name);
    FACET_CHECK(view != nullptr);
    std::vector<T> values(view->data.size() / sizeof(T));
    std::memcpy(values.data(), view->data.data(), values.size() * sizeof(T));
    return values;
  }
  [[nodiscard]] bool Has(const std::string& name) const { return file_.Find(name) != nullptr; }

 private:
  safetensors::File file_;
};

/// The files of one model.
struct Pair {
  std::string goldens;  ///< folder of testdata/media
  std::string model;
  std::string media;

  [[nodiscard]] std::string name() const { return goldens + (model == media ? " HF" : " GGUF"); }
};

std::vector<Pair> Pairs() {
  std::vector<Pair> pairs;
  for (const std::string name : {"mm-etype", "mm-unified", "mm-large"}) {
    pairs.push_back({name, name, name});
    pairs.push_back({name, "gguf/" + name + "-bf16.gguf",
                     "gguf/mmproj-" + name + (name == "mm-unified" ? "-bf16" : "-f16") + ".gguf"});
  }
  return pairs;
}

/// Pixels that have the size already.
MediaItemPtr ItemOf(const uint8_t* rgb, int width, int height, MediaKind kind) {
  MediaItem item;
  item.kind = kind;
  item.width = width;
  item.height = height;
  item.n_tokens = (width / 48) * (height / 48);
  item.pixels.assign(rgb, rgb + 3 * width * height);
  item.hash = HashOf(item);
  return std::make_shared<const MediaItem>(std::move(item));
}

/// Makes the items of a case from what the goldens name as its source.
class Sources {
 public:
  Sources(const std::string& folder, AudioForm form)
      : goldens_("media/" + folder + "/goldens.safetensors"),
        sounds_("media/audio/features.safetensors"),
        frames_("media/video/frames.safetensors"),
        form_(form) {}

  [[nodiscard]] const Tensors& goldens() const { return goldens_; }

  [[nodiscard]] std::vector<PlacedMedia> Read(const Json& one) const {
    std::vector<PlacedMedia> placed;
    const Json::Array& media = one["media"].items();
    int first_frame = -1;
    for (size_t n = 0; n < media.size(); ++n) {
      const bool is_frame = media[n]["kind"].as_string() == "video";
      first_frame = !is_frame ? -1 : first_frame < 0 ? static_cast<int>(n) : first_frame;
      const MediaItemPtr item = ReadOne(one["name"].as_string(), media[n], n,
                                        is_frame ? static_cast<size_t>(first_frame) : n);
      EXPECT_EQ(item->n_tokens, media[n]["tokens"].as_int());
      placed.push_back({static_cast<int>(media[n]["start"].as_int()), item});
    }
    return placed;
  }

 private:
  [[nodiscard]] MediaItemPtr ReadOne(const std::string& name, const Json& medium, size_t index,
                                     size_t stored_index) const {
    const std::string& source = medium["source"].as_string();
    const bool is_frame = medium["kind"].as_string() == "video";
    const MediaKind kind = is_frame ? MediaKind::kVideoFrame : MediaKind::kImage;
    if (medium["kind"].as_string() == "audio") {
      return ReadSound(source);
    }
    const auto height = static_cast<int>(medium["size"].items()[0].as_int());
    const auto width = static_cast<int>(medium["size"].items()[1].as_int());
    MediaItemPtr item;
    if (source.rfind("stored", 0) == 0) {
      const auto pixels =
          goldens_.Values<uint8_t>(name + "/media" + std::to_string(stored_index) + "_u8");
      const auto frame = static_cast<ptrdiff_t>(index - stored_index) * 3 * width * height;
      item = ItemOf(pixels.data() + frame, width, height, kind);
    } else if (source.rfind("video", 0) == 0) {
      constexpr int kWidth = 64;
      constexpr int kHeight = 48;
      const auto pixels = frames_.Values<uint8_t>("clip.mp4.frames4");
      Image frame{.width = kWidth, .height = kHeight, .rgb = {}};
      const auto begin =
          pixels.begin() + static_cast<ptrdiff_t>(index - stored_index) * 3 * kWidth * kHeight;
      frame.rgb.assign(begin, begin + ptrdiff_t{3} * kWidth * kHeight);
      item = ValueOrDie(PrepareImage(frame, kind, kVideoFrameTokens, "frame"));
    } else {
      const std::string bytes = ValueOrDie(ReadFile(TestdataPath("media/" + source), 1 << 24));
      const Image image = ValueOrDie(
          DecodeImage(std::as_bytes(std::span(bytes)), ImageReading::kAsReference, {}, source));
      item = ValueOrDie(PrepareImage(image, kind, 70, source));
    }
    EXPECT_EQ(item->width, width);
    EXPECT_EQ(item->height, height);
    return item;
  }

  /// "audio/features.safetensors NAME.waveform[:N]"
  [[nodiscard]] MediaItemPtr ReadSound(const std::string& source) const {
    const size_t space = source.find(' ');
    const size_t bracket = source.find('[');
    Waveform waveform{.samples =
                          sounds_.Values<float>(source.substr(space + 1, bracket - space - 1))};
    waveform.samples.resize(std::stoul(source.substr(bracket + 2)));
    return ValueOrDie(PrepareAudio(waveform, form_, LongAudio::kCut, source)).items.at(0);
  }

  Tensors goldens_;
  Tensors sounds_;
  Tensors frames_;
  AudioForm form_;
};

double LargestOverRms(std::span<const float> values, std::span<const float> golden) {
  EXPECT_EQ(values.size(), golden.size());
  double largest = 0;
  double squares = 0;
  for (size_t i = 0; i < std::min(values.size(), golden.size()); ++i) {
    largest = std::max(largest, std::fabs(double{values[i]} - golden[i]));
    squares += double{golden[i]} * golden[i];
  }
  return largest / std::sqrt(squares / static_cast<double>(golden.size()));
}

class MediaGoldens : public ::testing::TestWithParam<Pair> {};

TEST_P(MediaGoldens, FromPixelsAndSamplesToLogits) {
  const Checkpoint checkpoint = OpenOrDie(TestdataPath("media/" + GetParam().model));
  const auto media = ValueOrDie(MediaCheckpoint::Open(TestdataPath("media/" + GetParam().media)));
  ASSERT_TRUE(CheckFits(media, checkpoint).ok());
  ThreadPool pool(2);
  const ComputeContext context{&KernelsFor(BestIsa()), &pool};
  const auto encoders = ValueOrDie(MediaModel::Make(media, context));
  const Sources sources(GetParam().goldens, media.config().traits().audio_form);
  const Json cases = JsonOrDie(TestdataPath("media/" + GetParam().goldens + "/cases.json"));
  double worst_soft = 0;
  double worst_logits = 0;
  for (const Json& one : cases["cases"].items()) {
    const std::string& name = one["name"].as_string();
    SCOPED_TRACE(name);
    const auto n_embd = static_cast<size_t>(checkpoint.config().n_embd);
    std::vector<float> soft;
    std::vector<float> golden_soft;
    const auto embeddings = sources.goldens().Values<float>(name + "/embeddings");
    for (const PlacedMedia& placed : sources.Read(one)) {
      const MediaItem* item = placed.item.get();
      const auto rows = ValueOrDie(encoders->Encode({&item, 1}));
      soft.insert(soft.end(), rows.begin(), rows.end());
      const auto begin =
          embeddings.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(placed.begin) * n_embd);
      golden_soft.insert(golden_soft.end(), begin, begin + static_cast<ptrdiff_t>(rows.size()));
    }
    if (!soft.empty()) {
      worst_soft = std::max(worst_soft, LargestOverRms(soft, golden_soft));
    }
    Driver driver(checkpoint, {BestIsa(), 2, KvType::kF32, 256, &media});
    const std::vector<int32_t> types = Ints(one["mm_token_type_ids"]);
    const int s = driver.Add(Ints(one["ids"]), {types.begin(), types.end()}, soft);
    const auto logits = driver.Run({{s, driver.n_left(s), true}});
    std::vector<int32_t> rows = Ints(one["logits_rows"]);
    for (size_t i = 0; one["logits_rows"].is_string() && i < logits.size(); ++i) {
      rows.push_back(static_cast<int32_t>(i));
    }
    std::vector<float> chosen;
    for (const int32_t row : rows) {
      const auto& values = logits[static_cast<size_t>(row)];
      chosen.insert(chosen.end(), values.begin(), values.end());
    }
    worst_logits = std::max(
        worst_logits, LargestOverRms(chosen, sources.goldens().Values<float>(name + "/logits")));
    const std::vector<int32_t> argmax = Ints(one["argmax"]);
    ASSERT_EQ(argmax.size(), logits.size());
    for (size_t r = 0; r < logits.size(); ++r) {
      EXPECT_EQ(ArgMax(logits[r]), argmax[r]) << "row " << r;
    }
  }
  EXPECT_LT(worst_soft, kSoftTolerance);
  EXPECT_LT(worst_logits, kLogitTolerance);
  std::printf("%s: largest difference over rms: soft tokens %.1e, logits %.1e\n",
              GetParam().name().c_str(), worst_soft, worst_logits);
}

/// What an engine said to some requests.
class Told {
 public:
  void Take(const Event& event) {
    const std::lock_guard lock(mutex_);
    Reply& reply = replies_[event.request_id];
    if (event.kind == Event::Kind::kToken) {
      reply.tokens.push_back(event.token);
      reply.logprobs.push_back(event.logprob.logprob);
      return;
    }
    EXPECT_EQ(event.error, "");
    reply.n_cached = event.stats.n_cached;
    ++n_finished_;
    changed_.notify_all();
  }
  void WaitFor(size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return n_finished_ >= n; });
  }

  struct Reply {
    std::vector<int32_t> tokens;
    std::vector<float> logprobs;
    int n_cached = 0;
  };
  [[nodiscard]] Reply operator[](uint64_t id) { return replies_[id]; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Reply> replies_;
  size_t n_finished_ = 0;
};

struct EngineSetting {
  int max_rows;
  int max_sequences;
  int n_threads;
  bool reuses_prefixes;
  int64_t media_cache_bytes;
};

/// All requests at once; with several rounds, once more after all have ended.
std::vector<Told::Reply> Play(const Pair& pair, const std::vector<Request>& requests,
                              const EngineSetting& setting, int n_rounds) {
  const Checkpoint checkpoint = OpenOrDie(TestdataPath("media/" + pair.model));
  const auto media = ValueOrDie(MediaCheckpoint::Open(TestdataPath("media/" + pair.media)));
  RunnerOptions options;
  options.n_context = 256;
  options.n_sequences = setting.max_sequences;
  options.n_threads = setting.n_threads;
  options.cache_bytes = 1 << 22;
  options.kv_type = KvType::kF32;
  options.media = &media;
  EngineOptions engine_options;
  engine_options.max_rows = setting.max_rows;
  engine_options.max_rows_beside = setting.max_rows;
  engine_options.max_sequences = setting.max_sequences;
  engine_options.reuses_prefixes = setting.reuses_prefixes;
  engine_options.media_cache_bytes = setting.media_cache_bytes;
  engine_options.token_bytes = [](int32_t) { return std::string_view(); };
  Told told;
  std::vector<Told::Reply> replies;
  Engine engine(ValueOrDie(MakeRunner(checkpoint, options)), engine_options);
  uint64_t id = 0;
  for (int round = 0; round < n_rounds; ++round) {
    const uint64_t first = id;
    for (Request request : requests) {
      request.id = id++;
      const Status status =
          engine.Submit(request, [&told](const Event& event) { told.Take(event); });
      EXPECT_TRUE(status.ok()) << status.error().Message();
    }
    told.WaitFor(id);
    replies.clear();
    for (uint64_t n = first; n < id; ++n) {
      replies.push_back(told[n]);
    }
  }
  return replies;
}

/// Random weights draw placeholders of media too. The reference takes one without a picture for
/// padding, which no model that was trained would come to: what follows it is not compared.
std::vector<int32_t> UpToPlaceholder(std::vector<int32_t> tokens) {
  const auto is_placeholder = [](int32_t id) { return id == 19 || id == 22 || id == 23; };
  const auto first = std::find_if(tokens.begin(), tokens.end(), is_placeholder);
  tokens.erase(first == tokens.end() ? first : first + 1, tokens.end());
  return tokens;
}

TEST_P(MediaGoldens, GreedyTextWhateverTheChunksNeighboursAndReuse) {
  const auto media = ValueOrDie(MediaCheckpoint::Open(TestdataPath("media/" + GetParam().media)));
  const Sources sources(GetParam().goldens, media.config().traits().audio_form);
  const Json cases = JsonOrDie(TestdataPath("media/" + GetParam().goldens + "/cases.json"));
  std::vector<Request> requests;
  for (const Json& one : cases["cases"].items()) {
    Request request;
    request.prompt = Ints(one["ids"]);
    request.media = sources.Read(one);
    request.sampling.temperature = 0;
    request.max_tokens = 16;
    request.stops_on_repetition = false;
    request.n_top_logprobs = 0;
    requests.push_back(std::move(request));
  }
  const std::vector<Told::Reply> alone = Play(GetParam(), requests, {512, 1, 1, false, 1 << 20}, 1);
  for (size_t n = 0; n < alone.size(); ++n) {
    const Json& one = cases["cases"].items()[n];
    EXPECT_EQ(UpToPlaceholder(alone[n].tokens), UpToPlaceholder(Ints(one["greedy"])))
        << one["name"].as_string();
  }
  const auto expect_same = [&](const EngineSetting& setting, int n_rounds) {
    const std::vector<Told::Reply> replies = Play(GetParam(), requests, setting, n_rounds);
    int n_cached = 0;
    for (size_t n = 0; n < replies.size(); ++n) {
      EXPECT_EQ(replies[n].tokens, alone[n].tokens) << n;
      EXPECT_EQ(replies[n].logprobs, alone[n].logprobs) << n;
      n_cached += replies[n].n_cached;
    }
    return n_cached;
  };
  EXPECT_EQ(expect_same({512, 8, 2, false, 0}, 1), 0);
  EXPECT_EQ(expect_same({13, 5, 2, false, 1 << 12}, 1), 0);
  EXPECT_GT(expect_same({40, 4, 2, true, 1 << 20}, 2), 300);
}

INSTANTIATE_TEST_SUITE_P(Files, MediaGoldens, ::testing::ValuesIn(Pairs()), [](const auto& param) {
  std::string name = param.param.name();
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
});

}  // namespace
}  // namespace facet::testing
