// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/verbose.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewire {

int VerboseLevel() {
  static const int level = [] {
    const char* value = std::getenv("TILEWIRE_VERBOSE");
    return value == nullptr ? 0 : std::clamp(std::atoi(value), 0, 2);
  }();
  return level;
}

void WriteVerboseLine(absl::string_view event, const PrimitiveInfo& primitive,
                      absl::Duration duration) {
  std::string args;
  for (const ArgDesc& entry : primitive.args) {
    absl::StrAppend(&args, args.empty() ? "" : " ", ArgName(entry.arg), " ", entry.desc.ToString());
  }
  const std::string line = absl::StrFormat("tilewire,%s,%s,%s,%.3f ms\n", event, primitive.name,
                                           args, absl::ToDoubleMilliseconds(duration));
  // One write a line, so that lines of several threads do not mix.
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace tilewire
