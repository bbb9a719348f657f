// SPDX-License-Identifier: Apache-2.0
//
// The end of a primitive's creation and its executions, which count and report (verbose.h).
#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/primitive.h"
#include "engine/primitives/verbose.h"

namespace tilewire {
namespace {

double Elements(const MemoryDesc& desc) { return static_cast<double>(desc.ElementCount()); }

// The tensor, or the gradient of its shape that stands in its place backward.
const MemoryDesc& TensorOrGradient(const Primitive& primitive, int arg, int gradient) {
  const MemoryDesc& tensor = primitive.Desc(arg);
  return tensor.IsZero() ? primitive.Desc(gradient) : tensor;
}
const MemoryDesc& SrcOf(const Primitive& primitive) {
  return TensorOrGradient(primitive, kArgSrc, kArgDiffSrc);
}
const MemoryDesc& DstOf(const Primitive& primitive) {
  return TensorOrGradient(primitive, kArgDst, kArgDiffDst);
}

// Each weight is multiplied once per image and pixel of the tensor that it sweeps over.
double WeightsTimesPixels(const Primitive& primitive, const MemoryDesc& swept) {
  if (swept.ElementCount() == 0) return 0;
  return Elements(TensorOrGradient(primitive, kArgWeights, kArgDiffWeights)) *
         (swept.ElementCount() / swept.dim(1));
}

double ProductsOf(const Primitive& primitive, const MemoryDesc& dst) {
  switch (primitive.kind()) {
    case PrimitiveKind::kConvolution:
    case PrimitiveKind::kInnerProduct: {
      constexpr int64_t kWindow = MaxPoolingPostOp::kSize * MaxPoolingPostOp::kSize;
      return WeightsTimesPixels(primitive, dst) *
             (primitive.info().pools_destination ? kWindow : 1);
    }
    case PrimitiveKind::kDeconvolution:
      return WeightsTimesPixels(primitive, SrcOf(primitive));
    case PrimitiveKind::kMatmul:
      return Elements(dst) * SrcOf(primitive).dim(dst.rank() - 1);
    case PrimitiveKind::kRnn:  // each weight once per step of each sequence
      return (Elements(primitive.Desc(kArgWeights)) + Elements(primitive.Desc(kArgWeightsIter))) *
             dst.dim(0) * dst.dim(1);
    case PrimitiveKind::kAttention: {  // scores and dst, which is not empty
      const MemoryDesc& keys = primitive.Desc(kArgMultipleSrc + 1);
      return Elements(dst) / dst.dim(3) * keys.dim(2) * (keys.dim(3) + dst.dim(3));
    }
    default:
      return 0;
  }
}

// Multiplications and additions of a convolution, deconvolution, inner product or matrix product,
// and of the products of a recurrent network, as its definition counts them (products with padding
// included, whatever the algorithm saves), backward one gradient's; 0 for other primitives. Exact
// below 2^53.
int64_t OperationCount(const Primitive& primitive) {
  const MemoryDesc& dst = DstOf(primitive);
  if (dst.IsZero() || dst.ElementCount() == 0) return 0;
  constexpr double kMost = int64_t{1} << 62;
  return static_cast<int64_t>(std::min(2 * ProductsOf(primitive, dst), kMost));
}

constexpr uintptr_t kAlignmentMask = AlignedBuffer::kAlignment - 1;

}  // namespace

absl::Status Primitive::Execute(const ExecuteArgs& args, const threading::Team& team) const {
  for (const ArgDesc& entry : info_.args) {
    if (args.Find(entry.arg) == nullptr && entry.desc.SizeBytes() != 0) {
      return InvalidArgument(name(), ": ", ArgName(entry.arg), " is missing");
    }
  }
  // In library mode the scratchpad is the primitive's own, and one thread at a time executes it.
  auto* scratchpad = const_cast<std::byte*>(library_scratchpad_.data());
  if (info_.scratchpad_mode == ScratchpadMode::kUser && info_.scratchpad_bytes > 0) {
    scratchpad = args.Get<std::byte>(kArgScratchpad);
    if (scratchpad == nullptr) {
      return InvalidArgument(name(), ": scratchpad is missing");
    }
    if ((reinterpret_cast<uintptr_t>(scratchpad) & kAlignmentMask) != 0) {
      return InvalidArgument(name(), ": scratchpad is not on a 64-byte boundary");
    }
  }
  ABSL_RETURN_IF_ERROR(CheckElements(args, team));
  if (VerboseLevel() == 0) {
    Run(args, scratchpad, team);
    return absl::OkStatus();
  }
  const absl::Time start = absl::Now();
  Run(args, scratchpad, team);
  WriteVerboseLine("execute", info_, absl::Now() - start);
  return absl::OkStatus();
}

absl::Status FinishCreation(const Attributes& attributes, CreationRecord record,
                            Primitive* primitive) {
  primitive->info_.reads_destination = attributes.post_ops.HasSum();
  primitive->info_.pools_destination = attributes.post_ops.HasMaxPooling();
  primitive->info_.operations = OperationCount(*primitive);
  primitive->info_.creation = std::move(record);
  primitive->info_.creation.attributes = attributes.ToString();
  if (primitive->info_.scratchpad_mode != ScratchpadMode::kLibrary) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(primitive->library_scratchpad_,
                        AlignedBuffer::Allocate(primitive->info_.scratchpad_bytes));
  return absl::OkStatus();
}

}  // namespace tilewire
