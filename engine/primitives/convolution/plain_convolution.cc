// SPDX-License-Identifier: Apache-2.0
//
// The f32 convolution of plain tensors: another row of the table convolves in channel blocks, and
// src and dst are reordered to and from them in the scratchpad, a few images at a time. Reading
// and writing each element once more costs less than a plain layout costs the loops.
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reordered.h"

namespace tilewire::convolution {
namespace {

using InnerConvolution = Candidate<ConvolutionDesc>;

absl::StatusOr<MemoryDesc> InsteadOfPlain(const MemoryDesc& desc) {
  if (!desc.IsPlain()) return desc;
  return MemoryDesc::CreateAny(desc.dims(), desc.data_type());
}

// Whether a plain src is read by the row as it lies: about as fast as channel blocks, or, by a
// depthwise row, faster than a reorder and the row would.
bool ReadsAsItIs(const ConvolutionDesc& desc, uint8_t algorithm) {
  if (!desc.src.IsPlain()) return false;
  if (algorithm == kFirstLayer) return true;
  if (algorithm == kDepthwise) return HasNeighbours(desc.src);
  return algorithm == kDirect && IsReadAsFastAsBlocks(desc);
}

// `desc` as a row is offered it: what the row does not read and write as it is is reordered.
absl::StatusOr<InnerConvolution> Offer(const Request<ConvolutionDesc>& request,
                                       const Implementation<ConvolutionDesc>& row) {
  const ConvolutionDesc& desc = request.desc;
  const bool reads_as_it_is = ReadsAsItIs(desc, row.traits.algorithm);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc any_src, InsteadOfPlain(desc.src));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc any_dst, InsteadOfPlain(desc.dst));
  const MemoryDesc& src = reads_as_it_is ? desc.src : any_src;
  ConvolutionDesc wanted = desc;
  absl::Status refusal;
  for (const auto& [from, to] : {std::pair{&src, &desc.dst},
                                 {&src, &any_dst},
                                 {&any_src, &desc.dst},
                                 {&any_src, &any_dst}}) {
    wanted.src = *from;
    wanted.dst = *to;
    absl::StatusOr<InnerConvolution> inner =
        Ask(row, {wanted, request.attributes, row, request.machine});
    if (inner.ok()) return inner;
    refusal = inner.status();
  }
  return refusal;
}

// The best row that takes the descriptor between reorders, in the order of row_runs.h; each is an
// f32 row of the instruction set.
absl::StatusOr<InnerConvolution> FindRow(const Request<ConvolutionDesc>& request) {
  std::optional<InnerConvolution> found = FirstCandidate<ConvolutionDesc>(
      ConvolutionImplementations(),
      [&](const Implementation<ConvolutionDesc>& row) -> std::optional<InnerConvolution> {
        if (row.isa != request.facts.isa || row.traits.is_integer ||
            row.traits.algorithm == kPlain || request.attributes.precision < row.traits.precision)
          return std::nullopt;
        absl::StatusOr<InnerConvolution> inner = Offer(request, row);
        return inner.ok() ? std::optional(*std::move(inner)) : std::nullopt;
      });
  if (found) return *std::move(found);
  return Unimplemented("no other row takes the descriptor between reorders");
}

absl::StatusOr<ConvolutionDesc> OfFirstImages(ConvolutionDesc desc, int64_t images) {
  ABSL_ASSIGN_OR_RETURN(desc.src, FirstImages(desc.src, images));
  ABSL_ASSIGN_OR_RETURN(desc.dst, FirstImages(desc.dst, images));
  return desc;
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolvePlain(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.dst, desc.bias));
  if (!desc.src.IsPlain() && !desc.dst.IsPlain()) return Unimplemented("is for a plain src or dst");
  if (desc.src.dim(0) == 0) return Unimplemented("takes no batch of 0");
  ABSL_ASSIGN_OR_RETURN(const InnerConvolution row, FindRow(request));
  ConvolutionDesc resolved = row.resolved;
  if (desc.src.IsPlain()) resolved.src = desc.src;
  if (desc.dst.IsPlain()) resolved.dst = desc.dst;
  if (resolved.src == row.resolved.src && resolved.dst == row.resolved.dst)
    return Unimplemented("has nothing to reorder for ", row.row->name);
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePlain(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc one, OfFirstImages(desc, 1));
  ABSL_ASSIGN_OR_RETURN(const InnerConvolution row, FindRow(request.With(one)));
  const int64_t images = ImagesAtOnce(
      desc.src.dim(0), row.resolved.src.SizeBytes() / 2 + row.resolved.dst.SizeBytes() / 2);
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc some, OfFirstImages(desc, images));
  ABSL_ASSIGN_OR_RETURN(const InnerConvolution inner, FindRow(request.With(some)));
  Attributes inside = request.attributes;
  inside.scratchpad_mode = ScratchpadMode::kUser;
  ABSL_ASSIGN_OR_RETURN(auto convolution, CreateConvolution(inner.resolved, inside,
                                                            {.max_isa = request.facts.isa,
                                                             .only = inner.row->name,
                                                             .machine = request.machine}));
  return WrapInReorders(InfoOf(request), std::move(convolution), images);
}

// The row inside, with its handicap. Copies are left out: they stay in cache, an image or a few at
// a time, and rows that read plain tensors lose as much on them, which their costs leave out, too.
double CostPlain(const Request<ConvolutionDesc>& resolved) {
  const absl::StatusOr<InnerConvolution> inner = FindRow(resolved);
  return inner.ok() ? inner->Compared() : std::numeric_limits<double>::infinity();
}

}  // namespace tilewire::convolution
