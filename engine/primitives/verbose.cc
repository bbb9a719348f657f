// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/verbose.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "engine/cpu/isa.h"

namespace tilewire {
namespace {

// One write per line, so that lines of several threads do not mix.
void Write(const std::string& line) { std::fwrite(line.data(), 1, line.size(), stderr); }

// Replaces what would look like the end of the field or of the line.
std::string Field(absl::string_view text) {
  return absl::StrReplaceAll(text, {{",", ";"}, {"\n", " "}});
}

}  // namespace

absl::StatusOr<int> ParseVerboseLevel(absl::string_view text) {
  int level = 0;
  if (text.empty() || (absl::SimpleAtoi(text, &level) && level >= 0 && level <= 2)) return level;
  return absl::InvalidArgumentError(
      absl::StrCat("TILEWIRE_VERBOSE: '", text, "' is none of 0, 1, 2"));
}

absl::StatusOr<int> VerboseLevelOfEnvironment() {
  const char* value = std::getenv("TILEWIRE_VERBOSE");
  return ParseVerboseLevel(value == nullptr ? "" : value);
}

int VerboseLevel() {
  static const int level = [] {
    const int asked = VerboseLevelOfEnvironment().value_or(0);
    if (asked > 0) {
      Write(absl::StrCat("tilewire,info,cpu ", cpu::IsaName(cpu::BestIsa()), ",verbose ", asked,
                         "\n"));
    }
    return asked;
  }();
  return level;
}

void WriteVerboseLine(absl::string_view event, const PrimitiveInfo& primitive,
                      absl::Duration duration) {
  std::string args;
  for (const ArgDesc& entry : primitive.args) {
    absl::StrAppend(&args, args.empty() ? "" : " ", ArgName(entry.arg), " ", entry.desc.ToString());
  }
  const CreationRecord& creation = primitive.creation;
  Write(absl::StrFormat("tilewire,%s,%s,%s,%s,%s,%s,%.3f ms\n", event, primitive.name,
                        creation.prop_kind, Field(args), Field(creation.attributes),
                        Field(creation.problem), absl::ToDoubleMilliseconds(duration)));
}

void WriteCreationLines(const PrimitiveInfo& primitive, bool hit, absl::Duration duration) {
  if (!hit) {
    for (const Refusal& refusal : primitive.creation.refusals) {
      Write(
          absl::StrFormat("tilewire,create:refused,%s,%s\n", refusal.name, Field(refusal.reason)));
    }
  }
  WriteVerboseLine(hit ? "create:cache_hit" : "create:cache_miss", primitive, duration);
}

void WriteFailedCreation(PrimitiveKind kind, const absl::Status& status) {
  Write(absl::StrFormat("tilewire,create:failed,%s,%s\n", PrimitiveKindName(kind),
                        Field(status.message())));
}

}  // namespace tilewire
