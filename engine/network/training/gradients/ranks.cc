// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/network/training/gradients/gradients.h"

namespace tilewire::network {

// The elements that were taken have the gradient, all others 0. Which result took element e of a
// line, of n elements, is asked for all pairs at once: the places of the k results [.., k, 1, ..]
// are compared with 0 to n - 1, [n, ..], which takes tensors of k * n elements a line. Numbers tell
// places apart up to 2^24.
absl::Status AppendGradients(const TopK& top, GradientContext& context) {
  const Dims src = context.dims(context.src());
  constexpr int64_t kMostPlaces = int64_t{1} << 24, kMostPairs = int64_t{1} << 28;
  const int64_t size = src[top.axis];
  if (size > kMostPlaces)
    return Unimplemented("the largest of more than ", kMostPlaces, " elements");
  const int64_t taken = ElementCount(context.dims(context.dst())).value_or(kMostPairs);
  if (size > 0 && taken > kMostPairs / size) {
    return Unimplemented("the largest elements have a gradient of ", taken, " results times ", size,
                         " elements; at most ", kMostPairs);
  }
  Dims each = context.dims(context.dst()), line(each.size() + 1, 1);
  TopK places = top;
  places.indices = true;
  const ValueId indices = context.Append(places, {context.src()}, each);
  each.insert(each.begin() + top.axis + 1, 1);
  line[top.axis + 1] = size;
  std::vector<float> numbers(size);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const ValueId all = context.AppendLiteral(MakeFloats("places", line, std::move(numbers)));
  const ValueId is_taken =
      context.Compute(Function::kEqual, {context.Append(Reshape{}, {indices}, each), all});
  const ValueId gradient = context.Append(Reshape{}, {context.gradient()}, each);
  const ValueId shares = context.Compute(Function::kWhere, {is_taken, gradient, context.Zero()});
  Dims summed = context.dims(shares);
  summed[top.axis] = 1;
  const ValueId sums = context.Append(Reduce{Reduce::Function::kSum}, {shares}, summed);
  context.Add(0, context.Append(Reshape{}, {sums}, src));
  return absl::OkStatus();
}

}  // namespace tilewire::network
