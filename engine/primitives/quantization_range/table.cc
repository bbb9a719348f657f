// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/quantization_range/implementations.h"
#include "engine/primitives/quantization_range/quantization_range.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace quantization_range {
namespace {

absl::Status Validate(const QuantizationRangeDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("quantization_range", desc.src, desc.dst));
  if (desc.dst.dims() == Dims{2}) return absl::OkStatus();
  return InvalidArgument("quantization_range: dst is ", desc.dst.ToString(), ", expected [2]");
}

}  // namespace

void StoreRange(float low, float high, float* dst) {
  const float step = (high - low) / 255;
  dst[0] = step > 0 ? step : 1;
  dst[1] = std::nearbyint((0 - low) / dst[0]);
}

}  // namespace quantization_range

std::vector<QuantizationRangeDesc> QuantizationRangeProbes(DataType type) {
  std::vector<QuantizationRangeDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    descs.push_back(
        {probes::Tagged({2, 32, 8, 8}, type, tag), probes::Tagged({2}, DataType::kF32, "x")});
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE(QuantizationRange, quantization_range,
                          {kAvx512AndAvx2, {{"dense", ResolveDenseExtremes, CreateDenseExtremes}}});

}  // namespace tilewire
