// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/verbose.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "engine/base/diagnostics.h"
#include "engine/base/line_writer.h"
#include "engine/cpu/isa.h"

namespace tilewire {
namespace {

// Replaces what would look like the end of the field or of the line.
std::string Field(absl::string_view text) {
  return absl::StrReplaceAll(text, {{",", ";"}, {"\n", " "}});
}

}  // namespace

int VerboseLevel() {
  const int level = ActiveDiagnostics().verbose;
  if (level > 0) {
    static const bool written = [level] {
      WriteLine(absl::StrCat("tilewire,info,cpu ", cpu::IsaName(cpu::BestIsa()), ",verbose ", level,
                             "\n"));
      return true;
    }();
    (void)written;
  }
  return level;
}

void WriteVerboseLine(absl::string_view event, const PrimitiveInfo& primitive,
                      absl::Duration duration) {
  std::string args;
  for (const ArgDesc& entry : primitive.args) {
    absl::StrAppend(&args, args.empty() ? "" : " ", ArgName(entry.arg), " ", entry.desc.ToString());
  }
  const CreationRecord& creation = primitive.creation;
  WriteLine(absl::StrFormat("tilewire,%s,%s,%s,%s,%s,%s,%.3f ms\n", event, primitive.name,
                            creation.prop_kind, Field(args), Field(creation.attributes),
                            Field(creation.problem), absl::ToDoubleMilliseconds(duration)));
}

void WriteCreationLines(const PrimitiveInfo& primitive, bool hit, absl::Duration duration) {
  if (!hit) {
    for (const Refusal& refusal : primitive.creation.refusals) {
      WriteLine(
          absl::StrFormat("tilewire,create:refused,%s,%s\n", refusal.name, Field(refusal.reason)));
    }
  }
  for (const std::string& file : primitive.creation.dumps)
    WriteLine(absl::StrFormat("tilewire,create:dumped,%s,%s\n", primitive.name, file));
  WriteVerboseLine(hit ? "create:cache_hit" : "create:cache_miss", primitive, duration);
}

void WriteFailedCreation(PrimitiveKind kind, const absl::Status& status) {
  WriteLine(absl::StrFormat("tilewire,create:failed,%s,%s\n", PrimitiveKindName(kind),
                            Field(status.message())));
}

void WriteStageLine(absl::string_view end, size_t steps, absl::Duration duration) {
  WriteLine(absl::StrFormat("tilewire,plan:stage,%s,%d steps,%.3f ms\n", Field(end), steps,
                            absl::ToDoubleMilliseconds(duration)));
}

}  // namespace tilewire
