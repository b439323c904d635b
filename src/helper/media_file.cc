// SPDX-License-Identifier: Apache-2.0
#include "helper/media_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "helper/whole_file.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/dict.h>
#include <libavutil/mem.h>
}

namespace facet::helper {
namespace {

constexpr int kBufferBytes = 1 << 16;
constexpr int kMostFailures = 32;  // one after the other, of a decoder

/// libavformat's name of the demuxer.
const char* DemuxerName(Container container) {
  switch (container) {
    case Container::kIsoMedia:
      return "mov";
    case Container::kMatroska:
      return "matroska";
    case Container::kAvi:
      return "avi";
    case Container::kGif:
      return "gif";
    case Container::kAdts:
      return "aac";
  }
  return "";
}

/// The decoders that may be used: what cameras, phones, browsers and editors write.
constexpr auto kDecoders = std::to_array<std::string_view>(
    {"h264",      "hevc",      "libdav1d",   "libaom-av1", "av1",       "vp9",       "vp8",
     "mpeg4",     "h263",      "mpeg2video", "mpeg1video", "mjpeg",     "prores",    "png",
     "rawvideo",  "theora",    "gif",        "aac",        "aac_latm",  "mp3float",  "mp3",
     "mp2float",  "mp2",       "opus",       "libopus",    "vorbis",    "flac",      "alac",
     "ac3",       "eac3",      "pcm_u8",     "pcm_s16le",  "pcm_s16be", "pcm_s24le", "pcm_s24be",
     "pcm_s32le", "pcm_s32be", "pcm_f32le",  "pcm_f32be",  "pcm_alaw",  "pcm_mulaw", "amrnb",
     "amrwb"});

std::string DecoderList() {
  std::string list;
  for (const std::string_view name : kDecoders) {
    list += list.empty() ? "" : ",";
    list += name;
  }
  return list;
}

int RefuseToOpen(AVFormatContext* /*context*/, AVIOContext** /*io*/, const char* /*url*/,
                 int /*flags*/, AVDictionary** /*options*/) {
  return AVERROR(EPERM);
}

Error NoMemory() { return Refuse("", "memory ran out", "a smaller file"); }

Error Damaged() {
  return Refuse("", "damaged, or not of the kind that its first bytes say", "a whole file");
}

/// Options that are handed to libav and freed with their owner.
struct Options {
  Options() = default;
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  ~Options() { av_dict_free(&entries); }
  void Set(const char* name, const std::string& value) {
    av_dict_set(&entries, name, value.c_str(), 0);
  }

  AVDictionary* entries = nullptr;
};

}  // namespace

void FreeLibav::operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
void FreeLibav::operator()(AVFormatContext* context) const { avformat_close_input(&context); }
void FreeLibav::operator()(AVFrame* frame) const { av_frame_free(&frame); }
void FreeLibav::operator()(AVPacket* packet) const { av_packet_free(&packet); }
void FreeLibav::operator()(AVIOContext* context) const {
  av_freep(&context->buffer);
  avio_context_free(&context);
}

int MediaFile::ReadBytes(void* file, uint8_t* out, int n_wanted) {
  auto& self = *static_cast<MediaFile*>(file);
  const auto n_left = static_cast<int64_t>(self.bytes_.size()) - self.position_;
  const int64_t n_bytes = std::min<int64_t>(n_wanted, n_left);
  if (n_bytes <= 0) {
    return AVERROR_EOF;
  }
  std::memcpy(out, self.bytes_.data() + self.position_, static_cast<size_t>(n_bytes));
  self.position_ += n_bytes;
  return static_cast<int>(n_bytes);
}

int64_t MediaFile::Seek(void* file, int64_t offset, int whence) {
  auto& self = *static_cast<MediaFile*>(file);
  const auto size = static_cast<int64_t>(self.bytes_.size());
  int64_t base = 0;
  switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE:
      return size;
    case SEEK_SET:
      break;
    case SEEK_CUR:
      base = self.position_;
      break;
    case SEEK_END:
      base = size;
      break;
    default:
      return AVERROR(EINVAL);
  }
  if (offset < -base || offset > size - base) {
    return AVERROR(EINVAL);
  }
  self.position_ = base + offset;
  return self.position_;
}

Result<std::unique_ptr<MediaFile>> MediaFile::Open(std::span<const std::byte> bytes,
                                                   Container container) {
  FACET_RETURN_IF_ERROR(CheckWholeFile(bytes, container));
  std::unique_ptr<MediaFile> file(new MediaFile(bytes));
  file->packet_.reset(av_packet_alloc());
  auto* buffer = static_cast<uint8_t*>(av_malloc(kBufferBytes));
  file->io_.reset(
      avio_alloc_context(buffer, kBufferBytes, 0, file.get(), &ReadBytes, nullptr, &Seek));
  AVFormatContext* format = avformat_alloc_context();
  if (buffer == nullptr || file->packet_ == nullptr || file->io_ == nullptr || format == nullptr) {
    return NoMemory();
  }
  format->pb = file->io_.get();
  format->io_open = &RefuseToOpen;
  const AVInputFormat* demuxer = av_find_input_format(DemuxerName(container));
  if (demuxer == nullptr) {
    return Refuse("", "libavformat without this kind of file", "a complete libavformat");
  }
  Options options;
  options.Set("format_whitelist", demuxer->name);
  options.Set("codec_whitelist", DecoderList());
  options.Set("protocol_whitelist", "none");
  const int result = avformat_open_input(&format, "", demuxer, &options.entries);
  if (result < 0) {  // it has freed the context
    return result == AVERROR(ENOMEM) ? NoMemory() : Damaged();
  }
  file->format_.reset(format);
  if (avformat_find_stream_info(format, nullptr) < 0) {
    return Damaged();
  }
  return file;
}

const AVStream* MediaFile::BestVideo() const {
  const int index = av_find_best_stream(format_.get(), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  const AVStream* stream = index < 0 ? nullptr : format_->streams[index];
  const bool is_cover =
      stream != nullptr && (stream->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0;
  return is_cover ? nullptr : stream;
}

const AVStream* MediaFile::BestSound() const {
  const int index = av_find_best_stream(format_.get(), AVMEDIA_TYPE_AUDIO, -1, -1, nullptr, 0);
  return index < 0 ? nullptr : format_->streams[index];
}

void MediaFile::Select(const AVStream& stream) {
  selected_ = stream.index;
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    format_->streams[i]->discard = AVDISCARD_ALL;
  }
  format_->streams[selected_]->discard = AVDISCARD_DEFAULT;
}

const AVPacket* MediaFile::ReadPacket() {
  do {
    av_packet_unref(packet_.get());
    if (const int result = av_read_frame(format_.get(), packet_.get()); result < 0) {
      is_cut_ = is_cut_ || result != AVERROR_EOF;
      return nullptr;
    }
    is_cut_ = is_cut_ || (packet_->flags & AV_PKT_FLAG_CORRUPT) != 0;
  } while (packet_->stream_index != selected_);
  return packet_.get();
}

Status MediaFile::CheckWhole() const {
  return is_cut_ ? Refuse("", "a file that ends too early, or is damaged within", "a whole file")
                 : Status();
}

Result<Decoder> Decoder::Open(const AVStream& stream, int64_t max_pixels) {
  const AVCodecParameters& parameters = *stream.codecpar;
  const AVCodec* codec = avcodec_find_decoder(parameters.codec_id);
  if (codec == nullptr ||
      std::find(kDecoders.begin(), kDecoders.end(), codec->name) == kDecoders.end()) {
    return Refuse("", std::string("a track in ") + avcodec_get_name(parameters.codec_id),
                  "H.264, HEVC, AV1, VP9, VP8, MPEG-4, MJPEG or GIF; AAC, Opus, MP3 or Vorbis");
  }
  Decoder decoder;
  decoder.context_.reset(avcodec_alloc_context3(codec));
  decoder.frame_.reset(av_frame_alloc());
  AVCodecContext* context = decoder.context_.get();
  if (context == nullptr || decoder.frame_ == nullptr) {
    return NoMemory();
  }
  if (avcodec_parameters_to_context(context, &parameters) < 0) {
    return Damaged();
  }
  context->pkt_timebase = stream.time_base;
  context->max_pixels = max_pixels;
  context->thread_count = 1;  // the sandbox has no threads
  if (avcodec_open2(context, codec, nullptr) < 0) {
    return Damaged();
  }
  return decoder;
}

void Decoder::Send(const AVPacket* packet) { (void)avcodec_send_packet(context_.get(), packet); }

const AVFrame* Decoder::Receive() {
  // A frame that cannot be decoded does not hide those behind it; a decoder that only fails ends.
  for (int n_failed = 0; n_failed < kMostFailures; ++n_failed) {
    const int result = avcodec_receive_frame(context_.get(), frame_.get());
    if (result == 0) {
      return frame_.get();
    }
    if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) {
      return nullptr;
    }
  }
  return nullptr;
}

void Decoder::Flush() { avcodec_flush_buffers(context_.get()); }

}  // namespace facet::helper
