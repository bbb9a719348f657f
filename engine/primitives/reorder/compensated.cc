// SPDX-License-Identifier: Apache-2.0
//
// To a descriptor that carries compensation (memory_desc.h): the best reorder to the same layout
// without it, then the sums over what was written, padding included (it is zero).
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/reorder/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::reorder {
namespace {

// Offsets of all indices of the padded dimensions whose bit is set in `mask`, row-major; 0 for the
// others.
std::vector<int64_t> OffsetsOf(const MemoryDesc& desc, int mask) {
  Dims dims = desc.padded_dims();
  for (int d = 0; d < desc.rank(); ++d) {
    if ((mask >> d & 1) == 0) dims[d] = 1;
  }
  std::vector<int64_t> offsets;
  ForEachIndex(dims, [&](const Dims& index) { offsets.push_back(desc.Offset(index)); });
  return offsets;
}

struct CompensatedDriver {
  void Run(const DrivenRun& run) const {
    constexpr int64_t kSumsAtOnce = 16;  // a block of output channels, and a cache line of sums
    ExecuteArgs copy_args = run.args;
    if (run.scratchpad != nullptr) copy_args.Set(kArgScratchpad, run.scratchpad);
    (void)copy->Execute(copy_args, run.team);  // has all its arguments, and so cannot fail
    std::byte* dst = run.args.Get<std::byte>(kArgDst);
    auto* sums = reinterpret_cast<int32_t*>(dst + compensation_offset);
    const auto* weights = reinterpret_cast<const int8_t*>(dst);
    const int64_t count = static_cast<int64_t>(origins.size());
    threading::ParallelForItems(run.team, count, kSumsAtOnce, [&](int64_t i) {
      uint32_t sum = 0;
      for (int64_t offset : summands) sum += weights[origins[i] + offset - offset0];
      sums[i] = static_cast<int32_t>(-128 * sum);
    });
  }
  int64_t code_bytes() const { return copy->info().code_bytes; }

  std::shared_ptr<const Primitive> copy;
  int64_t compensation_offset, offset0;
  std::vector<int64_t> origins, summands;  // both count offset0
};

}  // namespace

absl::StatusOr<ReorderDesc> ResolveCompensated(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  if (!desc.dst.HasCompensation()) return Unimplemented("dst carries no compensation");
  if (desc.dst.IsBounded()) return Unimplemented("the elements of dst are bounded");
  if (desc.dst.ElementCount() == 0) return Unimplemented("nothing to sum up");
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateCompensated(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(auto copy, CreateCopyInside(request, desc.dst.WithoutExtra()));
  PrimitiveInfo info = InfoOf(request);
  info.scratchpad_bytes = copy->info().scratchpad_bytes;
  const MemoryDesc& dst = desc.dst;
  return MakeDriven(std::move(info),
                    CompensatedDriver{std::move(copy), dst.CompensationOffsetBytes(), dst.offset0(),
                                      OffsetsOf(dst, dst.extra().compensation_mask),
                                      OffsetsOf(dst, ~dst.extra().compensation_mask)});
}

}  // namespace tilewire::reorder
