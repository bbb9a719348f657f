// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: the best element that is left, as often as dst wants one.
#include <cmath>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/top_k/implementations.h"

namespace tilewire::top_k {
namespace {

bool IsAbove(float x, float y) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && !std::isnan(y);
  return x > y;
}

// `later` comes after `best`.
bool IsBetter(const TopKDesc& desc, float later, float best) {
  const bool above = IsAbove(later, best), below = IsAbove(best, later);
  if (!above && !below) return desc.last_of_equals;
  return desc.largest ? above : below;
}

size_t BestOf(const TopKDesc& desc, const std::vector<float>& line,
              const std::vector<bool>& taken) {
  size_t best = line.size();
  ForEachOperation(static_cast<int64_t>(line.size()), [&](int64_t i) {
    if (taken[i]) return;
    if (best == line.size() || IsBetter(desc, line[i], line[best])) best = i;
  });
  return best;
}

void RunLine(const TopKDesc& desc, const float* src, float* dst, Dims index) {
  std::vector<float> line;
  ForEachOperation(desc.src.dim(desc.axis), [&](int64_t i) {
    index[desc.axis] = i;
    line.push_back(src[desc.src.Offset(index)]);
  });
  std::vector<bool> taken(line.size(), false);
  for (int64_t i = 0; i < desc.dst.dim(desc.axis) && !threading::Stopped(); ++i) {
    const size_t best = BestOf(desc, line, taken);
    if (best == line.size()) return;  // stopped
    taken[best] = true;
    index[desc.axis] = i;
    dst[desc.dst.Offset(index)] = desc.indices ? static_cast<float>(best) : line[best];
  }
}

}  // namespace

absl::StatusOr<TopKDesc> ResolveReference(const TopKDesc& desc, const Attributes& attributes,
                                          const ImplementationFacts&) {
  return ResolveF32(desc, attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const TopKDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  const auto compute = [desc](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      RunLine(desc, piece.Get<const float>(kArgSrc), piece.Get<float>(kArgDst), index);
    });
  };
  return CreateReferencePrimitive(
      InfoOf(desc, attributes, facts),
      {LinesAlong(desc.dst.dims(), desc.axis), {desc.src.dim(desc.axis), desc.dst.dim(desc.axis)}},
      compute);
}

}  // namespace tilewire::top_k
