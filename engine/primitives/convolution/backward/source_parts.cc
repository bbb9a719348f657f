// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/source_parts.h"

#include <algorithm>
#include <utility>

#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_math.h"
#include "engine/base/range.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/cores.h"
#include "engine/primitives/convolution/direct/tiling.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reordered.h"
#include "engine/primitives/verbose.h"
#include "engine/primitives/weighted_gradients.h"
#include "engine/threading/slots.h"
#include "engine/threading/stop.h"

namespace tilewire::convolution {
namespace {

// Parts, all alike but for the last one.
class BackwardDataInParts final : public Primitive {
 public:
  // Steps in bytes, from each of the `count` parts that are alike to the next; `last`, which may be
  // null, comes after them, and knows where it begins.
  struct Parts {
    std::shared_ptr<const Primitive> whole, last;
    int64_t count = 0;
    int64_t weights_step = 0, diff_src_step = 0;
    int64_t slots = 1, slot_bytes = 0;  // of the scratchpad, for parts at the same time

    int64_t all() const { return count + (last == nullptr ? 0 : 1); }
  };

  BackwardDataInParts(PrimitiveInfo info, Parts parts, const PostOps& post_ops)
      : Primitive(std::move(info)), parts_(std::move(parts)), post_ops_(post_ops) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    if (SharesParts(team.threads())) {
      const absl::string_view node = VerboseNode::Current();
      const auto run = [&](int64_t part, int64_t slot) {
        const VerboseNode named(node);
        RunPart(part, args, scratchpad + slot * parts_.slot_bytes, threading::Team::Serial());
      };
      threading::ParallelForInSlots(team, parts_.all(), parts_.slots, run);
    } else {
      for (int64_t part = 0; part < parts_.all() && !threading::Stopped(); ++part)
        RunPart(part, args, scratchpad, team);
    }
    ApplyMask(post_ops_, Desc(kArgDiffSrc), First<const float>(args, kArgSrc1),
              First<float>(args, kArgDiffSrc), team);
  }

  // Whether each thread has parts of its own: what one has copied is then read from its own caches
  // alone. They have to keep all threads busy.
  bool SharesParts(int64_t threads) const {
    return threads > 1 && threads <= parts_.slots &&
           9 * parts_.all() >= 8 * threads * DivUp(parts_.all(), threads);
  }

  void RunPart(int64_t part, const ExecuteArgs& args, std::byte* scratchpad,
               const threading::Team& team) const {
    const bool is_last = part == parts_.count;
    const int64_t steps = is_last ? 0 : part;
    ExecuteArgs of_part;
    of_part.Set(kArgDiffDst, args.Find(kArgDiffDst));
    of_part.Set(kArgWeights, args.Get<std::byte>(kArgWeights) + steps * parts_.weights_step);
    of_part.Set(kArgDiffSrc, args.Get<std::byte>(kArgDiffSrc) + steps * parts_.diff_src_step);
    ExecuteStage(is_last ? *parts_.last : *parts_.whole, of_part, scratchpad, team);
  }

  const Parts parts_;
  const PostOps post_ops_;
};

constexpr int kChannels = 1;  // dimension of src and of weights
constexpr int64_t kMostSlots = 4;

absl::StatusOr<MemoryDesc> ChannelsOf(const MemoryDesc& tensor, const Range& channels) {
  Dims dims = tensor.dims(), offsets(dims.size(), 0);
  dims[kChannels] = channels.size;
  offsets[kChannels] = channels.begin;
  return tensor.SubMemory(dims, offsets);
}

// Bytes from the first channel to channel `channels`.
absl::StatusOr<int64_t> StepOf(const MemoryDesc& tensor, int64_t channels) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc rest,
                        ChannelsOf(tensor, {channels, tensor.dim(kChannels) - channels}));
  return (rest.offset0() - tensor.offset0()) * kFloatBytes;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePart(const Request<ConvolutionDesc>& request,
                                                      const Range& channels,
                                                      CreateGradient create) {
  ConvolutionDesc part = request.desc;
  part.algorithm = ConvolutionAlgorithm::kDirect;  // as that of the whole
  ABSL_ASSIGN_OR_RETURN(part.src, ChannelsOf(request.desc.src, channels));
  ABSL_ASSIGN_OR_RETURN(part.weights, ChannelsOf(request.desc.weights, channels));
  const Attributes inside = WithoutMask(request.attributes);
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<Primitive> created,
                        create({part, inside, request.facts, request.machine}));
  ABSL_RETURN_IF_ERROR(FinishCreation(inside, {}, created.get()));
  return created;
}

}  // namespace

int64_t ChannelsOfPart(const ConvolutionDesc& desc, const cpu::Machine& machine) {
  constexpr int64_t kFewest = 64;  // enough blocks for tiles, and a multiple of all blocks
  const Geometry geometry = GeometryOf(desc);
  const int64_t cache = machine.cache_bytes[1];
  const int64_t images = std::max<int64_t>(geometry.batch, 1);
  const int64_t of_image = DivUp(desc.dst.PaddedElementCount(), images) * kFloatBytes;
  const int64_t of_channel = desc.weights.PaddedElementCount() / geometry.ic * kFloatBytes;
  const bool is_small = of_channel * geometry.ic <= cache / 2;
  if (geometry.groups > 1 || desc.src.IsPlain() || desc.weights.IsPlain() || is_small ||
      of_image > cache / 4)
    return geometry.ic;
  const int64_t fitting = cache / 2 / of_channel / kFewest * kFewest;
  return std::min(geometry.ic, std::max(kFewest, fitting));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateInParts(const Request<ConvolutionDesc>& request,
                                                         int64_t channels, CreateGradient create) {
  const ConvolutionDesc& desc = request.desc;
  const int64_t all = desc.src.dim(kChannels), rest = all % channels;
  BackwardDataInParts::Parts parts;
  parts.count = all / channels;
  ABSL_ASSIGN_OR_RETURN(parts.weights_step, StepOf(desc.weights, channels));
  ABSL_ASSIGN_OR_RETURN(parts.diff_src_step, StepOf(desc.src, channels));
  ABSL_ASSIGN_OR_RETURN(parts.whole, CreatePart(request, {0, channels}, create));
  if (rest != 0) {
    ABSL_ASSIGN_OR_RETURN(parts.last, CreatePart(request, {all - rest, rest}, create));
  }
  PrimitiveInfo info = GradientInfoOf(request);
  for (const auto* part : {&parts.whole, &parts.last}) {
    if (*part == nullptr) continue;
    parts.slot_bytes = std::max(parts.slot_bytes, (*part)->info().scratchpad_bytes);
    info.code_bytes += (*part)->info().code_bytes;
  }
  parts.slot_bytes = RoundUp(parts.slot_bytes, AlignedBuffer::kAlignment);
  parts.slots = std::min<int64_t>({kMostSlots, cpu::GrantedCores(), parts.all()});
  info.scratchpad_bytes = parts.slots * parts.slot_bytes;
  info.traits.bits_depend_on_position = parts.whole->info().traits.bits_depend_on_position;
  return std::make_unique<BackwardDataInParts>(std::move(info), std::move(parts),
                                               request.attributes.post_ops);
}

}  // namespace tilewire::convolution
