// SPDX-License-Identifier: Apache-2.0
#include "service/wire/tensor_layout.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "service/wire/status_text.h"

namespace tilewire::service {

absl::string_view DatatypeName(DataType type) {
  switch (type) {
    case DataType::kF32:
      return "FP32";
    case DataType::kF16:
      return "FP16";
    case DataType::kBf16:
      return "BF16";
    case DataType::kS32:
      return "INT32";
    case DataType::kS8:
      return "INT8";
    case DataType::kU8:
      return "UINT8";
    case DataType::kF64:
      return "FP64";
    case DataType::kBool:
      return "BOOL";
    case DataType::kS16:
      return "INT16";
    case DataType::kU16:
      return "UINT16";
    case DataType::kU32:
      return "UINT32";
    case DataType::kS64:
      return "INT64";
    case DataType::kU64:
      return "UINT64";
    case DataType::kUndef:
      break;
  }
  return "";
}

absl::StatusOr<Layout> LayoutParameter(const Parameters& parameters, int rank) {
  if (parameters.empty()) return Layout::kNchw;
  const auto found = parameters.find("layout");
  if (found == parameters.end()) return Layout::kNchw;
  const inference::InferParameter& parameter = found->second;
  if (parameter.parameter_choice_case() != inference::InferParameter::kStringParam) {
    return absl::InvalidArgumentError("parameter 'layout' must be a string, 'nchw' or 'nhwc'");
  }
  if (absl::EqualsIgnoreCase(parameter.string_param(), "nchw")) return Layout::kNchw;
  if (!absl::EqualsIgnoreCase(parameter.string_param(), "nhwc")) {
    return absl::InvalidArgumentError(
        absl::StrCat("layout ", Quoted(parameter.string_param()), " is not 'nchw' or 'nhwc'"));
  }
  if (rank < 3 || rank > 5) {
    return absl::InvalidArgumentError(
        absl::StrCat("layout 'nhwc' needs rank 3 to 5, this tensor has rank ", rank));
  }
  return Layout::kNhwc;
}

Dims ToLogical(Dims shape, Layout layout) {
  if (layout == Layout::kNhwc && shape.size() > 2)
    std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return shape;
}

Dims FromLogical(Dims dims, Layout layout) {
  if (layout == Layout::kNhwc && dims.size() > 2)
    std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return dims;
}

}  // namespace tilewire::service
