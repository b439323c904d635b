// SPDX-License-Identifier: Apache-2.0
// Options of pictures, sound and video: what is given, how it is read, and the encoders.
#include "app/option_tables.h"
#include "media/video.h"

namespace facet {
namespace {

constexpr Command kRun = Command::kRun;
constexpr Command kServe = Command::kServe;
constexpr Command kTokenize = Command::kTokenize;
constexpr Command kInspect = Command::kInspect;
constexpr std::string_view kGroup = "Pictures, sound and video";

std::vector<OptionSpec> GivenMedia() {
  return {
      {.name = "--image",
       .placeholder = "FILE",
       .help = "picture that the prompt is about (JPEG, PNG, WebP, GIF, BMP); may be repeated. "
               "Media stand before the text, in the order given, or where the text has "
               "<|image|>, <|audio|> and <|video|>",
       .group = kGroup,
       .commands = {kRun, kTokenize},
       .target = &Options::media,
       .media_kind = MediaPartKind::kImage},
      {.name = "--audio",
       .placeholder = "FILE",
       .help = "sound that the prompt is about (WAV, FLAC, OGG, MP3; with facet-media also m4a); "
               "may be repeated",
       .group = kGroup,
       .commands = {kRun, kTokenize},
       .target = &Options::media,
       .media_kind = MediaPartKind::kAudio},
      {.name = "--video",
       .placeholder = "PATH",
       .help = "film that the prompt is about: a file (MP4, WebM, MOV, GIF; needs facet-media), or "
               "a folder whose pictures are its frames, by name, --video-fps of them a second; may "
               "be repeated",
       .group = kGroup,
       .commands = {kRun, kTokenize},
       .target = &Options::media,
       .media_kind = MediaPartKind::kVideo},
  };
}

std::vector<OptionSpec> Encoders() {
  return {
      {.name = "--mmproj",
       .aliases = {"-mm"},
       .key = "mmproj",
       .placeholder = "PATH",
       .otherwise = "mmproj*.gguf beside the model, if there is one",
       .help = "encoders of the model's pictures and sound: a .gguf file, a name that facet pull "
               "takes, or the model's Hugging Face directory",
       .group = kGroup,
       .commands = {kRun, kServe, kTokenize, kInspect},
       .target = &Options::mmproj},
      {.name = "--no-mmproj",
       .key = "no_mmproj",
       .help = "text only: take no encoders, also where some lie beside the model",
       .group = kGroup,
       .commands = {kRun, kServe, kTokenize},
       .target = &Options::no_mmproj},
  };
}

std::vector<OptionSpec> Reading() {
  return {
      {.name = "--image-tokens",
       .key = "image_tokens",
       .placeholder = "N",
       .otherwise = "the model's: 280, of the tiny one 70",
       .help = "most tokens of a picture: 70, 140, 280, 560 or 1120; more show finer detail and "
               "take longer",
       .group = kGroup,
       .commands = {kRun, kServe, kTokenize},
       .target = &Options::image_tokens,
       .check = {.choices = {"70", "140", "280", "560", "1120"}}},
      {.name = "--image-reading",
       .key = "image_reading",
       .placeholder = "HOW",
       .otherwise = "seen",
       .help = "seen: pictures as a viewer shows them, transparency over white; reference: as the "
               "model's own software reads them, which drops transparency",
       .group = kGroup,
       .commands = {kRun, kServe, kTokenize},
       .target = &Options::image_reading,
       .check = {.choices = {"seen", "reference"}}},
      {.name = "--long-audio",
       .key = "long_audio",
       .placeholder = "HOW",
       .otherwise = "cut",
       .help = "sound of more than 30 seconds, where the model hears no more at a time: cut (the "
               "first 30 s, which is told), split (one piece of 30 s after the other), or refuse",
       .group = kGroup,
       .commands = {kRun, kServe, kTokenize},
       .target = &Options::long_audio,
       .check = {.choices = {"cut", "split", "refuse"}}},
      {.name = "--video-frames",
       .key = "video_frames",
       .placeholder = "N",
       .otherwise = "32",
       .help = "most frames of a video, evenly from beginning to end",
       .group = kGroup,
       .commands = {kRun, kServe, kTokenize},
       .target = &Options::video_frames,
       .check = {.min = 1, .max = kMostVideoFrames}},
      {.name = "--video-fps",
       .key = "video_fps",
       .placeholder = "X",
       .help = "frames a second, at most --video-frames of them; of a folder, how many its "
               "pictures make (1)",
       .group = kGroup,
       .commands = {kRun, kServe, kTokenize},
       .target = &Options::video_fps,
       .check = {.above = 0, .max = 1000}},
      {.name = "--media-helper",
       .key = "media_helper",
       .placeholder = "PATH",
       .otherwise = "facet-media beside the program, else in PATH",
       .help = "program that decodes video and m4a, in a process that can reach neither files nor "
               "network",
       .group = kGroup,
       .commands = {kRun, kServe, kTokenize},
       .target = &Options::media_helper},
  };
}

std::vector<OptionSpec> Serving() {
  return {
      {.name = "--media-fetch",
       .key = "media_fetch",
       .help = "fetch pictures, sound and video that requests name by http or https URL, never "
               "from private addresses; without it they must be in the request",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::media_fetch},
      {.name = "--media-cache",
       .key = "media_cache",
       .placeholder = "MIB",
       .otherwise = "256",
       .help = "memory that keeps what was encoded, so that a picture which comes again costs "
               "nothing; 0: keep none",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::media_cache,
       .check = {.min = 0, .max = 1 << 20}},
  };
}

}  // namespace

std::vector<OptionSpec> MediaOptions() {
  std::vector<OptionSpec> all;
  for (auto part : {GivenMedia(), Encoders(), Reading(), Serving()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace facet
