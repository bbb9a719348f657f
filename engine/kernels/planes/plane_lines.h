// SPDX-License-Identifier: Apache-2.0
//
// Splits the source of a strip of rows (PlaneStrips) of a product by planes of bf16 into lines:
//
//   [tap, where lines are not shared][step of 32 channels][plane][line of 64 bytes]
//
// Lines of a source of bf16 are copied, or read where they lie.
//
// Immutable once created; thread-safe.
#ifndef ENGINE_KERNELS_PLANES_PLANE_LINES_H_
#define ENGINE_KERNELS_PLANES_PLANE_LINES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/kernels/planes/plane_operands.h"
#include "engine/kernels/planes/plane_split.h"

namespace tilewire {

class PlaneLines {
 public:
  //   kResourceExhausted, kUnimplemented  see jit::Compile
  static absl::StatusOr<std::unique_ptr<const PlaneLines>> Create(absl::string_view name,
                                                                  const PlaneProductShape& shape);

  int64_t bytes() const;  // of a strip
  int64_t code_bytes() const;

  // Where the steps of the first row begin, in the order of the weights: taps, then channels.
  std::vector<int64_t> Steps() const;

  // Returns whether some number is beyond planes; of bf16 none is. Not for what is read in place.
  bool Split(const PlaneRows& src, int64_t product, int64_t row, int64_t rows, std::byte* to) const;

  // Which of up to 32 rows have such a number, a bit for each.
  uint32_t BeyondRows(const PlaneRows& src, int64_t product, int64_t row, int rows) const;

 private:
  explicit PlaneLines(const PlaneProductShape& shape)
      : shape_(shape), layout_(shape.WeightsLayout(/*matrices=*/1)) {}
  int64_t PlaneBytes() const { return shape_.strips.lines * kPlaneLineBytes; }
  int64_t StepBytes() const { return shape_.planes * PlaneBytes(); }
  bool SplitRun(const PlaneRows::Run& run, std::byte* to) const;
  void CopyRun(const PlaneRows::Run& run, std::byte* to) const;
  uint32_t BeyondRowsOf(const PlaneRows::Run& run) const;

  const PlaneProductShape shape_;
  const PlaneLayout layout_;
  std::unique_ptr<const PlaneSplit> split_;  // of f32
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PLANES_PLANE_LINES_H_
