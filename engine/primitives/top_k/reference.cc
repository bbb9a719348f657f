// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: the best element that is left, as often as dst wants one.
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/top_k/implementations.h"
#include "engine/primitives/top_k/ranks.h"

namespace tilewire::top_k {
namespace {

// `later` comes after `best`.
template <typename T>
bool IsBetter(const TopKDesc& desc, T later, T best) {
  const bool above = IsAbove(later, best), below = IsAbove(best, later);
  if (!above && !below) return desc.last_of_equals;
  return desc.largest ? above : below;
}

template <typename T>
size_t BestOf(const TopKDesc& desc, const std::vector<T>& line, const std::vector<bool>& taken) {
  size_t best = line.size();
  ForEachOperation(static_cast<int64_t>(line.size()), [&](int64_t i) {
    if (taken[i]) return;
    if (best == line.size() || IsBetter(desc, line[i], line[best])) best = i;
  });
  return best;
}

template <typename T>
void RunLine(const TopKDesc& desc, const T* src, void* dst, Dims index) {
  std::vector<T> line;
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
    StoreBest(desc, line[best], static_cast<int64_t>(best), dst, desc.dst.Offset(index));
  }
}

}  // namespace

absl::StatusOr<TopKDesc> ResolveReference(const Request<TopKDesc>& request) {
  const TopKDesc& desc = request.desc;
  const DataType type = desc.src.data_type();
  if (!IsIntegerType(type) && type != DataType::kF64) ABSL_RETURN_IF_ERROR(RequireF32(desc.src));
  ABSL_RETURN_IF_ERROR(RequireType(desc.indices ? DataType::kF32 : type, {&desc.dst}));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return WithDst(desc, OrLayoutOf(desc.dst, desc.src));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<TopKDesc>& request) {
  const TopKDesc& desc = request.desc;
  const auto compute = [desc](const ReferencePiece& piece) {
    VisitElementType(desc, [&](auto element) {
      using T = decltype(element);
      piece.ForEach([&](const Dims& index) {
        RunLine(desc, piece.Get<const T>(kArgSrc), piece.Find(kArgDst), index);
      });
    });
  };
  return CreateReferencePrimitive(
      InfoOf(request),
      {LinesAlong(desc.dst.dims(), desc.axis), {desc.src.dim(desc.axis), desc.dst.dim(desc.axis)}},
      compute);
}

}  // namespace tilewire::top_k
