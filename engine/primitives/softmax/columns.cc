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
#include "engine/primitives/single_source.h"
#include "engine/primitives/softmax/columns_walk.h"
#include "engine/primitives/softmax/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::softmax {
namespace {

constexpr int64_t kFewestTurns = 4;        // that copies of rows pay for
constexpr int64_t kVectorsInCache = 6144;  // of src, and as many of dst, in the second cache
constexpr int64_t kFewestVectors = 4;      // of a turn, so that memory is read in runs
constexpr int64_t kElementsOfTask = 8192;

// Immutable. A task is a group of neighbouring rows.
class Columns final : public SingleSource<float> {
 public:
  // In elements: all that the rows of an outer index take, and from group to group. A piece of a
  // tensor whose rows are not a multiple of the groups' ends with a smaller one.
  struct Shape {
    int64_t outer, groups;
    int64_t outer_step, group_step;
    int64_t group_elements;
  };

  Columns(PrimitiveInfo info, const Shape& shape, std::unique_ptr<const ColumnsWalk> whole,
          std::unique_ptr<const ColumnsWalk> last)
      : SingleSource(std::move(info)),
        shape_(shape),
        whole_(std::move(whole)),
        last_(std::move(last)) {}

 private:
  void RunOn(const float* src, float* dst, const threading::Team& team) const override {
    const int64_t tasks = shape_.outer * shape_.groups;
    const int64_t at_once = threading::ItemsAtOnce(kElementsOfTask, shape_.group_elements);
    threading::ParallelForItems(team, tasks, at_once,
                                [&](int64_t task) { RunGroup(task, src, dst); });
  }

  void RunGroup(int64_t task, const float* src, float* dst) const {
    constexpr int64_t kMostLanes = 16;
    alignas(64) float maxima[ColumnsConfig::kMostVectors * kMostLanes];
    alignas(64) float sums[ColumnsConfig::kMostVectors * kMostLanes];
    const int64_t group = task % shape_.groups;
    const int64_t offset = task / shape_.groups * shape_.outer_step + group * shape_.group_step;
    const auto& generator = last_ != nullptr && group == shape_.groups - 1 ? last_ : whole_;
    generator->entry<ColumnsWalk::Function>()(src + offset, dst + offset, maxima, sums);
  }

  const Shape shape_;
  const std::unique_ptr<const ColumnsWalk> whole_, last_;  // last_: of a smaller group
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
  Columns::Shape shape{};
  shape.groups = DivUp(abreast, config.rows);
  const int64_t padded_size = in_blocks ? RoundUp(config.size, unit.lanes()) : config.size;
  shape.outer_step = padded_size * abreast;
  shape.outer = desc.src.PaddedElementCount() / shape.outer_step;
  shape.group_step = config.rows * (in_blocks ? unit.lanes() : 1);
  shape.group_elements = config.rows * padded_size;
  ABSL_ASSIGN_OR_RETURN(auto whole, jit::Compile<ColumnsWalk>(request.facts.name, config));
  PrimitiveInfo info = WithCode(InfoOf(request), *whole);
  std::unique_ptr<const ColumnsWalk> last;
  if (abreast % config.rows != 0) {
    config.rows = abreast % config.rows;
    ABSL_ASSIGN_OR_RETURN(last, jit::Compile<ColumnsWalk>(request.facts.name, config));
    info = WithCode(std::move(info), *last);
  }
  return std::make_unique<Columns>(std::move(info), shape, std::move(whole), std::move(last));
}

}  // namespace tilewire::softmax
