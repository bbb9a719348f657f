// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/shapes/moves.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::reader {
namespace {

std::vector<int64_t> IndicesOf(const IndexRuns& runs, int64_t size) {
  std::vector<int64_t> indices;
  for (const IndexRun& run : runs) {
    for (int64_t i = 0; i < run.count; ++i)
      indices.push_back(run.start < 0 ? -1 : run.start + i * run.step);
  }
  for (int64_t i = 0; runs.empty() && i < size; ++i) indices.push_back(i);
  return indices;
}

template <typename T>
std::vector<T> SelectElements(absl::Span<const T> src, const Dims& src_dims, const Select& select,
                              const Dims& dst_dims, T fill) {
  const int64_t count = *ElementCount(dst_dims);
  // Places of the elements so far, outermost dimension first; -1: fill.
  std::vector<int64_t> offsets = {0};
  for (size_t d = 0; count > 0 && d < src_dims.size(); ++d) {
    const std::vector<int64_t> indices = IndicesOf(select.from[d], src_dims[d]);
    std::vector<int64_t> next;
    next.reserve(offsets.size() * indices.size());
    for (int64_t offset : offsets) {
      for (int64_t index : indices)
        next.push_back(offset < 0 || index < 0 ? -1 : offset * src_dims[d] + index);
    }
    offsets = std::move(next);
  }
  std::vector<T> dst;
  dst.reserve(count);
  for (int64_t i = 0; i < count; ++i) dst.push_back(offsets[i] < 0 ? fill : src[offsets[i]]);
  return dst;
}

absl::StatusOr<Operand> FoldSelect(const NodeContext& context, const Constant& src,
                                   const Select& select, Dims dims, const std::string& name) {
  const std::optional<int64_t> count = ElementCount(dims);
  if (!count || *count > kLargestFold) {
    return context.node.TooLarge("a constant of dims ", DimsToString(dims),
                                 " is too large to fold");
  }
  ConstantPtr folded;
  if (src.doubles != nullptr) {
    folded = network::MakeDoubles(
        name, dims, SelectElements<double>(*src.doubles, src.dims, select, dims, select.fill));
  } else if (src.is_float) {
    folded = MakeFloats(name, dims,
                        SelectElements<float>(src.floats, src.dims, select, dims, select.fill));
  } else {
    folded = MakeInts(name, dims,
                      SelectElements<int64_t>(src.ints, src.dims, select, dims,
                                              static_cast<int64_t>(select.fill)));
  }
  return OperandOf(std::move(folded));
}

bool TakesAll(const IndexRuns& runs, int64_t size) {
  return runs.empty() || (runs.size() == 1 && runs[0] == IndexRun{0, 1, size});
}

}  // namespace

Select WholeOf(size_t rank) {
  Select select;
  select.from.resize(rank);
  return select;
}

IndexRuns RunsOf(absl::Span<const int64_t> indices) {
  if (indices.empty()) return {{0, 1, 0}};
  IndexRuns runs;
  for (int64_t index : indices) {
    if (!runs.empty()) {
      IndexRun& last = runs.back();
      const int64_t step = index < 0 ? 0 : index - last.start;
      const bool both_fill = index < 0 && last.start < 0;
      const bool both_real = index >= 0 && last.start >= 0;
      if (both_real && last.count == 1) last.step = step;
      if (both_fill || (both_real && index == last.start + last.count * last.step)) {
        ++last.count;
        continue;
      }
      if (last.count == 1) last.step = 1;
    }
    runs.push_back({index, 1, 1});
  }
  return runs;
}

absl::StatusOr<Operand> SelectOf(NodeContext& context, const Operand& src, Select select,
                                 absl::string_view suffix) {
  Dims dims = src.dims;
  bool all = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (TakesAll(select.from[d], dims[d])) select.from[d].clear();
    if (select.from[d].empty()) continue;
    all = false;
    dims[d] = 0;
    for (const IndexRun& run : select.from[d]) {
      const std::optional<int64_t> sum = CheckedAdd(dims[d], run.count);
      if (!sum) return context.node.Invalid("the result is too large");
      dims[d] = *sum;
    }
  }
  if (all) return src;
  const std::string name = absl::StrCat(context.output_name(), suffix);
  if (src.constant != nullptr)
    return FoldSelect(context, *src.constant, select, std::move(dims), name);
  return context.EmitOperand(std::move(select), {src.value}, std::move(dims), suffix);
}

absl::StatusOr<Operand> SelectAlong(NodeContext& context, const Operand& src, int axis,
                                    IndexRuns runs, absl::string_view suffix) {
  Select select = WholeOf(src.dims.size());
  select.from[axis] = std::move(runs);
  return SelectOf(context, src, std::move(select), suffix);
}

absl::StatusOr<Operand> ReshapeOf(NodeContext& context, const Operand& src, Dims dims,
                                  absl::string_view suffix) {
  if (src.dims == dims) return src;
  if (src.constant != nullptr) {
    const std::string name = absl::StrCat(context.output_name(), suffix);
    return OperandOf(network::Reshaped(*src.constant, name, std::move(dims)));
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId dst, context.EmitReshape(src.value, dims, suffix));
  return Operand{nullptr, dst, std::move(dims)};
}

absl::StatusOr<Operand> TurnedOf(NodeContext& context, const Operand& src, std::vector<int> order,
                                 absl::string_view suffix) {
  Dims dims;
  for (int axis : order) dims.push_back(src.dims[axis]);
  ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(src));
  return context.EmitOperand(network::Transpose{std::move(order)}, {value}, std::move(dims),
                             suffix);
}

}  // namespace tilewire::reader
