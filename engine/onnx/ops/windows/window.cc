// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/windows/window.h"

#include <algorithm>

#include "engine/base/status_macros.h"

namespace tilewire::reader {
namespace {

// Above any real window, and small enough that products of two fit.
constexpr int64_t kLargest = (int64_t{1} << 31) - 1;

absl::StatusOr<Dims> ReadWindowSizes(const Node& node, absl::string_view name, size_t length,
                                     int64_t absent, int64_t smallest) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                        node.Ints(name, std::vector<int64_t>(length, absent)));
  if (values.size() != length) {
    return node.Invalid("attribute '", name, "' has ", values.size(), " values, expected ", length);
  }
  for (int64_t value : values) {
    if (value < smallest || value > kLargest)
      return node.Invalid(name, " ", value, " is out of range");
  }
  return Dims(values.begin(), values.end());
}

// SAME: as much padding as makes dst = src / stride rounded up; the odd element goes to the end
// (upper) or the start.
void PadSame(const Dims& src, size_t i, int64_t extent, bool upper, Window* window) {
  const int64_t dst = DivUp(src[i + 2], window->strides[i]);
  const int64_t total = std::max<int64_t>((dst - 1) * window->strides[i] + extent - src[i + 2], 0);
  window->padding_left[i] = upper ? total / 2 : total - total / 2;
  window->padding_right[i] = total - window->padding_left[i];
}

absl::Status SlideOver(const Node& node, int64_t src, size_t i, int64_t extent, bool ceil_mode,
                       Window* window) {
  const int64_t left = window->padding_left[i], right = window->padding_right[i],
                stride = window->strides[i];
  const int64_t room = src + left + right - extent;
  if (room < 0) {
    return node.Invalid("a window of ", extent, " does not fit ", src, " elements padded by ", left,
                        " and ", right);
  }
  int64_t dst = (ceil_mode ? DivUp(room, stride) : room / stride) + 1;
  // A window that would start in the right padding is left out.
  if (ceil_mode && (dst - 1) * stride >= src + left) --dst;
  window->dst.push_back(dst);
  window->ceil_extension.push_back(std::max<int64_t>((dst - 1) * stride - room, 0));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Window> ReadWindow(const Node& node, const Dims& src, Dims kernel, bool ceil_mode) {
  const size_t rank = kernel.size();
  Window window;
  window.kernel = std::move(kernel);
  ABSL_ASSIGN_OR_RETURN(window.strides, ReadWindowSizes(node, "strides", rank, 1, 1));
  ABSL_ASSIGN_OR_RETURN(window.dilations, ReadWindowSizes(node, "dilations", rank, 1, 1));
  ABSL_ASSIGN_OR_RETURN(Dims pads, ReadWindowSizes(node, "pads", 2 * rank, 0, 0));
  ABSL_ASSIGN_OR_RETURN(const std::string auto_pad, node.String("auto_pad", "NOTSET"));
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID") {
    return node.Invalid("auto_pad '", auto_pad.substr(0, 50), "'");
  }
  if (auto_pad == "VALID") pads.assign(2 * rank, 0);
  window.padding_left.assign(pads.begin(), pads.begin() + rank);
  window.padding_right.assign(pads.begin() + rank, pads.end());
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
    if (same) PadSame(src, i, extent, auto_pad == "SAME_UPPER", &window);
    ABSL_RETURN_IF_ERROR(SlideOver(node, src[i + 2], i, extent, ceil_mode, &window));
  }
  return window;
}

}  // namespace tilewire::reader
