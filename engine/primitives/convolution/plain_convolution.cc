// SPDX-License-Identifier: Apache-2.0
//
// The f32 convolution of plain tensors: another row of the table convolves in channel blocks, and
// src and dst are reordered to and from them in the scratchpad, a few images at a time. Reading
// and writing each element once more costs less than a plain layout costs the loops.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reordered.h"

namespace tilewire::convolution {
namespace {

using InnerConvolution = InnerRow<ConvolutionDesc>;

// What a row may take in place of a plain tensor. The depthwise row of nchw takes nothing else.
absl::StatusOr<MemoryDesc> InsteadOfPlain(const MemoryDesc& desc, uint8_t algorithm) {
  if (!desc.IsPlain()) return desc;
  if (algorithm != kDepthwiseNchw) return MemoryDesc::CreateAny(desc.dims(), desc.data_type());
  return MemoryDesc::CreatePattern(desc.dims(), desc.data_type(), PlainPattern(desc.rank()));
}

// Whether the row reads src about as fast as it would read channel blocks. The channels of an nchw
// pixel lie in as many pages, unless images are small, which takes up to twice as long. Pixels of
// nhwc that are multiples of kSetsBytes apart share one set of the first cache; a depthwise row
// still reads them faster than a reorder and the row do.
bool ReadsAsItIs(const ConvolutionDesc& desc, uint8_t algorithm) {
  constexpr int64_t kSetsBytes = 4096, kPageBytes = 4096;
  if (algorithm == kFirstLayer) return true;
  if (algorithm == kDepthwise) return HasNeighbours(desc.src);
  if (algorithm == kDepthwiseNchw) return HasPlainRows(desc.src);
  if (algorithm != kDirect || !desc.src.IsPlain()) return false;
  const Geometry geometry = GeometryOf(desc);
  if (!HasNeighbours(desc.src)) {
    return geometry.kernel == Spatial{1, 1, 1} &&
           desc.src.stride(1) <= kPageBytes / 2 / static_cast<int64_t>(sizeof(float));
  }
  const int64_t elements = kSetsBytes / static_cast<int64_t>(sizeof(float));
  return desc.src.stride(desc.src.rank() - 1) % elements * geometry.stride[2] % elements != 0;
}

// Whether nchw is worth a reorder of src to a depthwise convolution: its rows fill vectors, and dst
// is not the smaller one to reorder.
bool SuitsPlainRows(const ConvolutionDesc& desc) {
  constexpr int64_t kFewestPixels = 12;
  const Geometry geometry = GeometryOf(desc);
  return HasPlainRows(desc.dst) && geometry.out[2] >= kFewestPixels &&
         geometry.stride == Spatial{1, 1, 1};
}

// `desc` as a row is offered it: what the row does not read and write as it is is reordered.
absl::StatusOr<InnerConvolution> Offer(const ConvolutionDesc& desc, const Attributes& attributes,
                                       const Implementation<ConvolutionDesc>& row) {
  const uint8_t algorithm = row.traits.algorithm;
  const bool reads_as_it_is = ReadsAsItIs(desc, algorithm);
  if (algorithm == kDepthwiseNchw && !reads_as_it_is && !SuitsPlainRows(desc))
    return absl::UnimplementedError("is not worth a reorder to rows of neighbouring pixels");
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc any_src, InsteadOfPlain(desc.src, algorithm));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc any_dst, InsteadOfPlain(desc.dst, algorithm));
  const MemoryDesc& src = reads_as_it_is ? desc.src : any_src;
  ConvolutionDesc wanted = desc;
  absl::Status refusal;
  for (const auto& [from, to] : {std::pair{&src, &desc.dst},
                                 {&src, &any_dst},
                                 {&any_src, &desc.dst},
                                 {&any_src, &any_dst}}) {
    wanted.src = *from;
    wanted.dst = *to;
    absl::StatusOr<ConvolutionDesc> resolved = row.resolve({wanted, attributes, row});
    if (resolved.ok()) return InnerConvolution{&row, *std::move(resolved)};
    refusal = resolved.status();
  }
  return refusal;
}

// The best row that takes `desc` between reorders; each is an f32 row of the instruction set.
absl::StatusOr<InnerConvolution> FindRow(const ConvolutionDesc& desc, const Attributes& attributes,
                                         cpu::Isa isa) {
  for (const Implementation<ConvolutionDesc>& row : ConvolutionImplementations()) {
    if (row.isa != isa || row.traits.is_integer || row.traits.algorithm == kPlain ||
        attributes.precision < row.traits.precision)
      continue;
    absl::StatusOr<InnerConvolution> inner = Offer(desc, attributes, row);
    if (inner.ok()) return inner;
  }
  return absl::UnimplementedError("no other row takes the descriptor between reorders");
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
  if (!desc.src.IsPlain() && !desc.dst.IsPlain())
    return absl::UnimplementedError("is for a plain src or dst");
  if (desc.src.dim(0) == 0) return absl::UnimplementedError("takes no batch of 0");
  ABSL_ASSIGN_OR_RETURN(const InnerConvolution row,
                        FindRow(desc, request.attributes, request.facts.isa));
  ConvolutionDesc resolved = row.desc;
  if (desc.src.IsPlain()) resolved.src = desc.src;
  if (desc.dst.IsPlain()) resolved.dst = desc.dst;
  if (resolved.src == row.desc.src && resolved.dst == row.desc.dst)
    return absl::UnimplementedError(absl::StrCat("has nothing to reorder for ", row.row->name));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePlain(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc one, OfFirstImages(desc, 1));
  ABSL_ASSIGN_OR_RETURN(const InnerConvolution row,
                        FindRow(one, request.attributes, request.facts.isa));
  const int64_t images =
      ImagesAtOnce(desc.src.dim(0), row.desc.src.SizeBytes() / 2 + row.desc.dst.SizeBytes() / 2);
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc some, OfFirstImages(desc, images));
  ABSL_ASSIGN_OR_RETURN(const InnerConvolution inner,
                        FindRow(some, request.attributes, request.facts.isa));
  Attributes inside = request.attributes;
  inside.scratchpad_mode = ScratchpadMode::kUser;
  ABSL_ASSIGN_OR_RETURN(auto convolution,
                        CreateConvolution(inner.desc, inside,
                                          {.max_isa = request.facts.isa, .only = inner.row->name}));
  return WrapInReorders(InfoOf(request), std::move(convolution), images);
}

}  // namespace tilewire::convolution
