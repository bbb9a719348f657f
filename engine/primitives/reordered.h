// SPDX-License-Identifier: Apache-2.0
//
// A row that runs another one between reorders. Where no fast row takes the layouts that a
// descriptor names, tensors are copied to layouts that one does take, and the result is copied
// back, in the scratchpad: a few reads and writes of each element cost less than the reference.
//
//   // In the table, after the rows that it may run and before the reference:
//   {kAnyCpu, {kReordered<MatmulDesc, MatmulImplementations>}}
#ifndef ENGINE_PRIMITIVES_REORDERED_H_
#define ENGINE_PRIMITIVES_REORDERED_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire {

// Runs a primitive that another one holds, with all of its arguments but the scratchpad.
void ExecuteStage(const Primitive& stage, ExecuteArgs& args, std::byte* scratchpad,
                  const threading::Team& team);

// `desc` with one or more of src, weights and dst left open (`any`) for the row inside, each way,
// the cheapest first: weights are often constants that were not packed. A bias is always open.
//   kInvalidArgument  as in MemoryDesc::CreateAny()
template <typename Desc>
absl::StatusOr<std::vector<Desc>> OpenTensors(const Desc& desc) {
  enum Open { kSrc = 1, kWeights = 2, kDst = 4 };
  const auto open = [](bool is_open, MemoryDesc* tensor) -> absl::Status {
    if (!is_open || tensor->IsZero()) return absl::OkStatus();
    ABSL_ASSIGN_OR_RETURN(*tensor, MemoryDesc::CreateAny(tensor->dims(), tensor->data_type()));
    return absl::OkStatus();
  };
  std::vector<Desc> ways;
  for (int tensors : {+kWeights, +kDst, +kSrc, kSrc | kDst, kSrc | kWeights, kWeights | kDst,
                      kSrc | kWeights | kDst}) {
    Desc& way = ways.emplace_back(desc);
    ABSL_RETURN_IF_ERROR(open(tensors & kSrc, &way.src));
    ABSL_RETURN_IF_ERROR(open(tensors & kWeights, &way.weights));
    ABSL_RETURN_IF_ERROR(open(tensors & kDst, &way.dst));
    ABSL_RETURN_IF_ERROR(open(true, &way.bias));
  }
  return ways;
}

// The row of `table` that runs inside: the first in the order of row_runs.h of those that take one
// of `ways` and are neither a reference nor one that itself runs another; with the earliest of
// `ways` that it takes. Rows come before ways, so that which row it is does not depend on the
// batch: a tensor of one image fits more layouts than one of several.
//   kUnimplemented  there is none
template <typename Desc>
absl::StatusOr<Candidate<Desc>> FindInnerRow(absl::Span<const Implementation<Desc>> table,
                                             const std::vector<Desc>& ways,
                                             const Request<Desc>& request) {
  bool has_other_types = false;
  VisitTensors(ways.front(), [&](const MemoryDesc& tensor) {
    has_other_types |= tensor.data_type() > DataType::kU8;
  });
  std::optional<Candidate<Desc>> found = FirstCandidate<Desc>(
      table, [&](const Implementation<Desc>& row) -> std::optional<Candidate<Desc>> {
        if (row.traits.runs_another || row.traits.is_reference ||
            !request.facts.isa.Includes(row.isa) || has_other_types ||
            !WhyNotWith(row, PropKindOf(request.desc), request.attributes).empty())
          return std::nullopt;
        for (const Desc& way : ways) {
          auto candidate = Ask(row, {way, request.attributes, row, request.machine});
          if (candidate.ok()) return *std::move(candidate);
        }
        return std::nullopt;
      });
  if (found) return *std::move(found);
  return Unimplemented("no other row takes the descriptor between reorders");
}

// The descriptor with every `any` replaced by what the row inside wants.
//   kUnimplemented  no row takes one of `ways`, or one takes the descriptor itself
// and the error in place of `ways`.
template <typename Desc>
absl::StatusOr<Desc> ResolveBetweenReorders(absl::Span<const Implementation<Desc>> table,
                                            const absl::StatusOr<std::vector<Desc>>& ways,
                                            const Request<Desc>& request) {
  ABSL_RETURN_IF_ERROR(ways.status());
  ABSL_ASSIGN_OR_RETURN(const Candidate<Desc> inner, FindInnerRow(table, *ways, request));
  Desc resolved = request.desc;
  bool differs = false;
  const auto take = [&differs](const MemoryDesc& wanted, MemoryDesc* tensor) {
    if (tensor->IsAny()) *tensor = wanted;
    differs |= *tensor != wanted;
  };
  take(inner.resolved.src, &resolved.src);
  take(inner.resolved.dst, &resolved.dst);
  if constexpr (requires { resolved.weights; }) {
    take(inner.resolved.weights, &resolved.weights);
    take(inner.resolved.bias, &resolved.bias);
  }
  if (differs) return resolved;
  return Unimplemented("has nothing to reorder for ", inner.row->name);
}

// A tensor whose first dimension is the batch, for its first images.
//   kInvalidArgument  as in MemoryDesc::SubMemory()
absl::StatusOr<MemoryDesc> FirstImages(const MemoryDesc& desc, int64_t images);

// Wraps `inner`, which computes what `info` describes from and to other layouts, and, if `images`
// is given, so many images of src and dst at a time, which divide the batch. `info` has no
// scratchpad and no code yet; info.isa is the limit for the reorders.
//   kUnimplemented      a tensor cannot be reordered
//   kResourceExhausted  memory
absl::StatusOr<std::unique_ptr<Primitive>> WrapInReorders(
    PrimitiveInfo info, std::shared_ptr<const Primitive> inner,
    std::optional<int64_t> images = std::nullopt);

// Creates from what ResolveBetweenReorders() returned.
//   kUnimplemented      the row inside refuses, or a tensor cannot be reordered
//   kResourceExhausted  memory
template <typename Desc>
absl::StatusOr<std::unique_ptr<Primitive>> CreateBetweenReorders(
    absl::Span<const Implementation<Desc>> table, const absl::StatusOr<std::vector<Desc>>& ways,
    const Request<Desc>& request) {
  ABSL_RETURN_IF_ERROR(ways.status());
  ABSL_ASSIGN_OR_RETURN(const Candidate<Desc> found, FindInnerRow(table, *ways, request));
  Attributes inside = request.attributes;
  inside.scratchpad_mode = ScratchpadMode::kUser;
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<Primitive> inner,
                        found.row->create({found.resolved, inside, *found.row, request.machine}));
  ABSL_RETURN_IF_ERROR(FinishCreation(inside, {}, inner.get()));
  return WrapInReorders(InfoOfPropagation(request), std::move(inner));
}

// A row that tries all of OpenTensors(), and its functions: another row of the table, between
// reorders of the tensors whose layouts none takes. It stands before the reference.
template <typename Desc, absl::Span<const Implementation<Desc>> (*table)()>
absl::StatusOr<Desc> ResolveOpened(const Request<Desc>& request) {
  return ResolveBetweenReorders(table(), OpenTensors(request.desc), request);
}
template <typename Desc, absl::Span<const Implementation<Desc>> (*table)()>
absl::StatusOr<std::unique_ptr<Primitive>> CreateOpened(const Request<Desc>& request) {
  return CreateBetweenReorders(table(), OpenTensors(request.desc), request);
}
template <typename Desc, absl::Span<const Implementation<Desc>> (*table)()>
inline constexpr RowKind<Desc> kReordered = {
    "reordered", ResolveOpened<Desc, table>, CreateOpened<Desc, table>, {.runs_another = true}};

// The same where rows run the gradients of primitives with weights, too.
template <typename Desc, absl::Span<const Implementation<Desc>> (*table)()>
inline constexpr RowKind<Desc> kReorderedBothWays = {
    "reordered",
    ResolveOpened<Desc, table>,
    CreateOpened<Desc, table>,
    {.runs_another = true, .takes_mask = true, .propagations = kForwardAndWeightedGradients}};

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_REORDERED_H_
