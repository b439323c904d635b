// SPDX-License-Identifier: Apache-2.0
// Options of facet serve that no other command has.
#include "app/option_tables.h"

namespace facet {
namespace {

constexpr Command kServe = Command::kServe;

std::vector<OptionSpec> AccessOptions() {
  constexpr std::string_view kGroup = "Server";
  return {
      {.name = "--host",
       .key = "host",
       .placeholder = "ADDRESS",
       .otherwise = "127.0.0.1",
       .help = "address to listen on; others than this machine's own (0.0.0.0: all) need a key",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::host},
      {.name = "--port",
       .key = "port",
       .placeholder = "N",
       .otherwise = "8080",
       .help = "port to listen on; 0: any that is free, which is told",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::port,
       .check = {.min = 0, .max = 65535}},
      {.name = "--alias",
       .key = "alias",
       .placeholder = "NAME",
       .otherwise = "the name of the model's file",
       .help = "what clients call the model",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::alias},
      {.name = "--api-key",
       .key = "api_key",
       .placeholder = "KEY",
       .help = "only who sends this key is answered (Authorization: Bearer KEY, or x-api-key); may "
               "be repeated. Other users of the machine can read command lines: see --api-key-file",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::api_key},
      {.name = "--api-key-file",
       .key = "api_key_file",
       .placeholder = "FILE",
       .help = "file of keys, one a line; lines that begin with # are comments",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::api_key_file},
      {.name = "--insecure",
       .key = "insecure",
       .help = "listen on an address that others can reach without a key",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::insecure},
      {.name = "--cors",
       .key = "cors",
       .placeholder = "ORIGIN",
       .help =
           "let web pages of this origin (https://chat.example) ask; *: of any; may be repeated",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::cors},
      {.name = "--check",
       .help = "check options, model, template and port, tell the memory needed, and end",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::check},
  };
}

std::vector<OptionSpec> LimitOptions() {
  constexpr std::string_view kGroup = "Limits";
  return {
      {.name = "--max-queue",
       .key = "max_queue",
       .placeholder = "N",
       .otherwise = "256",
       .help = "requests that may wait for the model; more are refused with 503",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::max_queue,
       .check = {.min = 1, .max = 1 << 16}},
      {.name = "--queue-timeout",
       .key = "queue_timeout",
       .placeholder = "SECONDS",
       .otherwise = "300",
       .help = "a request that waits longer is refused; 0: never",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::queue_timeout,
       .check = {.min = 0, .max = 86400}},
      {.name = "--request-timeout",
       .key = "request_timeout",
       .placeholder = "SECONDS",
       .otherwise = "0: never",
       .help = "a reply that takes longer ends there, as one that is too long does",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::request_timeout,
       .check = {.min = 0, .max = 86400}},
      {.name = "--max-body",
       .key = "max_body",
       .placeholder = "MIB",
       .otherwise = "64",
       .help = "largest body of a request",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::max_body,
       .check = {.min = 1, .max = 1024}},
      {.name = "--shutdown-timeout",
       .key = "shutdown_timeout",
       .placeholder = "SECONDS",
       .otherwise = "30",
       .help = "on SIGTERM or Ctrl-C, replies may finish for so long; a second signal cuts them",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::shutdown_timeout,
       .check = {.min = 0, .max = 3600}},
  };
}

std::vector<OptionSpec> BatchingOptions() {
  constexpr std::string_view kGroup = "Batching and prefix cache";
  return {
      {.name = "--parallel",
       .key = "parallel",
       .placeholder = "N",
       .otherwise = "16",
       .help = "replies at a time; the memory holds min(N, 4) whole contexts, which short ones "
               "share; replies are the same with any number",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::parallel,
       .check = {.min = 1, .max = 256}},
      {.name = "--batch-rows",
       .key = "batch_rows",
       .placeholder = "N",
       .otherwise = "512",
       .help = "tokens of prompts that are computed at once",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::batch_rows,
       .check = {.min = 32, .max = 8192}},
      {.name = "--batch-rows-beside",
       .key = "batch_rows_beside",
       .placeholder = "N",
       .otherwise = "64",
       .help = "the same while others get replies: less lets them run smoothly, more lets the "
               "newcomer begin sooner",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::batch_rows_beside,
       .check = {.min = 1, .max = 8192}},
      {.name = "--cache-size",
       .key = "cache_size",
       .placeholder = "MIB",
       .otherwise = "512",
       .help = "memory that keeps what was computed of earlier prompts and replies, beside that "
               "of the running ones",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::cache_size,
       .check = {.min = 0, .max = 1 << 20}},
      {.name = "--cache-file",
       .key = "cache_file",
       .placeholder = "FILE",
       .help = "keep that over a restart: read at the start, written at the end",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::cache_file},
      {.name = "--no-prefix-cache",
       .key = "no_prefix_cache",
       .help = "compute every prompt anew; replies are the same",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::no_prefix_cache},
  };
}

std::vector<OptionSpec> LogOptions() {
  constexpr std::string_view kGroup = "Output";
  return {
      {.name = "--log-format",
       .key = "log_format",
       .placeholder = "FORMAT",
       .otherwise = "text",
       .help = "the line on standard error about each request: text, json, or none",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::log_format,
       .check = {.choices = {"text", "json", "none"}}},
      {.name = "--log-text",
       .key = "log_text",
       .help = "log prompts and replies too, which are not logged otherwise",
       .group = kGroup,
       .commands = {kServe},
       .target = &Options::log_text},
  };
}

}  // namespace

std::vector<OptionSpec> ServeOptions() {
  std::vector<OptionSpec> all;
  for (auto part : {AccessOptions(), BatchingOptions(), LimitOptions(), LogOptions()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace facet
