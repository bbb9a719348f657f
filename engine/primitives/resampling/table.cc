// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/resampling/implementations.h"
#include "engine/primitives/resampling/resampling.h"
#include "engine/primitives/row_table.h"

namespace tilewire {

absl::string_view AlgorithmName(ResamplingAlgorithm algorithm) {
  constexpr absl::string_view kNames[] = {"nearest", "linear"};
  return kNames[static_cast<size_t>(algorithm)];
}

namespace resampling {
namespace {

// A tensor that is written may be `any`, and the gradients both.
absl::Status CheckTensorsOf(const ResamplingDesc& desc) {
  if (!IsBackward(desc.prop_kind)) return CheckTensors("resampling", desc.src, desc.dst);
  if (desc.dst.IsZero())
    return InvalidArgument("resampling: dst, the layout of diff_dst, is missing");
  return CheckDestination("resampling: src", desc.src);
}

absl::Status Validate(const ResamplingDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensorsOf(desc));
  const MemoryDesc &src = desc.src, &dst = desc.dst;
  if (src.rank() < 3 || src.rank() > 5 || dst.rank() != src.rank() || dst.dim(0) != src.dim(0) ||
      dst.dim(1) != src.dim(1)) {
    return InvalidArgument("resampling: src ", DimsToString(src.dims()), ", dst ",
                           DimsToString(dst.dims()), ": takes rank 3 to 5 and one N and C");
  }
  if (src.ElementCount() == 0 && dst.ElementCount() != 0) {
    return InvalidArgument("resampling: src is empty");
  }
  return absl::OkStatus();
}

}  // namespace

Samples::Samples(const ResamplingDesc& desc, int d)
    : algorithm_(desc.algorithm), inputs_(desc.src.dim(d)), outputs_(desc.dst.dim(d)) {
  if (!tabled()) return;
  table_.reserve(outputs_);
  for (int64_t o = 0; o < outputs_; ++o) table_.push_back(Compute(o));
}

// Without inputs there are no outputs to be computed, and the sample is of no use.
Sample Samples::Compute(int64_t output) const {
  const int64_t last = std::max<int64_t>(inputs_ - 1, 0);
  const double inputs = static_cast<double>(inputs_);
  const double s =
      (static_cast<double>(output) + 0.5) * inputs / static_cast<double>(outputs_) - 0.5;
  if (algorithm_ == ResamplingAlgorithm::kNearest) {
    const int64_t i = std::clamp<int64_t>(std::llround(s), 0, last);
    return {{i, i}, {1, 0}};
  }
  const double clamped = std::clamp(s, 0.0, static_cast<double>(last));
  const int64_t i = static_cast<int64_t>(clamped);
  const double weight = clamped - static_cast<double>(i);
  return {{i, std::min(i + 1, last)}, {static_cast<float>(1 - weight), static_cast<float>(weight)}};
}

}  // namespace resampling

std::vector<ResamplingDesc> ResamplingProbes(DataType type) {
  std::vector<ResamplingDesc> descs = probes::Images<ResamplingDesc>(type, {2, 32, 16, 16});
  descs.push_back(descs[0]);
  descs.back().prop_kind = PropKind::kBackwardData;
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(Resampling, resampling, {PropKind::kBackwardData},
                                        {kAvx512AndAvx2, {{"f32", ResolveRows, CreateRows}}},
                                        {kAnyCpu,
                                         {{"rows_backward",
                                           ResolveRowsBackward,
                                           CreateRowsBackward,
                                           {.propagations = {PropKind::kBackwardData}}}}});

}  // namespace tilewire
