// SPDX-License-Identifier: Apache-2.0
//
// Binary function of two tensors: dst[i] = postops(src0[i] op src1[i]) with op one of
//
//   add  x + y     sub  x - y     max  the larger, NaN if either is
//   mul  x * y     div  x / y     min  the smaller, NaN if either is
//
// src1 has src0's rank, and along every dimension src0's size or 1: then it is broadcast, as one
// number for the tensor [1,1,1,1], a channel [1,C,1,1] or [N,C,1,1], a pixel [N,1,H,W], and so on.
// May run in place: dst may be src0, or src1 where nothing is broadcast.
//
// Arguments kArgSrc, kArgSrc1, kArgDst.
// Layouts   any; dst may be `any`: the layout of src0. Post-ops: eltwise and sum.
// Source    oneDNN, "Binary"; NaN as in NumPy.
#ifndef ENGINE_PRIMITIVES_BINARY_BINARY_H_
#define ENGINE_PRIMITIVES_BINARY_BINARY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

enum class BinaryAlgorithm : uint8_t { kAdd = 0, kMul, kMax, kMin, kDiv, kSub };
constexpr int kBinaryAlgorithmCount = 6;
absl::string_view AlgorithmName(BinaryAlgorithm algorithm);  // "add"

struct BinaryDesc {
  BinaryAlgorithm algorithm = BinaryAlgorithm::kAdd;
  MemoryDesc src0, src1, dst;
};
TILEWIRE_FIELDS(BinaryDesc, algorithm, src0, src1, dst);

// Best first; tests and benchmarks run every row.
absl::Span<const Implementation<BinaryDesc>> BinaryImplementations();
// Typical descriptors that read `type`: see probes.h.
std::vector<BinaryDesc> BinaryProbes(DataType type);

//   kInvalidArgument    dst is not of src0's shape, or src1 cannot be broadcast to it
//   kUnimplemented      no implementation takes it; the message lists why each refused
//   kResourceExhausted  memory
absl::StatusOr<std::shared_ptr<const Primitive>> CreateBinary(const BinaryDesc& desc,
                                                              const Attributes& attributes,
                                                              const CreateOptions& options);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_BINARY_BINARY_H_
