// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {
namespace {

MaxWindowResult ResultOf(network::MaxWindow::Result result) {
  using Result = network::MaxWindow::Result;
  switch (result) {
    case Result::kElement:
      return MaxWindowResult::kElement;
    case Result::kIndex:
      return MaxWindowResult::kIndex;
    case Result::kColumnMajorIndex:
      return MaxWindowResult::kColumnMajorIndex;
  }
  return MaxWindowResult::kElement;
}

}  // namespace

// In row-major order, in which the indices of maxima count.
absl::Status LowerMaxWindow(const network::MaxWindow& window, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.RowMajor(context.src()));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, context.DstLike(src.desc));
  return context.EmitUnary(context.Create(MaxWindowDesc{.result = ResultOf(window.result),
                                                        .src = src.desc,
                                                        .dst = dst,
                                                        .kernel = window.kernel,
                                                        .strides = window.strides,
                                                        .dilations = window.dilations,
                                                        .padding_left = window.padding_left}),
                           src);
}

}  // namespace tilewire::lowering
