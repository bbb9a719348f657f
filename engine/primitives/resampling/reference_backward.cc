// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of backward: any layouts, one element of diff_src after the other.
// The outputs that sample it are neighbours along each dimension; sums in double.
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/resampling/implementations.h"

namespace tilewire::resampling {
namespace {

// The first of the outputs of a dimension, which sample inputs in their order, that `is_past` holds
// for; all of them if none.
template <typename Predicate>
int64_t FirstOutput(const Samples& samples, Predicate is_past) {
  int64_t first = 0, count = samples.size();
  while (count > 0) {
    const int64_t half = count / 2;
    if (is_past(samples[first + half])) {
      count = half;
    } else {
      first += half + 1;
      count -= half + 1;
    }
  }
  return first;
}

// Immutable.
class Gradient {
 public:
  explicit Gradient(const ResamplingDesc& desc) : src_(desc.src), dst_(desc.dst) {
    for (int d = 2; d < desc.src.rank(); ++d) samples_.emplace_back(desc, d);
  }

  void RunElement(const ReferencePiece& piece, const Dims& index) const {
    Dims first, count, at = index;
    for (size_t d = 0; d < samples_.size(); ++d) {
      const OutputRange range = OutputsOf(samples_[d], index[d + 2]);
      first.push_back(range.first);
      count.push_back(range.end - range.first);
    }
    double sum = 0;
    ForEachOperation(count, [&](const Dims& step) {
      double weight = 1;
      for (size_t d = 0; d < samples_.size(); ++d) {
        at[d + 2] = first[d] + step[d];
        weight *= WeightOf(samples_[d][at[d + 2]], index[d + 2]);
      }
      sum += weight * piece.Get<const float>(kArgDiffDst)[dst_.Offset(at)];
    });
    piece.Get<float>(kArgDiffSrc)[src_.Offset(index)] = static_cast<float>(sum);
  }

 private:
  std::vector<Samples> samples_;  // by spatial dimension
  const SeparableOffsets src_, dst_;
};

}  // namespace

OutputRange OutputsOf(const Samples& samples, int64_t input) {
  return {FirstOutput(samples, [input](const Sample& sample) { return sample.index[1] >= input; }),
          FirstOutput(samples, [input](const Sample& sample) { return sample.index[0] > input; })};
}

double WeightOf(const Sample& sample, int64_t input) {
  double weight = 0;
  for (int side = 0; side < 2; ++side) {
    if (sample.index[side] == input) weight += sample.weight[side];
  }
  return weight;
}

PrimitiveInfo BackwardInfoOf(const Request<ResamplingDesc>& request) {
  const ResamplingDesc& desc = request.desc;
  return BasicInfo(request, {{kArgDiffDst, desc.dst}, {kArgDiffSrc, desc.src}});
}

absl::StatusOr<ResamplingDesc> ResolveReferenceBackward(const Request<ResamplingDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireF32(request.desc.src, request.desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  ResamplingDesc resolved = request.desc;
  if (resolved.dst.IsAny() && resolved.src.IsAny()) {
    ABSL_ASSIGN_OR_RETURN(resolved.dst, OrPlain(resolved.dst));
  }
  if (resolved.dst.IsAny()) return WithDst(resolved, OrLayoutOf(resolved.dst, resolved.src));
  ABSL_ASSIGN_OR_RETURN(resolved.src, OrLayoutOf(resolved.src, resolved.dst));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<ResamplingDesc>& request) {
  const ResamplingDesc& desc = request.desc;
  const auto compute = [gradient = Gradient(desc)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) { gradient.RunElement(piece, index); });
  };
  Dims outputs;  // about as many sample an element
  for (int d = 2; d < desc.src.rank(); ++d)
    outputs.push_back(2 * desc.dst.dim(d) / std::max<int64_t>(desc.src.dim(d), 1) + 1);
  return CreateReferencePrimitive(BackwardInfoOf(request), {desc.src.dims(), outputs}, compute);
}

}  // namespace tilewire::resampling
