// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

absl::StatusOr<std::vector<int>> ReadOrder(const Node& node, size_t rank) {
  std::vector<int64_t> reversed;
  for (size_t i = rank; i-- > 0;) reversed.push_back(static_cast<int64_t>(i));
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> perm, node.Ints("perm", reversed));
  std::vector<bool> seen(rank, false);
  if (perm.size() != rank) return node.Invalid("perm of ", perm.size(), " axes for rank ", rank);
  for (int64_t axis : perm) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || seen[axis])
      return node.Invalid("perm is not a permutation");
    seen[axis] = true;
  }
  return std::vector<int>(perm.begin(), perm.end());
}

// Row by row of the result: only the first element of a row is looked for.
template <typename T>
std::vector<T> Permute(absl::Span<const T> src, const Dims& src_dims, const std::vector<int>& order,
                       const Dims& dst) {
  Dims strides(src_dims.size(), 1);
  for (size_t i = src_dims.size(); i-- > 1;) strides[i - 1] = strides[i] * src_dims[i];
  const size_t outer = dst.empty() ? 0 : dst.size() - 1;
  const size_t length = dst.empty() ? 1 : dst[outer];
  const int64_t step = dst.empty() ? 1 : strides[order[outer]];
  std::vector<T> permuted(src.size());
  Dims index(outer, 0);
  for (size_t row = 0; row < permuted.size(); row += length) {
    const T* first = src.data();
    for (size_t i = 0; i < outer; ++i) first += index[i] * strides[order[i]];
    T* to = permuted.data() + row;
    for (size_t i = 0; i < length; ++i) to[i] = first[static_cast<int64_t>(i) * step];
    for (size_t i = outer; i-- > 0 && ++index[i] == dst[i];) index[i] = 0;
  }
  return permuted;
}

absl::Status BuildTranspose(NodeContext& context) {
  const Dims src = context.input(0).dims;
  ABSL_ASSIGN_OR_RETURN(std::vector<int> order, ReadOrder(context.node, src.size()));
  Dims dst;
  for (int axis : order) dst.push_back(src[axis]);
  const ConstantPtr constant = context.input(0).constant;
  if (constant == nullptr && src.empty()) return context.SetOutput(context.input(0));
  if (constant == nullptr) {
    ABSL_ASSIGN_OR_RETURN(const ValueId value, context.RuntimeOfAnyType(0));
    return context.SetOutput(
        context.Emit(network::Transpose{std::move(order)}, {value}, std::move(dst)));
  }
  if (constant->doubles != nullptr) {
    return context.SetOutput(
        network::MakeDoubles(context.output_name(), dst,
                             Permute(absl::MakeConstSpan(*constant->doubles), src, order, dst)));
  }
  if (constant->is_float) {
    return context.SetOutput(
        MakeFloats(context.output_name(), dst, Permute(constant->floats, src, order, dst)));
  }
  return context.SetOutput(MakeInts(context.output_name(), dst,
                                    Permute(absl::MakeConstSpan(constant->ints), src, order, dst)));
}

}  // namespace

TILEWIRE_OPERATORS(Transpose) = {
    TrainsFirst({"Transpose", 1, 1, 1, "perm", BuildTranspose, Folds::kInMemory}),
};

}  // namespace tilewire::reader
