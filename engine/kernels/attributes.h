// SPDX-License-Identifier: Apache-2.0
//
// Modifiers of a primitive beyond its descriptor: post-ops, output scales, who owns the scratchpad,
// and how exactly f32 products are computed. The order of work is: accumulate, add
// bias, multiply by the output scale, apply post-ops in their order, round, saturate
// (tests/engine/rows.txt Q02). Value types; thread-compatible.
#ifndef ENGINE_KERNELS_ATTRIBUTES_H_
#define ENGINE_KERNELS_ATTRIBUTES_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/precision.h"
#include "engine/functions/function.h"

namespace tilewire {

using functions::EltwiseAlgorithm;
using functions::EltwiseOp;

// dst = scale * eltwise(dst)
struct EltwisePostOp {
  EltwiseOp op;
  float scale = 1;
  bool operator==(const EltwisePostOp&) const = default;
};

// dst = dst + scale * (what the destination held before), which is read in the destination's own
// layout and type.
struct SumPostOp {
  float scale = 1;
  bool operator==(const SumPostOp&) const = default;
};

// dst = dst < 0 ? slopes[c] * dst : dst, where c is the index along dimension 1 of the destination,
// which has as many slopes. A chain holds at most one, and implementations that take it say so in
// their table.
struct PReluPostOp {
  std::vector<float> slopes;
  bool operator==(const PReluPostOp&) const = default;
};

// The maximum of each 2x2 window of the two spatial dimensions, stride 2, no padding: [N,C,H,W]
// becomes [N,C,floor(H/2),floor(W/2)]; the last row or column of an odd size is dropped. The
// descriptor's dst stays that of the operation before it; Primitive::Desc(kArgDst) is the tensor
// that is written. A window that holds NaN gives NaN. A max pooling ends its chain, and
// implementations that take it say so in their table.
struct MaxPoolingPostOp {
  static constexpr int kSize = 2;  // of a window, and the stride
  bool operator==(const MaxPoolingPostOp&) const = default;
};

// dst = y > 0 ? dst : alpha * dst, for a gradient of src, where y, the activation that forward
// saved, lies as the gradient does and is the argument kArgSrc1. It is the backward of the relu
// that stood before the primitive. A mask ends its chain, and implementations that take it say so
// in their table.
struct MaskPostOp {
  float alpha = 0;
  bool operator==(const MaskPostOp&) const = default;
};

using PostOp = std::variant<EltwisePostOp, SumPostOp, MaxPoolingPostOp, PReluPostOp, MaskPostOp>;

// A chain in the order of execution.
class PostOps {
 public:
  static constexpr int kCapacity = 4;

  // kInvalidArgument  the chain already holds kCapacity entries or a PRelu, a max pooling or a mask
  //                   has ended it, a number is not finite, or a function has no generated code
  absl::Status Append(const PostOp& op);

  absl::Span<const PostOp> entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  bool HasSum() const;
  bool HasMaxPooling() const;
  // The slopes of the chain's PRelu; nullptr where there is none.
  const std::vector<float>* Slopes() const;
  // The chain's mask; nullptr where there is none.
  const MaskPostOp* Mask() const;
  // The entries before the max pooling; all where there is none.
  PostOps WithoutMaxPooling() const;
  // "sum:1;relu:0;max_pooling:2x2", "" for none.
  std::string ToString() const;
  bool operator==(const PostOps&) const = default;

 private:
  std::vector<PostOp> entries_;
};

enum class ScratchpadMode : uint8_t {
  kLibrary = 0,  // the primitive owns its scratchpad: one thread at a time may execute it
  kUser,  // the caller passes it (kArgScratchpad): any number of threads may execute one primitive
};

// Bit i of `mask` set: the scale varies along dimension i of the destination.
struct OutputScales {
  int mask = 0;
  std::vector<float> scales = {1.0f};
  bool IsDefault() const { return mask == 0 && scales.size() == 1 && scales[0] == 1.0f; }
  bool operator==(const OutputScales&) const = default;
};

struct Attributes {
  PostOps post_ops;
  OutputScales output_scales;
  ScratchpadMode scratchpad_mode = ScratchpadMode::kLibrary;
  Precision precision = Precision::kExact;  // a row that computes less exactly refuses the rest

  void AppendKey(std::string* key) const;
  // "post_ops:sum:1;relu:0 scales:mask:2 precision:bf16 scratchpad:user"; only the scratchpad is
  // always there, the others if they are not the default.
  std::string ToString() const;
  bool operator==(const Attributes&) const = default;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ATTRIBUTES_H_
