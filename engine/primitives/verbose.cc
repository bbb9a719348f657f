// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/verbose.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "engine/base/diagnostics.h"
#include "engine/base/line_writer.h"
#include "engine/cpu/isa.h"

namespace tilewire {
namespace {

// Replaces what would look like the end of the field or of the line, and escapes what a terminal
// would obey: names come from files.
std::string Field(absl::string_view text) {
  std::string field;
  for (const char c : absl::StrReplaceAll(text, {{",", ";"}, {"\n", " "}})) {
    absl::StrAppend(&field, absl::ascii_isprint(c) ? std::string(1, c)
                                                   : absl::CHexEscape(absl::string_view(&c, 1)));
  }
  return field;
}

void WriteFields(absl::string_view fields) {
  WriteLine(absl::StrCat("tilewire,",
                         absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::Now(), absl::UTCTimeZone()),
                         ",", fields, "\n"));
}

}  // namespace

int VerboseLevel() {
  const int level = ActiveDiagnostics().verbose;
  if (level > 0) {
    static const bool written = [level] {
      WriteFields(absl::StrCat("info,cpu ", cpu::IsaName(cpu::BestIsa()), ",verbose ", level));
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
  WriteFields(absl::StrFormat("%s,%s,%s,%s,%s,%s,%s,%.3f ms", event, primitive.name,
                              creation.prop_kind, Field(args), Field(creation.attributes),
                              Field(creation.problem), Field(VerboseNode::Current()),
                              absl::ToDoubleMilliseconds(duration)));
}

void WriteCreationLines(const PrimitiveInfo& primitive, bool hit, absl::Duration duration) {
  if (!hit) {
    for (const Refusal& refusal : primitive.creation.refusals) {
      WriteFields(absl::StrCat("create:refused,", refusal.name, ",", Field(refusal.reason)));
    }
  }
  for (const std::string& file : primitive.creation.dumps)
    WriteFields(absl::StrCat("create:dumped,", primitive.name, ",", file));
  WriteVerboseLine(hit ? "create:cache_hit" : "create:cache_miss", primitive, duration);
}

void WriteFailedCreation(PrimitiveKind kind, const absl::Status& status) {
  WriteFields(
      absl::StrCat("create:failed,", PrimitiveKindName(kind), ",", Field(status.message())));
}

void WriteStageLine(absl::string_view end, size_t steps, absl::Duration duration) {
  WriteFields(absl::StrFormat("plan:stage,%s,%d steps,%.3f ms", Field(end), steps,
                              absl::ToDoubleMilliseconds(duration)));
}

}  // namespace tilewire
