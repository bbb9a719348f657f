// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/elements/dense_run.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reorder/implementations.h"
#include "engine/primitives/single_source.h"
#include "engine/threading/ranges.h"

namespace tilewire::reorder {
namespace {

// The kernel: dst = convert(scale * src + sum_scale * dst).
struct DenseConfig {
  // One: the constant of a run. Many: one per element, the second source.
  enum class Scales { kNone, kOne, kMany };
  VectorUnit unit;
  DataType src_type = DataType::kF32, dst_type = DataType::kF32;
  Scales scales = Scales::kNone;
  bool adds = false;
  float sum_scale = 1;
};

constexpr int kOther = 4;  // vector register: of what dst holds, or of scales
constexpr int kSumScale = 5, kScale = 6;

std::vector<DataType> SourcesOf(const DenseConfig& config) {
  if (config.scales != DenseConfig::Scales::kMany) return {config.src_type};
  return {config.src_type, DataType::kF32};
}

class DenseGenerator final : public DenseRunGenerator {
 public:
  DenseGenerator(absl::string_view name, const DenseConfig& config)
      : DenseRunGenerator(name, {.unit = config.unit,
                                 .srcs = SourcesOf(config),
                                 .dst = config.dst_type,
                                 .reads_dst = config.adds}),
        config_(config) {}

 private:
  void EmitConstants() override {
    if (config_.adds) Broadcast(Vector(kSumScale), config_.sum_scale);
    if (config_.scales == DenseConfig::Scales::kOne) vbroadcastss(Vector(kScale), ptr[constants_]);
  }

  void EmitVectors(int vectors) override {
    const Xbyak::Xmm other = Vector(kOther);
    for (int v = 0; v < vectors; ++v) Load(0, v, Value(v));
    for (int v = 0; v < vectors; ++v) {
      const Xbyak::Xmm value = Value(v);
      if (config_.scales == DenseConfig::Scales::kOne) {
        vmulps(value, value, Vector(kScale));
      } else if (config_.scales == DenseConfig::Scales::kMany) {
        Load(1, v, other);
        vmulps(value, value, other);
      }
      if (config_.adds) {
        LoadDst(v, other);
        vmulps(other, other, Vector(kSumScale));
        vaddps(value, value, other);
      }
    }
  }

  const DenseConfig config_;
};

// One call of the kernel takes so many, and so does a piece of work.
constexpr int64_t kRunElements = DenseRunGenerator::kElementsAtOnce;
constexpr int64_t kRowElements = 512;  // rows of scales are repeated up to about as many

// A loop over a dimension or over an inner block of one.
struct Loop {
  int dim;
  int64_t count;
  int64_t index_step;  // of the dimension's index
  bool scaled;         // the scales vary along it
};

// In the order of memory, outermost first.
std::vector<Loop> LoopsOf(const MemoryDesc& desc, int mask) {
  std::vector<int> order(desc.rank());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return desc.stride(a) > desc.stride(b); });
  std::vector<Loop> loops;
  for (int d : order) {
    const int64_t count = desc.padded_dims()[d] / desc.BlockSize(d);
    if (count != 1) loops.push_back({d, count, desc.BlockSize(d), (mask >> d & 1) != 0});
  }
  std::vector<int64_t> left(desc.rank());
  for (int d = 0; d < desc.rank(); ++d) left[d] = desc.BlockSize(d);
  for (const InnerBlock& block : desc.inner_blocks()) {
    left[block.dim] /= block.size;
    loops.push_back({block.dim, block.size, left[block.dim], (mask >> block.dim & 1) != 0});
  }
  return loops;
}

struct Plan {
  std::vector<Loop> outer;       // over runs
  int64_t row = 1, repeats = 1;  // a run: rows of scales, one after the other
  int64_t rows_at_once = 1;      // of one call of the kernel
  int64_t outer_count = 1;
  std::vector<float> scales;  // [scaled outer loops][rows at once, in vectors][row]
};

// The scale of an element whose index along each dimension is given; 0 in the padded tail.
float ScaleAt(const OutputScales& scales, const MemoryDesc& desc, const Dims& index) {
  int64_t at = 0;
  for (int d = 0; d < desc.rank(); ++d) {
    if ((scales.mask >> d & 1) == 0) continue;
    if (index[d] >= desc.dim(d)) return 0;
    at = at * desc.dim(d) + index[d];
  }
  return scales.scales[at];
}

// One row for each index of the scaled outer loops.
void FillScales(const OutputScales& scales, const MemoryDesc& desc, const std::vector<Loop>& scaled,
                Plan* plan) {
  int64_t count = 1;
  for (const Loop& loop : scaled) count *= loop.count;
  const int64_t copies = plan->row == 1 ? 1 : plan->rows_at_once;
  for (int64_t first = 0; first < count; first += plan->row) {
    for (int64_t copy = 0; copy < copies; ++copy) {
      for (int64_t i = first; i < first + plan->row; ++i) {
        Dims index(desc.rank(), 0);
        int64_t rest = i;
        for (auto loop = scaled.rbegin(); loop != scaled.rend(); ++loop) {
          index[loop->dim] += rest % loop->count * loop->index_step;
          rest /= loop->count;
        }
        plan->scales.push_back(ScaleAt(scales, desc, index));
      }
    }
  }
}

Plan MakePlan(const MemoryDesc& desc, const OutputScales& scales) {
  Plan plan;
  plan.outer = LoopsOf(desc, scales.mask);
  std::vector<Loop> scaled;
  for (const Loop& loop : plan.outer) {
    if (loop.scaled) scaled.push_back(loop);
  }
  while (!plan.outer.empty() && plan.outer.back().scaled) {
    plan.row *= plan.outer.back().count;
    plan.outer.pop_back();
  }
  while (!plan.outer.empty() && !plan.outer.back().scaled) {
    plan.repeats *= plan.outer.back().count;
    plan.outer.pop_back();
  }
  for (const Loop& loop : plan.outer) plan.outer_count *= loop.count;
  if (desc.ElementCount() == 0) return plan;
  const int64_t most = plan.row == 1 ? kRunElements : std::max<int64_t>(1, kRowElements / plan.row);
  plan.rows_at_once = std::min(plan.repeats, most);
  if (!scales.IsDefault()) FillScales(scales, desc, scaled, &plan);
  return plan;
}

// Immutable.
class Dense final : public SingleSource<std::byte> {
 public:
  Dense(PrimitiveInfo info, const ReorderDesc& desc, Plan plan,
        std::unique_ptr<const DenseGenerator> generator)
      : SingleSource(std::move(info), /*spoils_padding=*/true),
        desc_(desc),
        src_bytes_(SizeOf(desc.src.data_type())),
        dst_bytes_(SizeOf(desc.dst.data_type())),
        plan_(std::move(plan)),
        calls_a_run_(DivUp(plan_.repeats, plan_.rows_at_once)),
        generator_(std::move(generator)) {}

 private:
  void RunOn(const std::byte* src, std::byte* dst, const threading::Team& team) const override {
    if (desc_.dst.ElementCount() == 0) return;
    const int64_t calls = plan_.outer_count * calls_a_run_;
    const int64_t at_once = threading::ItemsAtOnce(kRunElements, plan_.rows_at_once * plan_.row);
    threading::ParallelForItems(team, calls, at_once,
                                [&](int64_t call) { RunCall(src, dst, call); });
  }

  void RunCall(const std::byte* src, std::byte* dst, int64_t call) const {
    const int64_t run = call / calls_a_run_;
    const int64_t repeat = call % calls_a_run_ * plan_.rows_at_once;
    const int64_t first = (run * plan_.repeats + repeat) * plan_.row;
    const int64_t count = std::min(plan_.rows_at_once, plan_.repeats - repeat) * plan_.row;
    const float* scales = ScalesOf(run);
    absl::InlinedVector<const std::byte*, 2> srcs = {src + first * src_bytes_};
    if (plan_.row > 1 && scales != nullptr)
      srcs.push_back(reinterpret_cast<const std::byte*>(scales));
    generator_->Run(srcs, dst + first * dst_bytes_, count, scales);
  }

  const float* ScalesOf(int64_t run) const {
    if (plan_.scales.empty()) return nullptr;
    int64_t row = 0, step = 1;  // of the scaled outer loops
    for (auto loop = plan_.outer.rbegin(); loop != plan_.outer.rend(); ++loop) {
      if (loop->scaled) {
        row += run % loop->count * step;
        step *= loop->count;
      }
      run /= loop->count;
    }
    return plan_.scales.data() + row * (plan_.row == 1 ? 1 : plan_.rows_at_once * plan_.row);
  }

  const ReorderDesc desc_;
  const int64_t src_bytes_, dst_bytes_;
  const Plan plan_;
  const int64_t calls_a_run_;
  const std::unique_ptr<const DenseGenerator> generator_;
};

DenseConfig DenseConfigOf(const ReorderDesc& desc, const Attributes& attributes, const Plan& plan,
                          const VectorUnit& unit) {
  using Scales = DenseConfig::Scales;
  DenseConfig config{.unit = unit};
  config.src_type = desc.src.data_type();
  config.dst_type = desc.dst.data_type();
  if (!plan.scales.empty()) config.scales = plan.row == 1 ? Scales::kOne : Scales::kMany;
  for (const PostOp& entry : attributes.post_ops.entries()) {
    config.adds = true;
    config.sum_scale = std::get<SumPostOp>(entry).scale;
  }
  return config;
}

}  // namespace

absl::StatusOr<ReorderDesc> ResolveDense(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  if (RequirePlainCopy(desc, request.attributes).ok()) return Unimplemented("a copy of bytes");
  ABSL_RETURN_IF_ERROR(RequireBlocked(desc));
  ABSL_RETURN_IF_ERROR(RequireSumAtMost(desc, request.attributes));
  if (desc.src.strides() != desc.dst.strides() ||
      desc.src.inner_blocks() != desc.dst.inner_blocks()) {
    return Unimplemented("layouts differ");
  }
  if (!desc.dst.IsDense()) return Unimplemented("not dense");
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDense(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  Plan plan = MakePlan(desc.dst, request.attributes.output_scales);
  ABSL_ASSIGN_OR_RETURN(
      auto generator, jit::Compile<DenseGenerator>(
                          request.facts.name, DenseConfigOf(desc, request.attributes, plan, unit)));
  return std::make_unique<Dense>(WithCode(InfoOf(request), *generator), desc, std::move(plan),
                                 std::move(generator));
}

}  // namespace tilewire::reorder
