// SPDX-License-Identifier: Apache-2.0
//
// Sources that begin at a multiple of the block on the axis: each is a part of dst (SubMemory), and
// a part's elements lie in runs that both sides keep contiguous. The run is found once, from the
// innermost physical dimension outwards; the rest is a loop of memcpy.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "engine/base/status_macros.h"
#include "engine/primitives/concat/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/threading/ranges.h"

namespace tilewire::concat {
namespace {

// One loop over blocks of a dimension; strides in bytes.
struct Loop {
  int64_t count, src_stride, dst_stride;
};

// How one source is copied: `loops` (outermost first) around an `inner` one of runs of `run_bytes`.
// Pieces of the inner loop are copied at a time, all of as many bytes.
struct CopyPlan {
  std::vector<Loop> loops;
  Loop inner = {1, 0, 0};
  int64_t src_offset = 0, dst_offset = 0, run_bytes = 0;
  int64_t runs_of_piece = 1, pieces = 1;

  int64_t PiecesOfRow() const { return DivUp(inner.count, runs_of_piece); }
};

// `count` runs of the size of T; of `bytes` where T is std::byte.
template <typename T>
void CopyRuns(const std::byte* src, std::byte* dst, const Loop& steps, int64_t bytes,
              int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = std::is_same_v<T, std::byte> ? bytes : static_cast<int64_t>(sizeof(T));
    std::memcpy(dst + i * steps.dst_stride, src + i * steps.src_stride, size);
  }
}

CopyPlan PlanCopy(const MemoryDesc& src, const MemoryDesc& part) {
  const int64_t element_bytes = SizeOf(src.data_type());
  CopyPlan plan;
  if (src.ElementCount() == 0) {
    plan.pieces = 0;
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
    }
  }
  plan.run_bytes = run * element_bytes;
  if (!plan.loops.empty()) {
    plan.inner = plan.loops.back();
    plan.loops.pop_back();
  }
  plan.runs_of_piece = std::clamp<int64_t>((64 << 10) / plan.run_bytes, 1, plan.inner.count);
  plan.pieces = plan.PiecesOfRow();
  for (const Loop& loop : plan.loops) plan.pieces *= loop.count;
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
      if (plan.pieces == 0) continue;
      const std::byte* src = args.Get<const std::byte>(kArgMultipleSrc + static_cast<int>(i));
      // Short rows are copied several at a time.
      const int64_t piece_bytes = plan.runs_of_piece * plan.run_bytes;
      threading::ParallelForItems(team, plan.pieces, threading::ItemsAtOnce(64 << 10, piece_bytes),
                                  [&](int64_t piece) { CopyPiece(plan, piece, src, dst); });
    }
  }

  static void CopyPiece(const CopyPlan& plan, int64_t piece, const std::byte* src, std::byte* dst) {
    const int64_t of_row = plan.PiecesOfRow(), first = piece % of_row * plan.runs_of_piece;
    const int64_t count = std::min(plan.runs_of_piece, plan.inner.count - first);
    int64_t run = piece / of_row;
    int64_t from = plan.src_offset + first * plan.inner.src_stride;
    int64_t to = plan.dst_offset + first * plan.inner.dst_stride;
    for (auto loop = plan.loops.rbegin(); loop != plan.loops.rend(); ++loop) {
      const int64_t i = run % loop->count;
      run /= loop->count;
      from += i * loop->src_stride;
      to += i * loop->dst_stride;
    }
    const auto copy = plan.run_bytes == 1   ? CopyRuns<uint8_t>
                      : plan.run_bytes == 4 ? CopyRuns<uint32_t>
                      : plan.run_bytes == 8 ? CopyRuns<uint64_t>
                                            : CopyRuns<std::byte>;
    copy(src + from, dst + to, plan.inner, plan.run_bytes, count);
  }

  const std::vector<CopyPlan> plans_;
};

// The part of dst that source i fills. Refuses what is not made of whole blocks on both sides.
absl::StatusOr<MemoryDesc> PartOf(const ConcatDesc& desc, size_t i, int64_t before) {
  const MemoryDesc& src = desc.srcs[i];
  Dims offsets(src.rank(), 0);
  offsets[desc.axis] = before;
  if (src.inner_blocks() != desc.dst.inner_blocks()) {
    return Unimplemented("source ", i, " and dst are blocked differently");
  }
  if (before % desc.dst.BlockSize(desc.axis) != 0) {
    return Unimplemented("source ", i, " begins inside a block of the axis");
  }
  absl::StatusOr<MemoryDesc> part = desc.dst.SubMemory(src.dims(), offsets);
  if (!part.ok()) return Unimplemented(part.status().message());
  return part;
}

}  // namespace

absl::StatusOr<ConcatDesc> ResolveBlockCopy(const Request<ConcatDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(ConcatDesc resolved, ResolveReference(request));
  int64_t before = 0;
  for (size_t i = 0; i < resolved.srcs.size(); ++i) {
    ABSL_RETURN_IF_ERROR(PartOf(resolved, i, before).status());
    before += resolved.srcs[i].dim(resolved.axis);
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBlockCopy(const Request<ConcatDesc>& request) {
  const ConcatDesc& desc = request.desc;
  std::vector<CopyPlan> plans;
  int64_t before = 0;
  for (size_t i = 0; i < desc.srcs.size(); ++i) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc part, PartOf(desc, i, before));
    before += desc.srcs[i].dim(desc.axis);
    plans.push_back(PlanCopy(desc.srcs[i], part));
  }
  return std::make_unique<BlockCopy>(InfoOf(request), std::move(plans));
}

}  // namespace tilewire::concat
