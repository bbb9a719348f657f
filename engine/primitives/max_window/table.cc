// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/max_window/implementations.h"
#include "engine/primitives/max_window/max_window.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace max_window {
namespace {

// Products of two such sizes, and their sums, stay within 64 bits.
constexpr int64_t kLargest = int64_t{1} << 30;

bool Within(int64_t value, int64_t lowest) { return value >= lowest && value <= kLargest; }

absl::Status ValidateDimension(const MaxWindowDesc& desc, int i) {
  const bool fits = Within(desc.kernel[i], 1) && Within(desc.strides[i], 1) &&
                    Within(desc.dilations[i], 0) && Within(desc.padding_left[i], 0) &&
                    Within(desc.src.dim(i + 2), 0) && Within(desc.dst.dim(i + 2), 0);
  if (fits) return absl::OkStatus();
  return InvalidArgument("max_window: dimension ", i + 2, ": kernel ", desc.kernel[i], ", stride ",
                         desc.strides[i], ", dilation ", desc.dilations[i], ", padding ",
                         desc.padding_left[i], " from ", desc.src.dim(i + 2), " to ",
                         desc.dst.dim(i + 2));
}

absl::Status Validate(const MaxWindowDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("max_window", desc.src, desc.dst));
  const int rank = desc.src.rank();
  if (rank < 3 || rank > 5 || desc.dst.rank() != rank || desc.src.dim(0) != desc.dst.dim(0) ||
      desc.src.dim(1) != desc.dst.dim(1)) {
    return InvalidArgument("max_window: src is ", desc.src.ToString(), ", dst ",
                           desc.dst.ToString());
  }
  const size_t spatial = rank - 2;
  for (const Dims* sizes : {&desc.kernel, &desc.strides, &desc.dilations, &desc.padding_left}) {
    if (sizes->size() == spatial) continue;
    return InvalidArgument("max_window: ", DimsToString(*sizes), " for ", spatial,
                           " spatial dimensions");
  }
  for (int i = 0; i < rank - 2; ++i) ABSL_RETURN_IF_ERROR(ValidateDimension(desc, i));
  return absl::OkStatus();
}

}  // namespace
}  // namespace max_window

std::vector<MaxWindowDesc> MaxWindowProbes(DataType type) {
  MaxWindowDesc desc;
  desc.result = MaxWindowResult::kIndex;
  desc.src = probes::Tagged({2, 32, 8, 8}, type, "nchw");
  desc.dst = probes::Tagged({2, 32, 4, 4}, type, "nchw");
  desc.kernel = desc.strides = {2, 2};
  desc.dilations = desc.padding_left = {0, 0};
  return {desc};
}

TILEWIRE_DEFINE_PRIMITIVE(MaxWindow, max_window,
                          {kAnyCpu, {{"plain_rows", ResolvePlainRows, CreatePlainRows}}});

}  // namespace tilewire
