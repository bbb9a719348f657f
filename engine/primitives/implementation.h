// SPDX-License-Identifier: Apache-2.0
//
// The table of a primitive's implementations, best first. Dispatch, tests, benchmarks and the
// printed matrix all read the same table: an implementation that is not in it does not exist.
//
//   {{"sum/avx2_dense", cpu::Isa::kAvx2}, ResolveDense, CreateDense},
//   {{"sum/reference", cpu::Isa::kBaseline, {.is_reference = true}}, ResolveReference, ...},
#ifndef ENGINE_PRIMITIVES_IMPLEMENTATION_H_
#define ENGINE_PRIMITIVES_IMPLEMENTATION_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/isa.h"
#include "engine/primitives/primitive.h"
#include "engine/primitives/problem_text.h"

namespace tilewire {

struct CreateOptions {
  cpu::Isa max_isa = cpu::BestIsa();  // no implementation that needs more is tried
  absl::string_view only;             // if not empty: this implementation or none
  bool reference_only = false;        // the reference or none
};

// A row. Its functions get the row's facts, so that one function serves several instruction sets.
template <typename Desc>
struct Implementation : ImplementationFacts {
  // The descriptor with every `any` replaced by what this implementation wants, or kUnimplemented
  // with the reason for which it refuses. `desc` has been validated.
  absl::StatusOr<Desc> (*resolve)(const Desc& desc, const Attributes& attributes,
                                  const ImplementationFacts& facts);
  // Creates from what `resolve` returned. kResourceExhausted, or kUnimplemented for what only
  // generation shows.
  absl::StatusOr<std::unique_ptr<Primitive>> (*create)(const Desc& resolved,
                                                       const Attributes& attributes,
                                                       const ImplementationFacts& facts);
};

// kUnimplemented: "no implementation takes this descriptor; NAME: REASON; ..."
absl::Status NobodyTakes(const std::vector<Refusal>& refusals);

// The first implementation that takes the descriptor; its info() says why better ones did not.
//   kUnimplemented      none does: the message lists why each refused
//   kInvalidArgument    options.only names no implementation
//   kResourceExhausted  memory (code pages, library scratchpad)
template <typename Desc>
absl::StatusOr<std::shared_ptr<const Primitive>> CreateFirst(
    absl::Span<const Implementation<Desc>> table, const Desc& desc, const Attributes& attributes,
    const CreateOptions& options) {
  CreationRecord record{std::string(PropText(desc)), ProblemText(desc), "", {}};
  const auto refuse = [&record](absl::string_view name, absl::string_view reason) {
    record.refusals.push_back({std::string(name), std::string(reason)});
  };
  bool named = false;
  for (const Implementation<Desc>& row : table) {
    if (!options.only.empty() && row.name != options.only) continue;
    if (options.reference_only && !row.traits.is_reference) continue;
    named = true;
    if (!options.max_isa.Includes(row.isa)) {
      refuse(row.name, absl::StrCat("needs ", cpu::IsaName(row.isa)));
      continue;
    }
    if (attributes.post_ops.HasMaxPooling() && !row.traits.takes_max_pooling) {
      refuse(row.name, "takes no max pooling as a post-op");
      continue;
    }
    absl::StatusOr<Desc> resolved = row.resolve(desc, attributes, row);
    if (!resolved.ok()) {
      refuse(row.name, resolved.status().message());
      continue;
    }
    absl::StatusOr<std::unique_ptr<Primitive>> primitive = row.create(*resolved, attributes, row);
    if (primitive.ok()) {
      ABSL_RETURN_IF_ERROR(FinishCreation(attributes, std::move(record), primitive->get()));
      return std::shared_ptr<const Primitive>(*std::move(primitive));
    }
    if (!absl::IsUnimplemented(primitive.status())) return primitive.status();
    refuse(row.name, primitive.status().message());
  }
  if (!named)
    return absl::InvalidArgumentError(absl::StrCat("no implementation '", options.only, "'"));
  return NobodyTakes(record.refusals);
}

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_IMPLEMENTATION_H_
