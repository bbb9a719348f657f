// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one output after the other. The samples of an output
// are added in the order of depth, height, width.
#include "engine/base/status_macros.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/resampling/implementations.h"

namespace tilewire::resampling {
namespace {

// Immutable.
class Formula {
 public:
  explicit Formula(const ResamplingDesc& desc)
      : nearest_(desc.algorithm == ResamplingAlgorithm::kNearest), src_(desc.src) {
    for (int d = 2; d < desc.src.rank(); ++d) samples_.emplace_back(desc, d);
  }

  float Value(const float* src, const Dims& index) const {
    Dims at = index;
    if (nearest_) {
      for (size_t d = 0; d < samples_.size(); ++d) {
        at[d + 2] = samples_[d][index[d + 2]].index[0];
      }
      return src[src_.Offset(at)];
    }
    float sum = 0;
    ForEachIndex(Dims(samples_.size(), 2), [&](const Dims& side) {
      float weight = 1;
      for (size_t d = 0; d < samples_.size(); ++d) {
        const Sample sample = samples_[d][index[d + 2]];
        at[d + 2] = sample.index[side[d]];
        weight *= sample.weight[side[d]];
      }
      sum += weight * src[src_.Offset(at)];
    });
    return sum;
  }

 private:
  const bool nearest_;
  std::vector<Samples> samples_;  // by spatial dimension
  const SeparableOffsets src_;
};

}  // namespace

absl::StatusOr<ResamplingDesc> ResolveReference(const Request<ResamplingDesc>& request) {
  return ResolveF32(request.desc, request.attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<ResamplingDesc>& request) {
  const ResamplingDesc& desc = request.desc;
  const auto compute = [formula = Formula(desc),
                        dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      piece.Get<float>(kArgDst)[dst.Offset(index)] =
          formula.Value(piece.Get<const float>(kArgSrc), index);
    });
  };
  const Dims samples(desc.src.rank() - 2, 2);  // of an output
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims(), samples}, compute);
}

}  // namespace tilewire::resampling
