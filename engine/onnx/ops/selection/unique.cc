// SPDX-License-Identifier: Apache-2.0
//
// Unique: the different elements of a tensor, or its different slices along one axis, in ascending
// order or in that in which they come first; where each is first, which one each element is, and
// how often each comes. Elements that are not numbers are equal to each other, and the largest.
// Source: ONNX's operator document, opset 11.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

bool IsLess(int64_t a, int64_t b) { return a < b; }
bool IsLess(float a, float b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

// The slices of a tensor seen as [outer, size, inner].
struct Slices {
  int64_t outer = 1, size = 1, inner = 1;
};

// -1, 0 or 1 as slice a stands before, with or after slice b.
template <typename T>
int Compare(const Slices& slices, absl::Span<const T> elements, int64_t a, int64_t b) {
  for (int64_t o = 0; o < slices.outer; ++o) {
    for (int64_t i = 0; i < slices.inner; ++i) {
      const T x = elements[(o * slices.size + a) * slices.inner + i];
      const T y = elements[(o * slices.size + b) * slices.inner + i];
      if (IsLess(x, y)) return -1;
      if (IsLess(y, x)) return 1;
    }
  }
  return 0;
}

// The distinct slices, each in the order of the result; `inverse` by slice of the source.
struct Different {
  std::vector<int64_t> first, inverse, count;
};

template <typename T>
Different Find(const Slices& slices, absl::Span<const T> elements, bool sorted) {
  std::vector<int64_t> order(slices.size);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return Compare(slices, elements, a, b) < 0; });
  Different found;
  found.inverse.resize(slices.size);
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || Compare(slices, elements, order[i - 1], order[i]) != 0) {
      found.first.push_back(order[i]);  // the sort is stable: the first of equals
      found.count.push_back(0);
    }
    ++found.count.back();
    found.inverse[order[i]] = static_cast<int64_t>(found.first.size()) - 1;
  }
  if (sorted) return found;
  std::vector<int64_t> by_first(found.first.size()), place(found.first.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  std::sort(by_first.begin(), by_first.end(),
            [&](int64_t a, int64_t b) { return found.first[a] < found.first[b]; });
  Different ordered;
  for (size_t i = 0; i < by_first.size(); ++i) {
    place[by_first[i]] = static_cast<int64_t>(i);
    ordered.first.push_back(found.first[by_first[i]]);
    ordered.count.push_back(found.count[by_first[i]]);
  }
  for (int64_t one : found.inverse) ordered.inverse.push_back(place[one]);
  return ordered;
}

absl::Status BuildUnique(NodeContext& context) {
  const Node& node = context.node;
  if (context.input(0).constant == nullptr)
    return node.Unimplemented("input 0 is computed at run time; it must be known at load");
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr known, InMemory(context.input(0).constant));
  ABSL_ASSIGN_OR_RETURN(const int64_t sorted, node.Int("sorted", 1));
  if (sorted != 0 && sorted != 1) return node.Invalid("sorted ", sorted);
  Operand src = OperandOf(known);
  int axis = 0;
  if (node.HasAttribute("axis")) {
    ABSL_ASSIGN_OR_RETURN(axis, ReadAxis(node, 0, src.dims.size()));
  } else {
    ABSL_ASSIGN_OR_RETURN(src, ReshapeOf(context, src, {known->count()}, "/flat"));
  }
  Slices slices{1, src.dims[axis], 1};
  for (int d = 0; d < axis; ++d) slices.outer *= src.dims[d];
  for (size_t d = axis + 1; d < src.dims.size(); ++d) slices.inner *= src.dims[d];
  Different found = known->is_float ? Find(slices, known->floats, sorted != 0)
                                    : Find(slices, absl::MakeConstSpan(known->ints), sorted != 0);
  ABSL_ASSIGN_OR_RETURN(const Operand dst, SelectAlong(context, src, axis, RunsOf(found.first)));
  ABSL_RETURN_IF_ERROR(context.SetOutput(dst));
  std::vector<int64_t>* const others[] = {&found.first, &found.inverse, &found.count};
  for (int i = 1; i < 4; ++i) {
    if (!node.HasOutput(i)) continue;
    const Dims dims = {static_cast<int64_t>(others[i - 1]->size())};
    ABSL_RETURN_IF_ERROR(context.SetOutput(
        OperandOf(MakeInts(context.output_name(i), dims, std::move(*others[i - 1]))), i));
  }
  return absl::OkStatus();
}

}  // namespace

TILEWIRE_OPERATORS(Unique) = {
    Late({"Unique", 11, 1, 1, "axis sorted", BuildUnique, Folds::kInMemory, IndicesAfterFirst}),
};

}  // namespace tilewire::reader
