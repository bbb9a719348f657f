// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/implementation.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

struct Reason {
  bool by_descriptor = false;
  std::vector<absl::string_view> rows;
};

// The names of rows; how many they are where many never looked at the descriptor.
std::string RowsText(const Reason& reason) {
  constexpr size_t kMostNamed = 8;
  if (reason.by_descriptor || reason.rows.size() <= kMostNamed)
    return absl::StrJoin(reason.rows, ", ");
  return absl::StrCat(reason.rows.size(), " implementations");
}

// Reasons that fewest rows share come first: they tell most of the descriptor, and clients may cut
// a long message. Rows that never looked at the descriptor come last.
absl::Status NoneTakes(const std::vector<Refusal>& refusals) {
  std::map<absl::string_view, Reason> found;
  for (const Refusal& refusal : refusals) {
    Reason& reason = found[refusal.reason];
    reason.by_descriptor |= refusal.by_descriptor;
    reason.rows.push_back(refusal.name);
  }
  std::vector<std::pair<absl::string_view, Reason>> reasons(found.begin(), found.end());
  absl::c_stable_sort(reasons, [](const auto& a, const auto& b) {
    const auto rank = [](const Reason& reason) {
      return std::make_pair(!reason.by_descriptor, reason.rows.size());
    };
    return rank(a.second) < rank(b.second);
  });
  std::string message = "no implementation takes this descriptor";
  for (const auto& [text, reason] : reasons)
    absl::StrAppend(&message, "; ", RowsText(reason), ": ", text);
  return Unimplemented(message);
}

// "1,234,567"
std::string InThousands(int64_t number) {
  if (number < 1000) return absl::StrCat(number);
  return absl::StrCat(InThousands(number / 1000), ",", absl::Dec(number % 1000, absl::kZeroPad3));
}

std::string CyclesText(double cycles) {
  return InThousands(static_cast<int64_t>(std::min(cycles, 1e18)));
}

}  // namespace

std::string WhyNotWith(const ImplementationFacts& row, PropKind prop_kind,
                       const Attributes& attributes) {
  if (!row.traits.propagations.Has(prop_kind))
    return absl::StrCat("does not run ", PropKindName(prop_kind));
  if (attributes.precision < row.traits.precision)
    return absl::StrCat("needs the precision ", PrecisionName(row.traits.precision));
  if (attributes.post_ops.HasMaxPooling() && !row.traits.takes_max_pooling)
    return "takes no max pooling as a post-op";
  if (attributes.post_ops.Slopes() != nullptr && !row.traits.takes_prelu)
    return "takes no prelu as a post-op";
  if (attributes.post_ops.Mask() != nullptr && !row.traits.takes_mask)
    return "takes no mask as a post-op";
  return "";
}

bool RowSearch::Admits(const ImplementationFacts& row) {
  if (!options_.only.empty() && row.name != options_.only) return false;
  if (options_.reference_only && !row.traits.is_reference) return false;
  named_ = true;
  if (!options_.max_isa.Includes(row.isa)) {
    Refuse(row, absl::StrCat("needs ", cpu::IsaName(row.isa)));
    return false;
  }
  if (has_other_types_ && row.isa != cpu::Isa::kBaseline && !row.traits.takes_all_types) {
    Refuse(row, "knows the types up to u8 only");
    return false;
  }
  const std::string reason = WhyNotWith(row, prop_kind_, attributes_);
  if (!reason.empty()) {
    Refuse(row, reason);
    return false;
  }
  return true;
}

void RowSearch::Refuse(const ImplementationFacts& row, absl::string_view reason,
                       bool by_descriptor) {
  record_.refusals.push_back({std::string(row.name), std::string(reason), by_descriptor});
}

void RowSearch::RefuseSlower(const ImplementationFacts& row, double cycles) {
  std::string reason = absl::StrCat("comes after ", last_);
  if (cycles > 0) {
    const std::string counted =
        row.traits.handicap == 1 ? "" : absl::StrCat(" (counted ", row.traits.handicap, " times)");
    reason = absl::StrCat("estimated ", CyclesText(cycles), " cycles", counted, ", ", last_, " ",
                          CyclesText(record_.cycles));
  }
  Refuse(row, reason, /*by_descriptor=*/true);
  record_.refusals.back().cycles = cycles;
}

bool RowSearch::Ends(const ImplementationFacts& row, double cycles,
                     absl::StatusOr<std::unique_ptr<Primitive>> created) {
  if (absl::IsUnimplemented(created.status())) {
    Refuse(row, created.status().message(), /*by_descriptor=*/true);
    return false;
  }
  error_ = created.status();
  if (created.ok()) primitive_ = *std::move(created);
  last_ = row.name;
  record_.cycles = cycles;
  return true;
}

absl::StatusOr<std::shared_ptr<const Primitive>> RowSearch::Result() && {
  ABSL_RETURN_IF_ERROR(error_);
  if (primitive_ != nullptr) {
    record_.dumps = dumps_.files();
    ABSL_RETURN_IF_ERROR(FinishCreation(attributes_, std::move(record_), primitive_.get()));
    return std::shared_ptr<const Primitive>(std::move(primitive_));
  }
  if (!named_) return InvalidArgument("no implementation '", options_.only, "'");
  return NoneTakes(record_.refusals);
}

}  // namespace tilewire
