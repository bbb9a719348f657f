// SPDX-License-Identifier: Apache-2.0
//
// Sources that begin at a multiple of the block on the axis: each is a part of dst (SubMemory), and
// a part's elements lie in runs that both sides keep contiguous. The run is found once, from the
// innermost physical dimension outwards; the rest is a loop of memcpy.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/base/status_macros.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/concat/implementations.h"
#include "engine/primitives/creation.h"

namespace tilewire::concat {
namespace {

// One loop over blocks of a dimension; strides in bytes.
struct Loop {
  int64_t count, src_stride, dst_stride;
};

// How one source is copied: `loops` (outermost first) around a memcpy of `run_bytes`.
struct CopyPlan {
  std::vector<Loop> loops;
  int64_t src_offset = 0, dst_offset = 0, run_bytes = 0, runs = 1;
};

CopyPlan PlanCopy(const MemoryDesc& src, const MemoryDesc& part) {
  const int64_t element_bytes = SizeOf(src.data_type());
  CopyPlan plan;
  if (src.ElementCount() == 0) {
    plan.runs = 0;
    return plan;
  }
  plan.src_offset = src.offset0() * element_bytes;
  plan.dst_offset = part.offset0() * element_bytes;
  int64_t run = 1;  // elements
  for (const InnerBlock& block : src.inner_blocks()) run *= block.size;
  std::vector<int> order(src.rank());  // of dimensions, innermost first
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return part.stride(a) < part.stride(b); });
  for (int d : order) {
    const int64_t count = src.padded_dims()[d] / src.BlockSize(d);
    if (count == 1) continue;
    if (plan.loops.empty() && src.stride(d) == run && part.stride(d) == run) {
      run *= count;
    } else {
      plan.loops.insert(plan.loops.begin(),
                        {count, src.stride(d) * element_bytes, part.stride(d) * element_bytes});
      plan.runs *= count;
    }
  }
  plan.run_bytes = run * element_bytes;
  return plan;
}

// Immutable.
class BlockCopy final : public Primitive {
 public:
  BlockCopy(PrimitiveInfo info, std::vector<CopyPlan> plans)
      : Primitive(std::move(info)), plans_(std::move(plans)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    std::byte* dst = args.Get<std::byte>(kArgDst);
    for (size_t i = 0; i < plans_.size(); ++i) {
      const CopyPlan& plan = plans_[i];
      if (plan.runs == 0) continue;
      const std::byte* src = args.Get<const std::byte>(kArgMultipleSrc + static_cast<int>(i));
      const int64_t runs_a_task = std::max<int64_t>(1, (64 << 10) / plan.run_bytes);
      team.ParallelFor(DivUp(plan.runs, runs_a_task), [&](int64_t task) {
        const int64_t end = std::min(plan.runs, (task + 1) * runs_a_task);
        for (int64_t run = task * runs_a_task; run < end; ++run) CopyRun(plan, run, src, dst);
      });
    }
  }

  static void CopyRun(const CopyPlan& plan, int64_t run, const std::byte* src, std::byte* dst) {
    int64_t from = plan.src_offset, to = plan.dst_offset;
    for (auto loop = plan.loops.rbegin(); loop != plan.loops.rend(); ++loop) {
      const int64_t i = run % loop->count;
      run /= loop->count;
      from += i * loop->src_stride;
      to += i * loop->dst_stride;
    }
    std::memcpy(dst + to, src + from, plan.run_bytes);
  }

  const std::vector<CopyPlan> plans_;
};

// The part of dst that source i fills. Refuses what is not made of whole blocks on both sides.
absl::StatusOr<MemoryDesc> PartOf(const ConcatDesc& desc, size_t i, int64_t before) {
  const MemoryDesc& src = desc.srcs[i];
  Dims offsets(src.rank(), 0);
  offsets[desc.axis] = before;
  if (src.inner_blocks() != desc.dst.inner_blocks()) {
    return absl::UnimplementedError(absl::StrCat("source ", i, " and dst are blocked differently"));
  }
  if (before % desc.dst.BlockSize(desc.axis) != 0) {
    return absl::UnimplementedError(
        absl::StrCat("source ", i, " begins inside a block of the axis"));
  }
  absl::StatusOr<MemoryDesc> part = desc.dst.SubMemory(src.dims(), offsets);
  if (!part.ok()) return absl::UnimplementedError(part.status().message());
  return part;
}

}  // namespace

absl::StatusOr<ConcatDesc> ResolveBlockCopy(const ConcatDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(ConcatDesc resolved, ResolveReference(desc, attributes, facts));
  int64_t before = 0;
  for (size_t i = 0; i < resolved.srcs.size(); ++i) {
    ABSL_RETURN_IF_ERROR(PartOf(resolved, i, before).status());
    before += resolved.srcs[i].dim(resolved.axis);
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBlockCopy(const ConcatDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  std::vector<CopyPlan> plans;
  int64_t before = 0;
  for (size_t i = 0; i < desc.srcs.size(); ++i) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc part, PartOf(desc, i, before));
    before += desc.srcs[i].dim(desc.axis);
    plans.push_back(PlanCopy(desc.srcs[i], part));
  }
  return std::make_unique<BlockCopy>(InfoOf(desc, attributes, facts), std::move(plans));
}

}  // namespace tilewire::concat
