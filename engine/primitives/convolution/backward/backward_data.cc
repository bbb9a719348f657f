// SPDX-License-Identifier: Apache-2.0
//
// The fast rows of the gradient of src, both around an operation on diff_dst whose weights are
// those of the convolution with input and output channels exchanged:
//
//   stride 1   a convolution whose taps come in reverse order, and whose padding is what a window
//              reaches less the convolution's: all of the table's rows serve it; and, for windows
//              of one tap with a stride, that of the pixels which are read (spread_pixels.h)
//   any        a deconvolution, whose tiles compute the outputs of each phase of the strides; and,
//              to the few channels of a first layer, one whose lanes are channels of diff_dst
//
// Weights are copied into the scratchpad in every run: an update has changed them.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/vector_unit.h"
#include "engine/memory/layout.h"
#include "engine/primitives/convolution/backward/exchanged_weights.h"
#include "engine/primitives/convolution/backward/source_parts.h"
#include "engine/primitives/convolution/backward/spread_pixels.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/convolution/winograd/winograd_cost.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/deconvolution/implementations.h"
#include "engine/primitives/reorder/reorder.h"
#include "engine/primitives/reordered.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire::convolution {
namespace {

bool IsGrouped(const ConvolutionDesc& desc) { return desc.weights.rank() > desc.src.rank(); }

absl::StatusOr<MemoryDesc> AnyExchangedWeights(const ConvolutionDesc& desc) {
  return MemoryDesc::CreateAny(ExchangedDims(desc.weights.dims(), IsGrouped(desc)), DataType::kF32);
}

// The operation on diff_dst, and the copies of weights before it. Immutable.
class BackwardData final : public Primitive {
 public:
  // `packing`, which may be null, brings what `exchange` copies to the weights of `inner`, and
  // `spread`, if there is one, what `inner` computes to diff_src; sizes in bytes of that copy, of
  // those weights, and of what is computed then.
  struct Stages {
    ExchangedWeights exchange;
    std::shared_ptr<const Primitive> packing, inner;
    std::optional<SpreadPixels> spread;
    int64_t copy_bytes = 0, weights_bytes = 0, dense_bytes = 0;
  };

  BackwardData(PrimitiveInfo info, Stages stages, const PostOps& post_ops)
      : Primitive(std::move(info)), stages_(std::move(stages)), post_ops_(post_ops) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    std::byte* const copy = scratchpad;
    std::byte* const packed = scratchpad + stages_.copy_bytes;
    std::byte* const dense = packed + stages_.weights_bytes;
    std::byte* const rest = dense + stages_.dense_bytes;
    const bool packs = stages_.packing != nullptr;
    stages_.exchange.Run(args.Get<const float>(kArgWeights), reinterpret_cast<float*>(copy), team);
    if (packs) {
      ExecuteArgs packing;
      packing.Set(kArgSrc, copy).Set(kArgDst, packed);
      ExecuteStage(*stages_.packing, packing, rest, team);
    }
    ExecuteArgs inside;
    inside.Set(kArgSrc, args.Find(kArgDiffDst)).Set(kArgWeights, packs ? packed : copy);
    inside.Set(kArgDst, stages_.spread ? dense : args.Find(kArgDiffSrc));
    ExecuteStage(*stages_.inner, inside, rest, team);
    if (stages_.spread)
      stages_.spread->Run(reinterpret_cast<const float*>(dense), First<float>(args, kArgDiffSrc),
                          team);
    ApplyMask(post_ops_, Desc(kArgDiffSrc), First<const float>(args, kArgSrc1),
              First<float>(args, kArgDiffSrc), team);
  }

  const Stages stages_;
  const PostOps post_ops_;
};

// `any` weights are in the layout in which the forward convolution wants them.
absl::StatusOr<MemoryDesc> OwnWeights(const ConvolutionDesc& desc, cpu::Isa isa) {
  if (!desc.weights.IsAny()) {
    if (desc.weights.format_kind() == FormatKind::kBlocked) return desc.weights;
    return RefuseLayout("weights", desc.weights);
  }
  const Geometry geometry = GeometryOf(desc);
  const int64_t lanes = VectorUnit::Of(isa).lanes();
  if (geometry.groups > 1 && (geometry.ic % lanes != 0 || geometry.oc % lanes != 0))
    return OrPlain(desc.weights);
  std::string pattern(PlainPattern(desc.weights.rank()));
  const int o = IsGrouped(desc) ? 1 : 0;
  const std::string oc(1, pattern[o]), ic(1, pattern[o + 1]);
  for (int d : {o, o + 1}) pattern[d] = static_cast<char>(pattern[d] - 'a' + 'A');
  return MemoryDesc::CreatePattern(desc.weights.dims(), DataType::kF32,
                                   absl::StrCat(pattern, lanes, ic, lanes, oc));
}

// Where the weights of the operation inside have a layout of their own: what is packed into it.
// Lanes of Winograd's are neighbours in the copy, too, if channels fill their blocks.
absl::StatusOr<MemoryDesc> CopyBeforePacking(const MemoryDesc& wanted) {
  if (wanted.format_kind() != FormatKind::kWinograd || wanted.winograd().planes > 0 ||
      wanted.dim(0) % wanted.winograd().lanes != 0)
    return RowMajorF32(wanted.dims());
  return MemoryDesc::CreatePattern(wanted.dims(), DataType::kF32,
                                   absl::StrCat("Abcd", wanted.winograd().lanes, "a"));
}

// Whether the operation inside computes the pixels of src that strides leave, without gaps: tiles
// by phases would end with each of their rows, and be written through the caches.
bool Spreads(const ConvolutionDesc& desc) { return LeavesPixels(GeometryOf(desc)); }

// The attributes of the operation inside: what follows it takes the post-ops that it does not get.
Attributes AttributesInside(const Request<ConvolutionDesc>& request) {
  Attributes inside = WithoutMask(request.attributes);
  if (Spreads(request.desc)) inside.post_ops = PostOps();
  return inside;
}

// To diff_src from the dense pixels that `inner` computes, if it does.
std::optional<SpreadPixels> SpreadAfter(const Request<ConvolutionDesc>& request,
                                        const Primitive& inner, bool flips) {
  const ConvolutionDesc& desc = request.desc;
  if (!flips || !Spreads(desc)) return std::nullopt;
  const Geometry geometry = GeometryOf(desc);
  const int lanes = VectorUnit::Of(request.facts.isa).lanes();
  return SpreadPixels(geometry, lanes, StridesOf(inner.Desc(kArgDst), lanes, geometry.ic),
                      StridesOf(desc.src, lanes, geometry.ic), request.attributes.post_ops.HasSum(),
                      desc.src.SizeBytes());
}

// The primitive around `inner`, which is created in full. `flips`: it is a convolution.
absl::StatusOr<std::unique_ptr<Primitive>> Wrap(const Request<ConvolutionDesc>& request,
                                                std::shared_ptr<const Primitive> inner,
                                                bool flips) {
  const ConvolutionDesc& desc = request.desc;
  const MemoryDesc& wanted = inner->Desc(kArgWeights);
  const bool is_opaque = wanted.format_kind() != FormatKind::kBlocked;
  MemoryDesc copy = wanted;
  if (is_opaque) {
    ABSL_ASSIGN_OR_RETURN(copy, CopyBeforePacking(wanted));
  }
  ABSL_ASSIGN_OR_RETURN(
      ExchangedWeights exchange,
      ExchangedWeights::Create(request.facts.name, VectorUnit::Of(request.facts.isa), desc.weights,
                               copy, IsGrouped(desc), flips));
  BackwardData::Stages stages{.exchange = std::move(exchange)};
  PrimitiveInfo info = GradientInfoOf(request);
  int64_t rest = inner->info().scratchpad_bytes;
  info.code_bytes = inner->info().code_bytes + stages.exchange.code_bytes();
  stages.copy_bytes = RoundUp(copy.SizeBytes(), AlignedBuffer::kAlignment);
  if (is_opaque) {
    Attributes attributes;
    attributes.scratchpad_mode = ScratchpadMode::kUser;
    ABSL_ASSIGN_OR_RETURN(stages.packing, CreateReorder({.src = copy, .dst = wanted}, attributes,
                                                        {.max_isa = request.facts.isa}));
    stages.weights_bytes = RoundUp(wanted.SizeBytes(), AlignedBuffer::kAlignment);
    rest = std::max(rest, stages.packing->info().scratchpad_bytes);
    info.code_bytes += stages.packing->info().code_bytes;
  }
  info.traits.bits_depend_on_position = inner->info().traits.bits_depend_on_position;
  stages.spread = SpreadAfter(request, *inner, flips);
  if (stages.spread)
    stages.dense_bytes = RoundUp(inner->Desc(kArgDst).SizeBytes(), AlignedBuffer::kAlignment);
  info.scratchpad_bytes = stages.copy_bytes + stages.weights_bytes + stages.dense_bytes + rest;
  stages.inner = std::move(inner);
  return std::make_unique<BackwardData>(std::move(info), std::move(stages),
                                        request.attributes.post_ops);
}

// The convolution of diff_dst.
absl::StatusOr<ConvolutionDesc> ConvolutionOf(const ConvolutionDesc& desc) {
  ConvolutionDesc inner = desc;
  inner.prop_kind = PropKind::kForwardInference;
  std::swap(inner.src, inner.dst);
  ABSL_ASSIGN_OR_RETURN(inner.weights, AnyExchangedWeights(desc));
  if (Spreads(desc)) {
    Dims dense = desc.dst.dims();
    dense[1] = desc.src.dim(1);
    ABSL_ASSIGN_OR_RETURN(inner.dst, MemoryDesc::CreateAny(dense, DataType::kF32));
    inner.strides = Dims(desc.strides.size(), 1);
    inner.padding_left = inner.padding_right = Dims(desc.strides.size(), 0);
    return inner;
  }
  const int first_tap = desc.weights.rank() - static_cast<int>(desc.strides.size());
  for (size_t i = 0; i < desc.strides.size(); ++i) {
    const int64_t reach =
        (desc.weights.dim(first_tap + static_cast<int>(i)) - 1) * (desc.dilations[i] + 1);
    inner.padding_left[i] = reach - desc.padding_left[i];
    inner.padding_right[i] = reach - desc.padding_right[i];
    if (desc.strides[i] != 1) return Unimplemented("is for a stride of 1");
    if (inner.padding_left[i] < 0 || inner.padding_right[i] < 0)
      return Unimplemented("takes no padding that windows do not reach over");
  }
  return inner;
}

// The row of the table for `inner` that adds up products one by one. Weights that products by
// planes would have split before stay f32: they are split part by part, for all images at once,
// while they are in a cache, which costs less than reading planes from memory.
absl::StatusOr<Candidate<ConvolutionDesc>> DirectConvolution(
    const Request<ConvolutionDesc>& request) {
  ConvolutionDesc inner = request.desc;
  const auto find = [&] {
    return FindInnerRow<ConvolutionDesc>(
        ConvolutionImplementations(), {inner},
        {inner, request.attributes, request.facts, request.machine});
  };
  inner.algorithm = ConvolutionAlgorithm::kDirect;
  ABSL_ASSIGN_OR_RETURN(Candidate<ConvolutionDesc> found, find());
  if (!request.facts.isa.Includes(cpu::Isa::kAmx)) return found;
  inner.weights = found.resolved.weights.Unsplit();
  return find();
}

// The facts with which the row inside is asked, without matrix tiles where vectors are faster, as
// tests/bench/figures/convolution.md has it: for few pixels, since products on tiles split an
// image's numbers again for every part of the weights; and for windows that Winograd's convolution
// takes, in which tiles gain less than splitting costs.
ImplementationFacts FactsInside(const Request<ConvolutionDesc>& request,
                                const ConvolutionDesc& inner) {
  constexpr int64_t kFewestPixels = 128;
  const Geometry geometry = GeometryOf(inner);
  const Spatial& out = geometry.out;
  const bool is_for_winograd = geometry.groups == 1 && geometry.kernel == Spatial{1, 3, 3} &&
                               geometry.tap_step == Spatial{1, 1, 1};
  ImplementationFacts facts = request.facts;
  if (facts.isa.Includes(cpu::Isa::kAmx) &&
      (is_for_winograd || out[0] * out[1] * out[2] < kFewestPixels))
    facts.isa = cpu::Isa::kAvx512Bf16;
  return facts;
}

// The row of the table that runs inside. It is asked for as one of inference, since the gradient
// takes F(4x4), too, which training refuses; the time that Winograd's weights take in every run,
// which costs of inference leave out, is added here.
absl::StatusOr<Candidate<ConvolutionDesc>> InnerConvolution(
    const Request<ConvolutionDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc inner, ConvolutionOf(request.desc));
  const Attributes inside = AttributesInside(request);
  const ImplementationFacts facts = FactsInside(request, inner);
  const Request<ConvolutionDesc> asked = {inner, inside, facts, request.machine};
  ABSL_ASSIGN_OR_RETURN(
      Candidate<ConvolutionDesc> found,
      FindInnerRow<ConvolutionDesc>(ConvolutionImplementations(), {inner}, asked));
  const MemoryDesc& weights = found.resolved.weights;
  const bool is_blocked = weights.format_kind() == FormatKind::kBlocked;
  if (inner.algorithm == ConvolutionAlgorithm::kWinograd ||
      (is_blocked && !facts.isa.Includes(cpu::Isa::kAmx)))
    return found;
  absl::StatusOr<Candidate<ConvolutionDesc>> direct = DirectConvolution(asked);
  if (weights.format_kind() != FormatKind::kWinograd) return direct;
  const double of_weights = WinogradWeightsCycles(weights.SizeBytes());
  if (direct.ok() && direct->Compared() < found.Compared() + of_weights) return direct;
  return found;
}

// The deconvolution of diff_dst. What is left of src after the last window gets padding, which may
// be negative: its driver asks for sizes alone.
absl::StatusOr<DeconvolutionDesc> DeconvolutionOf(const ConvolutionDesc& desc) {
  DeconvolutionDesc inner;
  inner.src = desc.dst;
  inner.dst = desc.src;
  ABSL_ASSIGN_OR_RETURN(inner.weights, AnyExchangedWeights(desc));
  inner.strides = desc.strides;
  inner.dilations = desc.dilations;
  inner.padding_left = desc.padding_left;
  inner.padding_right = desc.padding_right;
  return inner;
}

// The functions of a row of deconvolutions.
struct DeconvolutionRow {
  absl::StatusOr<DeconvolutionDesc> (*resolve)(const Request<DeconvolutionDesc>&);
  absl::StatusOr<std::unique_ptr<Primitive>> (*create)(const Request<DeconvolutionDesc>&);
};
constexpr DeconvolutionRow kByPhases = {deconvolution::ResolveDirect, deconvolution::CreateDirect};
constexpr DeconvolutionRow kFewOutputsOfSrc = {deconvolution::ResolveFewOutputs,
                                               deconvolution::CreateFewOutputs};

absl::StatusOr<DeconvolutionDesc> ResolveInside(const Request<ConvolutionDesc>& request,
                                                const DeconvolutionRow& row) {
  ABSL_ASSIGN_OR_RETURN(const DeconvolutionDesc inner, DeconvolutionOf(request.desc));
  const Attributes inside = WithoutMask(request.attributes);
  return row.resolve({inner, inside, request.facts, request.machine});
}

absl::StatusOr<ConvolutionDesc> ResolveAround(const Request<ConvolutionDesc>& request,
                                              const DeconvolutionRow& row) {
  ABSL_RETURN_IF_ERROR(RequireDirectF32(request.desc, request.attributes));
  ABSL_ASSIGN_OR_RETURN(const DeconvolutionDesc inner, ResolveInside(request, row));
  ConvolutionDesc resolved = request.desc;
  resolved.src = inner.dst;
  resolved.dst = inner.src;
  ABSL_ASSIGN_OR_RETURN(resolved.weights, OwnWeights(request.desc, request.facts.isa));
  ABSL_RETURN_IF_ERROR(RequireMaskable(resolved.src, request.attributes));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAround(const Request<ConvolutionDesc>& request,
                                                        const DeconvolutionRow& row) {
  ABSL_ASSIGN_OR_RETURN(const DeconvolutionDesc resolved, ResolveInside(request, row));
  const Attributes inside = WithoutMask(request.attributes);
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<Primitive> inner,
                        row.create({resolved, inside, request.facts, request.machine}));
  ABSL_RETURN_IF_ERROR(FinishCreation(inside, {}, inner.get()));
  return Wrap(request, std::move(inner), /*flips=*/false);
}

// diff_src in the layout that the convolution inside wants, or, where its pixels are spread, in
// blocks of the same lanes.
absl::StatusOr<MemoryDesc> DiffSrcOf(const Request<ConvolutionDesc>& request,
                                     const MemoryDesc& inside) {
  if (!Spreads(request.desc)) return inside;
  const int lanes = VectorUnit::Of(request.facts.isa).lanes();
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc diff_src,
                        OrPattern(request.desc.src, LayoutPattern(inside)));
  for (const MemoryDesc* tensor : {&inside, &diff_src}) {
    if (!IsChannelBlocked(*tensor, lanes)) return RefuseLayout("src", *tensor);
  }
  return diff_src;
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveBackwardData(const Request<ConvolutionDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireF32(request.desc.src, request.desc.weights, request.desc.dst));
  ABSL_ASSIGN_OR_RETURN(const Candidate<ConvolutionDesc> inner, InnerConvolution(request));
  ConvolutionDesc resolved = request.desc;
  ABSL_ASSIGN_OR_RETURN(resolved.src, DiffSrcOf(request, inner.resolved.dst));
  resolved.dst = inner.resolved.src;
  ABSL_ASSIGN_OR_RETURN(resolved.weights, OwnWeights(request.desc, request.facts.isa));
  ABSL_RETURN_IF_ERROR(RequireMaskable(resolved.src, request.attributes));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBackwardData(
    const Request<ConvolutionDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(const Candidate<ConvolutionDesc> found, InnerConvolution(request));
  const int64_t channels = ChannelsOfPart(request.desc, request.machine);
  const bool copies_weights = found.resolved.weights.format_kind() == FormatKind::kBlocked &&
                              !found.row->isa.Includes(cpu::Isa::kAmx);
  if (copies_weights && channels < GeometryOf(request.desc).ic)
    return CreateInParts(request, channels, CreateBackwardData);
  const Attributes inside = AttributesInside(request);
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<Primitive> inner,
                        found.row->create({found.resolved, inside, *found.row, request.machine}));
  ABSL_RETURN_IF_ERROR(FinishCreation(inside, {}, inner.get()));
  return Wrap(request, std::move(inner), /*flips=*/true);
}

absl::StatusOr<ConvolutionDesc> ResolveBackwardDataByPhases(
    const Request<ConvolutionDesc>& request) {
  return ResolveAround(request, kByPhases);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBackwardDataByPhases(
    const Request<ConvolutionDesc>& request) {
  const int64_t channels = ChannelsOfPart(request.desc, request.machine);
  if (channels < GeometryOf(request.desc).ic)
    return CreateInParts(request, channels, CreateBackwardDataByPhases);
  return CreateAround(request, kByPhases);
}

absl::StatusOr<ConvolutionDesc> ResolveBackwardDataFewOutputs(
    const Request<ConvolutionDesc>& request) {
  const int64_t channels = GeometryOf(request.desc).ic;
  const int64_t most = VectorUnit::Of(request.facts.isa).lanes() / 2;
  if (channels > most)
    return Unimplemented("takes up to ", most, " channels of src, not ", channels);
  return ResolveAround(request, kFewOutputsOfSrc);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBackwardDataFewOutputs(
    const Request<ConvolutionDesc>& request) {
  return CreateAround(request, kFewOutputsOfSrc);
}

}  // namespace tilewire::convolution
