// SPDX-License-Identifier: Apache-2.0
// `facet convert`: a Hugging Face directory into a GGUF file.
#include <optional>

#include "app/commands.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "base/file.h"
#include "convert/convert.h"

namespace facet {

int RunConvert(const Options& options) {
  ConvertOptions convert;
  convert.in = options.words[0];
  convert.out = options.words[1];
  convert.outtype = options.outtype;
  if (!IsDirectory(convert.in)) {
    return Fail(Refuse(convert.in, FileExists(convert.in) ? "a file" : "nothing there",
                       "a Hugging Face directory"),
                kExitFailed);
  }
  if (!convert.out.ends_with(".gguf")) {
    return Fail(Refuse("facet convert", "\"" + convert.out + "\"", "a name that ends in .gguf"),
                kExitFailed);
  }
  std::optional<ProgressLine> progress("converting");
  convert.on_progress = [&progress](uint64_t done, uint64_t total) {
    progress->Update(done, total);
  };
  RemoveOnInterrupt(convert.out + ".part");  // where base/file.h writes what is not complete
  const Status status = ConvertToGguf(convert);
  RemoveOnInterrupt("");
  progress.reset();
  if (!status.ok()) {
    const bool is_of_output = status.error().where.starts_with(convert.out);
    return Fail(status.error(), is_of_output ? kExitFailed : kExitModelRefused);
  }
  return kExitDone;
}

}  // namespace facet
