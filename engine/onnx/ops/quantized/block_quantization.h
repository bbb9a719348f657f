// SPDX-License-Identifier: Apache-2.0
//
// Known weights whose scales and zero points belong to blocks of neighbours along one axis,
//
//   real[.., i, ..] = scale[.., i / size, ..] * (integer[.., i, ..] - zero_point[.., i / size, ..])
//
// or, where blocks are not of neighbours, with blocks[i] in the place of i / size. They become real
// numbers when they are packed.
#ifndef ENGINE_ONNX_OPS_QUANTIZED_BLOCK_QUANTIZATION_H_
#define ENGINE_ONNX_OPS_QUANTIZED_BLOCK_QUANTIZATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/network/constant.h"

namespace tilewire::reader {

// Constants of fewer elements are converted at once, others when they are packed.
inline constexpr int64_t kFewConverted = 16384;

// Scales and zero points have the numbers' dims, but one element per block along `axis`.
struct Blocks {
  int axis = 0;
  int64_t size = 1;
  network::ConstantPtr scales;       // in memory
  network::ConstantPtr zero_points;  // the same, or one for all; null: 0
  std::vector<int64_t> of_elements;  // the block of each index of `axis`; empty: i / size
};

// The dims of scales for numbers of these dims in blocks of `size` along `axis`.
Dims DimsOfScales(Dims dims, int axis, int64_t size);

// `numbers` are integers or real numbers of few bits; the dims of the blocks fit theirs. Errors are
// those of StoredNumbers.
absl::StatusOr<network::ConstantPtr> DequantizeBlocks(const network::ConstantPtr& numbers,
                                                      Blocks blocks, std::string name);

// Integers without a sign of 2, 4 or 8 bits, packed in rows of bytes, the first in the lowest bits:
// the first `columns` of each row. The dims of `bytes` are [rows, ...].
absl::StatusOr<network::ConstantPtr> UnpackRows(const network::ConstantPtr& bytes, int64_t columns,
                                                int bits, std::string name);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_QUANTIZED_BLOCK_QUANTIZATION_H_
