// SPDX-License-Identifier: Apache-2.0
//
// Tensors whose axis is not the innermost dimension in memory: plain ones, nchw among them, and
// channel blocks along the channels.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/softmax/columns_walk.h"
#include "engine/primitives/softmax/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::softmax {
namespace {

constexpr int64_t kFewestTurns = 4;        // that copies of rows pay for
constexpr int64_t kVectorsInCache = 6144;  // of src, and as many of dst, in the second cache
constexpr int64_t kFewestVectors = 4;      // of a turn, so that memory is read in runs
constexpr int64_t kElementsOfTask = 8192;

// A task is a group of neighbouring rows. Steps are elements: all that the rows of an outer index
// take, and from group to group. A piece of a tensor whose rows are not a multiple of the groups'
// ends with a smaller one.
struct ColumnsDriver {
  void Run(const DrivenRun& run) const {
    const auto* src = run.First<const float>(kArgSrc);
    auto* dst = run.First<float>(kArgDst);
    const int64_t at_once = threading::ItemsAtOnce(kElementsOfTask, group_elements);
    threading::ParallelForItems(run.team, outer * groups, at_once,
                                [&](int64_t task) { RunGroup(task, src, dst); });
  }
  size_t code_bytes() const {
    return whole->code_bytes() + (last == nullptr ? 0 : last->code_bytes());
  }

  void RunGroup(int64_t task, const float* src, float* dst) const {
    constexpr int64_t kMostLanes = 16;
    alignas(64) float maxima[ColumnsConfig::kMostVectors * kMostLanes];
    alignas(64) float sums[ColumnsConfig::kMostVectors * kMostLanes];
    const int64_t group = task % groups;
    const int64_t offset = task / groups * outer_step + group * group_step;
    const auto& generator = last != nullptr && group == groups - 1 ? last : whole;
    generator->entry<ColumnsWalk::Function>()(src + offset, dst + offset, maxima, sums);
  }

  int64_t outer = 0, groups = 0;
  int64_t outer_step = 0, group_step = 0, group_elements = 0;
  std::unique_ptr<const ColumnsWalk> whole, last;  // last: of a smaller group
};

// [N,C,spatial...] in blocks of channels as wide as a vector.
absl::StatusOr<MemoryDesc> InChannelBlocks(const MemoryDesc& md, int lanes) {
  std::string pattern(PlainPattern(md.rank()));
  pattern[1] = 'B';
  return MemoryDesc::CreatePattern(md.dims(), md.data_type(), absl::StrCat(pattern, lanes, "b"));
}

bool IsInChannelBlocks(const SoftmaxDesc& desc, int lanes) {
  if (desc.axis != 1) return false;
  const absl::StatusOr<MemoryDesc> blocks = InChannelBlocks(desc.src, lanes);
  return blocks.ok() && *blocks == desc.src;
}

// The number of rows that lie side by side.
int64_t RowsAbreast(const SoftmaxDesc& desc, bool in_blocks, int lanes) {
  const int64_t stride = desc.src.stride(desc.axis);  // of elements, or of blocks
  if (in_blocks) return stride / lanes;
  return desc.src.dim(desc.axis) == 1 ? 1 : stride;  // any stride fits one element
}

// The code for a group of rows out of `abreast`.
ColumnsConfig ConfigOf(const SoftmaxDesc& desc, const VectorUnit& unit) {
  const bool in_blocks = IsInChannelBlocks(desc, unit.lanes());
  const int64_t abreast = RowsAbreast(desc, in_blocks, unit.lanes());
  ColumnsConfig config{.form = ColumnsForm::kCopies, .unit = unit};
  config.rows = abreast;
  config.size = desc.src.dim(desc.axis);
  if (!in_blocks && abreast % unit.lanes() != 0 &&
      config.Vectors() <= ColumnsConfig::kMostVectors && config.WholeTurns() >= kFewestTurns) {
    config.turn_bytes = config.Vectors() * unit.bytes();
    return config;
  }
  config.form = in_blocks ? ColumnsForm::kLanes : ColumnsForm::kRows;
  const int64_t lanes = in_blocks ? 1 : unit.lanes();
  const int64_t turns = DivUp(config.size, config.Copies());
  const int64_t most =
      std::clamp(kVectorsInCache / turns, kFewestVectors, ColumnsConfig::kMostVectors);
  const int64_t vectors = DivUp(abreast, lanes);
  config.rows = std::min(abreast, DivUp(vectors, DivUp(vectors, most)) * lanes);
  config.turn_bytes = abreast * (in_blocks ? unit.bytes() : int64_t{sizeof(float)});
  return config;
}

}  // namespace

absl::StatusOr<SoftmaxDesc> ResolveColumns(const Request<SoftmaxDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireSoftmax(request.desc));
  ABSL_ASSIGN_OR_RETURN(SoftmaxDesc resolved, ResolveReference(request));
  const MemoryDesc& md = resolved.src;
  if (resolved.dst != md) return Unimplemented("layouts of src and dst differ");
  if (md.ElementCount() == 0) return Unimplemented("nothing to compute");
  if (md.IsPlain() && md.IsDense()) return resolved;
  const int lanes = VectorUnit::Of(request.facts.isa).lanes();
  if (IsInChannelBlocks(resolved, lanes)) return resolved;
  return Unimplemented("neither plain and dense nor in blocks of ", lanes,
                       " channels along the axis");
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateColumns(const Request<SoftmaxDesc>& request) {
  const SoftmaxDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  const bool in_blocks = IsInChannelBlocks(desc, unit.lanes());
  const int64_t abreast = RowsAbreast(desc, in_blocks, unit.lanes());
  ColumnsConfig config = ConfigOf(desc, unit);
  ColumnsDriver driver;
  driver.groups = DivUp(abreast, config.rows);
  const int64_t padded_size = in_blocks ? RoundUp(config.size, unit.lanes()) : config.size;
  driver.outer_step = padded_size * abreast;
  driver.outer = desc.src.PaddedElementCount() / driver.outer_step;
  driver.group_step = config.rows * (in_blocks ? unit.lanes() : 1);
  driver.group_elements = config.rows * padded_size;
  ABSL_ASSIGN_OR_RETURN(driver.whole, jit::Compile<ColumnsWalk>(request.facts.name, config));
  if (abreast % config.rows != 0) {
    config.rows = abreast % config.rows;
    ABSL_ASSIGN_OR_RETURN(driver.last, jit::Compile<ColumnsWalk>(request.facts.name, config));
  }
  return MakeDriven(InfoOf(request), std::move(driver));
}

}  // namespace tilewire::softmax
