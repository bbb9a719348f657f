// SPDX-License-Identifier: Apache-2.0
#include "client/tensor.h"

#include "absl/strings/str_cat.h"

namespace tilewire::client {

absl::string_view LayoutName(Layout layout) { return layout == Layout::kNhwc ? "nhwc" : "nchw"; }

Tensor Tensor::FromFloats(std::string name, std::vector<int64_t> shape,
                          absl::Span<const float> values, Layout layout) {
  return From<float>(std::move(name), std::move(shape), values, layout);
}

// The bytes of a string are aligned for every type of the protocol, on the heap and within it.
absl::Status Tensor::CheckHolds(absl::string_view wanted, size_t size) const {
  if (datatype == wanted && bytes.size() % size == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("tensor '", name, "' holds ", bytes.size(),
                                                    " bytes of ", datatype, ", not ", wanted,
                                                    " values"));
}

absl::StatusOr<std::vector<float>> Tensor::Floats() const {
  const auto view = View<float>();
  if (!view.ok()) return view.status();
  return std::vector<float>(view->begin(), view->end());
}

std::vector<int64_t> ClosedShape(const TensorMetadata& tensor, int64_t batch, int64_t free_size) {
  std::vector<int64_t> shape = tensor.shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) shape[i] = i == 0 ? batch : free_size;
  }
  return shape;
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  std::string text;
  for (size_t i = 0; i < shape.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "x",
                    shape[i] >= 0 ? absl::StrCat(shape[i])
                    : i == 0      ? "N"
                                  : "?");
  }
  return text;
}

}  // namespace tilewire::client
