// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_RESAMPLING_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_RESAMPLING_IMPLEMENTATIONS_H_

#include <vector>

#include "engine/primitives/resampling/resampling.h"

namespace tilewire::resampling {

// Resampling row by row, shared by avx512_f32 and avx2_f32. Takes nchw, and layouts whose
// channels, all or a block of them, follow each other at a pixel (nhwc, nChw16c, nChw8c); the same
// with one and three spatial dimensions.
TILEWIRE_ROW(ResamplingDesc, Rows);

TILEWIRE_ROW(ResamplingDesc, Reference);

// Backward in the same layouts, a row of diff_src at a time, in plain loops.
TILEWIRE_ROW(ResamplingDesc, RowsBackward);

TILEWIRE_ROW(ResamplingDesc, ReferenceBackward);

PrimitiveInfo BackwardInfoOf(const Request<ResamplingDesc>& request);

// The elements at one pixel that follow each other: channels, or 1.
int64_t CellOf(const MemoryDesc& md);
//   kUnimplemented  cells of another size, or pixels of a row that do not follow each other
absl::Status RequireCells(const MemoryDesc& md, int64_t cell);

// Where one output of a dimension comes from.
struct Sample {
  int64_t index[2];
  float weight[2];  // 1 and 0 for nearest
};

// The samples of all outputs of one dimension. They are a table where that is small; else each is
// computed when it is asked for, so that a long dimension costs no memory. Immutable.
class Samples {
 public:
  static constexpr int64_t kMostTabled = 1 << 16;

  // A dimension that the tensors lack: one output, which is the input.
  Samples() = default;
  // Spatial dimension `d` of the tensors: 2 and up.
  Samples(const ResamplingDesc& desc, int d);

  int64_t size() const { return outputs_; }
  bool tabled() const { return outputs_ <= kMostTabled; }
  Sample operator[](int64_t output) const {
    return table_.empty() ? Compute(output) : table_[output];
  }

 private:
  Sample Compute(int64_t output) const;

  ResamplingAlgorithm algorithm_ = ResamplingAlgorithm::kNearest;
  int64_t inputs_ = 1, outputs_ = 1;
  std::vector<Sample> table_;
};

// The outputs that sample an input, [first, end): neighbours, as outputs sample in their order.
struct OutputRange {
  int64_t first, end;
};
OutputRange OutputsOf(const Samples& samples, int64_t input);
// The weight that an output has for an input.
double WeightOf(const Sample& sample, int64_t input);

}  // namespace tilewire::resampling

#endif  // ENGINE_PRIMITIVES_RESAMPLING_IMPLEMENTATIONS_H_
