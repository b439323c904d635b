// SPDX-License-Identifier: Apache-2.0
#include "media/helper_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/bytes.h"

namespace facet {
namespace {

constexpr std::string_view kJobMark = "FMJ1";
constexpr size_t kTagBytes = 4;
constexpr uint32_t kMostTextBytes = 1024;  // of each text of FAIL
constexpr double kMostSeconds = 1e7;       // of a frame's time
constexpr int kLeastRate = 1000;           // of sound
constexpr int kMostRate = 768000;
constexpr int kLongestSide = 1 << 16;

Error Malformed(std::string found, std::string wanted) {
  return Refuse("", "facet-media answers " + std::move(found), std::move(wanted));
}

/// The four letters that begin a message.
struct Tag {
  std::array<char, kTagBytes> letters = {};

  [[nodiscard]] bool Is(std::string_view text) const {
    return std::string_view(letters.data(), letters.size()) == text;
  }
};

/// The fields of one message, read one after the other.
class MessageReader {
 public:
  explicit MessageReader(const ByteSource& source) : source_(source) {}

  /// The tag of the next message. FAIL is read to its end and comes back as the error it is.
  Result<Tag> ReadTag() {
    Tag tag;
    FACET_RETURN_IF_ERROR(source_(std::as_writable_bytes(std::span(tag.letters))));
    if (tag.Is("FAIL")) {
      FACET_ASSIGN(std::string found, Text());
      FACET_ASSIGN(std::string wanted, Text());
      return Refuse("", std::move(found), std::move(wanted));
    }
    return tag;
  }

  Status Expect(std::string_view wanted) {
    FACET_ASSIGN(const Tag tag, ReadTag());
    return tag.Is(wanted) ? Status() : UnknownTag(tag, wanted);
  }

  static Error UnknownTag(const Tag& tag, std::string_view wanted) {
    return Malformed(
        fmt::format("\"{}\"", OneLine(std::string(tag.letters.begin(), tag.letters.end()))),
        std::string(wanted));
  }

  template <Scalar T>
  Result<T> Read() {
    T value;
    FACET_RETURN_IF_ERROR(source_(std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }

 private:
  Result<std::string> Text() {
    FACET_ASSIGN(const auto n_bytes, Read<uint32_t>());
    if (n_bytes > kMostTextBytes) {
      return Malformed(fmt::format("a text of {} bytes", n_bytes),
                       fmt::format("at most {}", kMostTextBytes));
    }
    std::string text(n_bytes, '\0');
    FACET_RETURN_IF_ERROR(source_(std::as_writable_bytes(std::span(text))));
    return OneLine(text);
  }

  /// What the helper says goes to terminals and logs: printable ASCII only.
  static std::string OneLine(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return text;
  }

  const ByteSource& source_;
};

Result<VideoHead> ReadVideoHead(MessageReader& reader) {
  FACET_RETURN_IF_ERROR(reader.Expect("VIDE"));
  VideoHead head;
  FACET_ASSIGN(head.n_total, reader.Read<int64_t>());
  FACET_ASSIGN(head.rate, reader.Read<double>());
  FACET_ASSIGN(const auto has_sound, reader.Read<uint32_t>());
  head.has_sound = has_sound != 0;
  if (head.n_total < 1 || head.n_total > kMostFramesInFile) {
    return Malformed(fmt::format("{} frames in the file", head.n_total),
                     fmt::format("1 to {}", kMostFramesInFile));
  }
  return head;
}

/// `n_bytes_left` is what the frames may still take.
Result<FrameHead> ReadFrameHead(MessageReader& reader, const HelperJob& job, int64_t n_bytes_left) {
  FACET_RETURN_IF_ERROR(reader.Expect("FRAM"));
  FrameHead head;
  FACET_ASSIGN(head.index, reader.Read<int64_t>());
  FACET_ASSIGN(head.seconds, reader.Read<double>());
  FACET_ASSIGN(const auto width, reader.Read<uint32_t>());
  FACET_ASSIGN(const auto height, reader.Read<uint32_t>());
  if (!(head.seconds >= 0 && head.seconds <= kMostSeconds)) {
    return Malformed(fmt::format("a frame at {} s", head.seconds),
                     fmt::format("0 to {:.0f} s", kMostSeconds));
  }
  const auto n_pixels = static_cast<uint64_t>(width) * height;
  if (std::min(width, height) < 1 || std::max(width, height) > kLongestSide ||
      n_pixels > static_cast<uint64_t>(job.max_pixels)) {
    return Malformed(fmt::format("a frame of {} x {} pixels", width, height),
                     fmt::format("1 to {} pixels", job.max_pixels));
  }
  if (static_cast<int64_t>(n_pixels * 3) > n_bytes_left) {
    return Malformed("more bytes of frames", fmt::format("at most {}", job.max_bytes));
  }
  head.width = static_cast<int>(width);
  head.height = static_cast<int>(height);
  return head;
}

void AppendText(std::string& out, std::string_view text) {
  text = text.substr(0, kMostTextBytes);
  Append(out, static_cast<uint32_t>(text.size()));
  out += text;
}

}  // namespace

std::string WriteJob(const HelperJob& job) {
  std::string out(kJobMark);
  Append(out, static_cast<uint32_t>(job.task));
  Append(out, static_cast<uint32_t>(job.container));
  Append(out, static_cast<int32_t>(job.frames.n_frames));
  Append(out, job.frames.fps.value_or(0));
  Append(out, job.max_pixels);
  Append(out, job.max_bytes);
  Append(out, job.max_seconds);
  Append(out, static_cast<int32_t>(job.timeout_s));
  out.resize(kHelperJobBytes);
  return out;
}

Result<HelperJob> ReadJob(std::span<const std::byte> bytes) {
  ByteCursor cursor(bytes, "job");
  FACET_ASSIGN(const auto mark, cursor.Take(kTagBytes, "mark"));
  FACET_ASSIGN(const auto task, cursor.Read<uint32_t>("task"));
  FACET_ASSIGN(const auto container, cursor.Read<uint32_t>("container"));
  HelperJob job;
  FACET_ASSIGN(job.frames.n_frames, cursor.Read<int32_t>("frames"));
  FACET_ASSIGN(const auto fps, cursor.Read<double>("fps"));
  FACET_ASSIGN(job.max_pixels, cursor.Read<int64_t>("pixels"));
  FACET_ASSIGN(job.max_bytes, cursor.Read<int64_t>("bytes"));
  FACET_ASSIGN(job.max_seconds, cursor.Read<double>("seconds"));
  FACET_ASSIGN(job.timeout_s, cursor.Read<int32_t>("time limit"));
  if (AsText(mark) != kJobMark || task < 1 || task > 2 || container < 1 || container > 5 ||
      bytes.size() < kHelperJobBytes) {
    return Refuse("job", "a job of another version", std::string(kJobMark));
  }
  job.task = static_cast<HelperTask>(task);
  job.container = static_cast<Container>(container);
  if (fps > 0) {
    job.frames.fps = fps;
  }
  return job;
}

std::string VideoMessage(const VideoHead& head) {
  std::string out = "VIDE";
  Append(out, head.n_total);
  Append(out, head.rate);
  Append(out, static_cast<uint32_t>(head.has_sound ? 1 : 0));
  return out;
}

std::string FrameMessage(const FrameHead& head) {
  std::string out = "FRAM";
  Append(out, head.index);
  Append(out, head.seconds);
  Append(out, static_cast<uint32_t>(head.width));
  Append(out, static_cast<uint32_t>(head.height));
  return out;
}

std::string SoundMessage(int rate) {
  std::string out = "SOUN";
  Append(out, static_cast<uint32_t>(rate));
  return out;
}

std::string SamplesMessage(std::span<const float> samples) {
  std::string out = "PCMF";
  Append(out, static_cast<uint32_t>(samples.size()));
  out += AsText(std::as_bytes(samples));
  return out;
}

std::string DoneMessage() { return "DONE"; }

std::string FailMessage(const Error& error) {
  std::string out = "FAIL";
  AppendText(out, error.found);
  AppendText(out, error.wanted);
  return out;
}

Result<VideoFrames> ReadVideoAnswer(const ByteSource& source, const HelperJob& job,
                                    const FrameSink& sink) {
  MessageReader reader(source);
  FACET_ASSIGN(const VideoHead head, ReadVideoHead(reader));
  const std::vector<int64_t> wanted = ChooseFrames(head.n_total, head.rate, job.frames);
  VideoFrames video;
  video.has_sound = head.has_sound;
  int64_t n_bytes_left = job.max_bytes;
  for (const int64_t index : wanted) {
    FACET_ASSIGN(const FrameHead frame, ReadFrameHead(reader, job, n_bytes_left));
    if (frame.index != index) {
      return Malformed(fmt::format("frame {}", frame.index), fmt::format("frame {}", index));
    }
    Image image{.width = frame.width, .height = frame.height, .rgb = {}};
    image.rgb.resize(size_t{3} * static_cast<size_t>(frame.width) *
                     static_cast<size_t>(frame.height));
    FACET_RETURN_IF_ERROR(source(std::as_writable_bytes(std::span(image.rgb))));
    n_bytes_left -= static_cast<int64_t>(image.rgb.size());
    if (sink) {
      FACET_RETURN_IF_ERROR(sink(std::move(image), frame.seconds));
    } else {
      video.frames.push_back(std::move(image));
    }
    video.seconds.push_back(frame.seconds);
  }
  FACET_RETURN_IF_ERROR(reader.Expect("DONE"));
  return video;
}

Status ReadSoundAnswer(const ByteSource& source, const HelperJob& job, const SoundSink& sink) {
  MessageReader reader(source);
  FACET_RETURN_IF_ERROR(reader.Expect("SOUN"));
  FACET_ASSIGN(const auto rate, reader.Read<uint32_t>());
  if (rate < kLeastRate || rate > kMostRate) {
    return Malformed(fmt::format("{} samples a second", rate),
                     fmt::format("{} to {}", kLeastRate, kMostRate));
  }
  FACET_RETURN_IF_ERROR(sink.begin(static_cast<int>(rate)));
  const double most_samples = std::floor(job.max_seconds * rate);
  double n_samples = 0;
  std::vector<float> chunk;
  while (true) {
    FACET_ASSIGN(const Tag tag, reader.ReadTag());
    if (tag.Is("DONE")) {
      return {};
    }
    if (!tag.Is("PCMF")) {
      return MessageReader::UnknownTag(tag, "PCMF or DONE");
    }
    FACET_ASSIGN(const auto n_more, reader.Read<uint32_t>());
    if (n_more < 1 || n_more > kMostChunkSamples || n_samples + n_more > most_samples) {
      return Malformed(
          fmt::format("{} samples after {:.0f}", n_more, n_samples),
          fmt::format("1 to {} at a time, {:.0f} in all", kMostChunkSamples, most_samples));
    }
    n_samples += n_more;
    chunk.resize(n_more);
    FACET_RETURN_IF_ERROR(source(std::as_writable_bytes(std::span(chunk))));
    if (!std::all_of(chunk.begin(), chunk.end(), [](float x) { return std::isfinite(x); })) {
      return Malformed("samples that are no numbers", "finite numbers");
    }
    sink.add(chunk);
  }
}

}  // namespace facet
