// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one row after the other, in double.
#include <cmath>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layer_normalization/implementations.h"
#include "engine/primitives/layout.h"

namespace tilewire::layer_normalization {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const LayerNormalizationDesc& desc)
      : Primitive(std::move(info)),
        desc_(desc),
        axis_(desc.src.rank() - 1),
        size_(desc.src.dim(axis_)),
        rows_(desc.src.dims()),
        src_(desc.src),
        dst_(desc.dst) {
    rows_[axis_] = size_ == 0 ? 0 : 1;
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    // One piece: denormals are flushed as everywhere.
    team.ParallelFor(1, [&](int64_t) { RunAll(args); });
    ZeroPadding(desc_.dst, args.Find(kArgDst));
  }

  void RunAll(const ExecuteArgs& args) const {
    int64_t row = 0;
    ForEachIndex(rows_, [&](const Dims& index) {
      RunRow(args, row++, args.Get<const float>(kArgSrc) + src_.Offset(index),
             args.Get<float>(kArgDst) + dst_.Offset(index));
    });
  }

  void RunRow(const ExecuteArgs& args, int64_t row, const float* src, float* dst) const {
    double mean = 0, variance = 0;
    if (desc_.use_global_stats) {
      mean = args.Get<const float>(kArgMean)[row];
      variance = args.Get<const float>(kArgVariance)[row];
    } else {
      const double count = static_cast<double>(size_);
      for (int64_t c = 0; c < size_; ++c) mean += src[src_.At(axis_, c)];
      mean /= count;
      for (int64_t c = 0; c < size_; ++c) {
        const double difference = src[src_.At(axis_, c)] - mean;
        variance += difference * difference;
      }
      variance /= count;
    }
    const float* scale_shift = desc_.use_scale_shift ? args.Get<const float>(kArgWeights) : nullptr;
    for (int64_t c = 0; c < size_; ++c) {
      const double normal = (src[src_.At(axis_, c)] - mean) / std::sqrt(variance + desc_.epsilon);
      dst[dst_.At(axis_, c)] = static_cast<float>(
          scale_shift == nullptr ? normal : scale_shift[c] * normal + scale_shift[size_ + c]);
    }
  }

  const LayerNormalizationDesc desc_;
  const int axis_;
  const int64_t size_;
  Dims rows_;  // one index per row: the axis has size 1
  const SeparableOffsets src_, dst_;
};

}  // namespace

absl::StatusOr<LayerNormalizationDesc> ResolveReference(const LayerNormalizationDesc& desc,
                                                        const Attributes& attributes,
                                                        const ImplementationFacts&) {
  if (desc.prop_kind != PropKind::kForwardInference) {
    return absl::UnimplementedError("takes inference only");
  }
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  LayerNormalizationDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.src));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const LayerNormalizationDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(InfoOf(desc, attributes, facts), desc);
}

}  // namespace tilewire::layer_normalization
