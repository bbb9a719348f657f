// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/plan/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"

namespace tilewire::lowering {
namespace {

using runtime::PlanBuffer;

constexpr int64_t kAlignment = AlignedBuffer::kAlignment;

bool AliveTogether(const PlanBuffer& a, const PlanBuffer& b) {
  return a.first <= b.last && b.first <= a.last;
}

// The start of the smallest gap that holds `buffer` between `placed`, which is sorted by offset;
// after all of them if there is none.
int64_t BestGap(const std::vector<const PlanBuffer*>& placed, const PlanBuffer& buffer) {
  int64_t best = -1, best_size = std::numeric_limits<int64_t>::max(), end = 0;
  for (const PlanBuffer* other : placed) {
    if (!AliveTogether(*other, buffer)) continue;
    const int64_t gap = other->offset - end;
    if (gap >= buffer.bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, other->offset + RoundUp(other->bytes, kAlignment));
  }
  return best >= 0 ? best : end;
}

// A buffer lives as long as any of its parts.
void ExtendLives(absl::Span<PlanBuffer> buffers) {
  for (const PlanBuffer& part : buffers) {  // parts come before what they are parts of
    if (part.part_of < 0) continue;
    PlanBuffer& whole = buffers[part.part_of];
    whole.first = std::min(whole.first, part.first);
    whole.last = std::max(whole.last, part.last);
  }
}

void PlaceParts(absl::Span<PlanBuffer> buffers) {
  for (size_t i = buffers.size(); i-- > 0;) {
    PlanBuffer& part = buffers[i];
    if (part.part_of >= 0) part.offset = buffers[part.part_of].offset + part.part_offset;
  }
}

}  // namespace

absl::StatusOr<int64_t> PlaceBuffers(absl::Span<PlanBuffer> buffers, int64_t max_bytes) {
  ExtendLives(buffers);
  for (const PlanBuffer& buffer : buffers) {
    if (buffer.bytes > max_bytes) {
      return ResourceExhausted("a tensor has ", buffer.bytes, " bytes; one run may use ",
                               max_bytes);
    }
  }
  std::vector<int> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<const PlanBuffer*> placed;
  int64_t arena_bytes = 0;
  for (int i : order) {
    PlanBuffer& buffer = buffers[i];
    if (buffer.part_of >= 0 || buffer.persistent >= 0) continue;
    buffer.offset = BestGap(placed, buffer);
    arena_bytes = std::max(arena_bytes, buffer.offset + RoundUp(buffer.bytes, kAlignment));
    if (arena_bytes > max_bytes) {
      return ResourceExhausted("the activations of one run need more than ", max_bytes, " bytes");
    }
    const auto by_offset = [](const PlanBuffer* a, const PlanBuffer* b) {
      return a->offset < b->offset;
    };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &buffer, by_offset), &buffer);
  }
  PlaceParts(buffers);
  return arena_bytes;
}

}  // namespace tilewire::lowering
