// SPDX-License-Identifier: Apache-2.0
//
// The f32 convolution of plain tensors: another row of the table convolves in channel blocks, and
// src and dst are reordered to and from them in the scratchpad, a few images at a time. Reading
// and writing each element once more costs less than a plain layout costs the loops.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/convolution/direct_layouts.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reorder/reorder.h"

namespace tilewire::convolution {
namespace {

using PrimitivePtr = std::shared_ptr<const Primitive>;

// The row that convolves, and what it resolves the descriptor to.
struct InnerRow {
  ImplementationFacts facts;
  ConvolutionDesc desc;
};

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
absl::StatusOr<InnerRow> Offer(const ConvolutionDesc& desc, const Attributes& attributes,
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
    absl::StatusOr<ConvolutionDesc> resolved = row.resolve(wanted, attributes, row);
    if (resolved.ok()) return InnerRow{row, *std::move(resolved)};
    refusal = resolved.status();
  }
  return refusal;
}

// The best row that takes `desc` between reorders; each is an f32 row of the instruction set.
absl::StatusOr<InnerRow> FindInnerRow(const ConvolutionDesc& desc, const Attributes& attributes,
                                      cpu::Isa isa) {
  for (const Implementation<ConvolutionDesc>& row : ConvolutionImplementations()) {
    if (row.isa != isa || row.traits.is_integer || row.traits.algorithm == kPlain ||
        attributes.precision < row.traits.precision)
      continue;
    absl::StatusOr<InnerRow> inner = Offer(desc, attributes, row);
    if (inner.ok()) return inner;
  }
  return absl::UnimplementedError("no other row takes the descriptor between reorders");
}

// `desc` for its first images.
absl::StatusOr<MemoryDesc> FirstImages(const MemoryDesc& desc, int64_t images) {
  Dims dims = desc.dims();
  dims[0] = images;
  return desc.SubMemory(dims, Dims(dims.size(), 0));
}

absl::StatusOr<ConvolutionDesc> OfFirstImages(ConvolutionDesc desc, int64_t images) {
  ABSL_ASSIGN_OR_RETURN(desc.src, FirstImages(desc.src, images));
  ABSL_ASSIGN_OR_RETURN(desc.dst, FirstImages(desc.dst, images));
  return desc;
}

// From a tensor of the caller's to the one that the row takes, or back; nothing where the caller's
// is taken as it is.
absl::StatusOr<PrimitivePtr> ReorderUnlessSame(const MemoryDesc& from, const MemoryDesc& to,
                                               cpu::Isa isa) {
  if (from == to) return PrimitivePtr();
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  return CreateReorder({.src = from, .dst = to}, attributes, {.max_isa = isa});
}

struct Stages {
  PrimitivePtr src_in, dst_in;  // dst_in: what a sum post-op adds
  PrimitivePtr convolution;
  PrimitivePtr dst_out;
};

// From the start of the scratchpad, in bytes: src and dst in blocks, then what the stages need.
struct Places {
  int64_t dst = 0, stages = 0, bytes = 0;
};

absl::StatusOr<Places> PlacesOf(const Stages& stages) {
  constexpr int64_t kCacheLine = 64;
  Places places;
  int64_t most = 0;
  for (const PrimitivePtr& stage :
       {stages.src_in, stages.dst_in, stages.convolution, stages.dst_out}) {
    if (stage != nullptr) most = std::max(most, stage->info().scratchpad_bytes);
  }
  const int64_t src = stages.src_in == nullptr ? 0 : stages.convolution->Desc(kArgSrc).SizeBytes();
  const int64_t dst = stages.dst_out == nullptr ? 0 : stages.convolution->Desc(kArgDst).SizeBytes();
  const std::optional<int64_t> tensors = CheckedAdd(src, dst);
  const std::optional<int64_t> all = tensors ? CheckedAdd(*tensors, most) : std::nullopt;
  if (!all || !CheckedAdd(*all, 2 * kCacheLine))
    return absl::ResourceExhaustedError("the scratchpad for channel blocks is too large");
  places.dst = RoundUp(src, kCacheLine);
  places.stages = places.dst + RoundUp(dst, kCacheLine);
  places.bytes = places.stages + most;
  return places;
}

// Immutable.
class PlainConvolution final : public Primitive {
 public:
  PlainConvolution(PrimitiveInfo info, const ConvolutionDesc& desc, int64_t images, Stages stages,
                   const Places& places)
      : Primitive(std::move(info)),
        stages_(std::move(stages)),
        places_(places),
        turns_(desc.src.dim(0) / images),
        src_step_(images * desc.src.stride(0) * static_cast<int64_t>(sizeof(float))),
        dst_step_(images * desc.dst.stride(0) * static_cast<int64_t>(sizeof(float))) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    for (int64_t turn = 0; turn < turns_; ++turn) {
      const std::byte* src = args.Get<const std::byte>(kArgSrc) + turn * src_step_;
      std::byte* dst = args.Get<std::byte>(kArgDst) + turn * dst_step_;
      const std::byte* from = stages_.src_in == nullptr ? src : scratchpad;
      std::byte* to = stages_.dst_out == nullptr ? dst : scratchpad + places_.dst;
      Move(stages_.src_in, src, scratchpad, scratchpad, team);
      Move(stages_.dst_in, dst, to, scratchpad, team);
      ExecuteArgs convolution = args;
      convolution.Set(kArgSrc, from).Set(kArgDst, to);
      Execute(*stages_.convolution, convolution, scratchpad, team);
      Move(stages_.dst_out, to, dst, scratchpad, team);
    }
  }

  void Move(const PrimitivePtr& reorder, const std::byte* from, std::byte* to,
            std::byte* scratchpad, const threading::Team& team) const {
    if (reorder == nullptr) return;
    ExecuteArgs args;
    args.Set(kArgSrc, from).Set(kArgDst, to);
    Execute(*reorder, args, scratchpad, team);
  }

  void Execute(const Primitive& stage, ExecuteArgs& args, std::byte* scratchpad,
               const threading::Team& team) const {
    args.Set(kArgScratchpad, scratchpad + places_.stages);
    (void)stage.Execute(args, team);  // has all its arguments, and so cannot fail
  }

  const Stages stages_;
  const Places places_;
  const int64_t turns_, src_step_, dst_step_;  // steps: bytes
};

absl::StatusOr<Stages> CreateStages(const ConvolutionDesc& desc, const Attributes& attributes,
                                    cpu::Isa isa) {
  ABSL_ASSIGN_OR_RETURN(const InnerRow row, FindInnerRow(desc, attributes, isa));
  Attributes inside = attributes;
  inside.scratchpad_mode = ScratchpadMode::kUser;
  Stages stages;
  ABSL_ASSIGN_OR_RETURN(
      stages.convolution,
      CreateConvolution(row.desc, inside, {.max_isa = isa, .only = row.facts.name}));
  ABSL_ASSIGN_OR_RETURN(stages.src_in, ReorderUnlessSame(desc.src, row.desc.src, isa));
  ABSL_ASSIGN_OR_RETURN(stages.dst_out, ReorderUnlessSame(row.desc.dst, desc.dst, isa));
  if (attributes.post_ops.HasSum()) {
    ABSL_ASSIGN_OR_RETURN(stages.dst_in, ReorderUnlessSame(desc.dst, row.desc.dst, isa));
  }
  return stages;
}

int64_t CodeBytes(const Stages& stages) {
  int64_t bytes = 0;
  for (const PrimitivePtr& stage :
       {stages.src_in, stages.dst_in, stages.convolution, stages.dst_out}) {
    if (stage != nullptr) bytes += stage->info().code_bytes;
  }
  return bytes;
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolvePlain(const ConvolutionDesc& desc,
                                             const Attributes& attributes,
                                             const ImplementationFacts& facts) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.dst, desc.bias));
  if (!desc.src.IsPlain() && !desc.dst.IsPlain())
    return absl::UnimplementedError("is for a plain src or dst");
  if (desc.src.dim(0) == 0) return absl::UnimplementedError("takes no batch of 0");
  ABSL_ASSIGN_OR_RETURN(const InnerRow row, FindInnerRow(desc, attributes, facts.isa));
  ConvolutionDesc resolved = row.desc;
  if (desc.src.IsPlain()) resolved.src = desc.src;
  if (desc.dst.IsPlain()) resolved.dst = desc.dst;
  if (resolved.src == row.desc.src && resolved.dst == row.desc.dst)
    return absl::UnimplementedError(absl::StrCat("has nothing to reorder for ", row.facts.name));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePlain(const ConvolutionDesc& desc,
                                                       const Attributes& attributes,
                                                       const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc one, OfFirstImages(desc, 1));
  ABSL_ASSIGN_OR_RETURN(const InnerRow row, FindInnerRow(one, attributes, facts.isa));
  const int64_t images =
      ImagesAtOnce(desc.src.dim(0), row.desc.src.SizeBytes() / 2 + row.desc.dst.SizeBytes() / 2);
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc some, OfFirstImages(desc, images));
  ABSL_ASSIGN_OR_RETURN(Stages stages, CreateStages(some, attributes, facts.isa));
  ABSL_ASSIGN_OR_RETURN(const Places places, PlacesOf(stages));
  PrimitiveInfo info = InfoOf(desc, attributes, facts);
  info.code_bytes = CodeBytes(stages);
  info.scratchpad_bytes = places.bytes;
  return std::make_unique<PlainConvolution>(std::move(info), desc, images, std::move(stages),
                                            places);
}

}  // namespace tilewire::convolution
