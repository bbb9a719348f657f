// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/moves/strided_loops.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reduction/implementations.h"
#include "engine/primitives/reduction/kernel_generator.h"
#include "engine/primitives/single_source.h"

namespace tilewire::reduction {
namespace {

constexpr int64_t kColumnsPerTask = 1024;
constexpr int64_t kElementsPerTask = 16 * 1024;
constexpr int64_t kMostSharedElements = int64_t{1} << 26;

// src's loops, sorted by what becomes of them. Strides: src's, dst's.
struct Plan {
  std::vector<StridedLoop> kept;  // without `columns`
  StridedLoop outer, inner;       // reduced
  int64_t line = 0, columns = 1;  // the innermost loop: reduced (line > 0) or kept
};

absl::StatusOr<Plan> PlanOf(const ReductionDesc& desc) {
  ABSL_ASSIGN_OR_RETURN(std::vector<StridedLoop> loops, LoopsOver({&desc.src, &desc.dst}));
  Plan plan;
  plan.outer.strides = plan.inner.strides = {0, 0};
  if (!loops.empty()) {
    const StridedLoop innermost = loops.back();
    loops.pop_back();
    if (innermost.strides[0] != 1 || innermost.strides[1] > 1) {
      return Unimplemented("elements do not follow each other");
    }
    (innermost.strides[1] == 0 ? plan.line : plan.columns) = innermost.count;
  }
  int reduced = 0;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    if (loop->strides[1] != 0) {
      plan.kept.insert(plan.kept.begin(), *loop);
    } else if (++reduced > 2) {
      return Unimplemented("reduces more than two loops beside the innermost");
    } else {
      (reduced == 1 ? plan.inner : plan.outer) = *loop;
    }
    if (loop->strides[0] > std::numeric_limits<int32_t>::max() / 4) {
      return Unimplemented("a step beyond 31 bits");
    }
  }
  return plan;
}

// Immutable.
class Strided final : public SingleSource<float> {
 public:
  Strided(PrimitiveInfo primitive_info, const ReductionDesc& desc, Plan plan,
          std::unique_ptr<const KernelGenerator> generator)
      : SingleSource(std::move(primitive_info), /*spoils_padding=*/true),
        desc_(desc),
        plan_(std::move(plan)),
        generator_(std::move(generator)) {
    for (const StridedLoop& loop : plan_.kept) kept_count_ *= loop.count;
    const int64_t reduced =
        plan_.outer.count * plan_.inner.count * std::max<int64_t>(plan_.line, 1);
    results_per_task_ =
        kElementsPerTask / std::max<int64_t>(1, std::min(kElementsPerTask, reduced) *
                                                    std::min(kElementsPerTask, plan_.columns));
    results_per_task_ = std::max<int64_t>(1, results_per_task_);
  }

 private:
  void RunOn(const float* src, float* dst, const threading::Team& team) const override {
    if (desc_.dst.ElementCount() == 0) return;
    const int64_t pieces = DivUp(plan_.columns, kColumnsPerTask);
    const int64_t groups = DivUp(kept_count_, results_per_task_);
    team.ParallelFor(groups * pieces, [&](int64_t task) {
      const int64_t column = task % pieces * kColumnsPerTask;
      const int64_t first = task / pieces * results_per_task_;
      const int64_t end = std::min(first + results_per_task_, kept_count_);
      for (int64_t kept = first; kept < end; ++kept) {
        const KernelArgs kernel_args = {src + Offset(kept, 0) + column,
                                        dst + Offset(kept, 1) + column,
                                        std::min(kColumnsPerTask, plan_.columns - column)};
        generator_->entry<KernelGenerator::Function>()(&kernel_args);
      }
    });
  }

  // The offset of the kept position `kept` in src (0) or dst (1).
  int64_t Offset(int64_t kept, int tensor) const { return OffsetIn(plan_.kept, kept, tensor); }

  const ReductionDesc desc_;
  const Plan plan_;
  int64_t kept_count_ = 1, results_per_task_ = 1;
  const std::unique_ptr<const KernelGenerator> generator_;
};

}  // namespace

absl::Status RequireOwnMemory(const MemoryDesc& src) {
  const int64_t elements = src.ElementCount();
  if (elements <= kMostSharedElements || src.SizeBytes() / SizeOf(src.data_type()) >= elements) {
    return absl::OkStatus();
  }
  return Unimplemented("takes ", kMostSharedElements, " elements that share memory, not ",
                       elements);
}

absl::StatusOr<ReductionDesc> ResolveStrided(const Request<ReductionDesc>& request) {
  const ReductionDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(ReductionDesc resolved, ResolveReference(request));
  // The padded tail of a reduced dimension is read: zeros, which sums do not notice.
  const bool notices = IsExtremum(desc.algorithm) || desc.algorithm == ReductionAlgorithm::kMul;
  for (int d = 0; notices && d < desc.src.rank(); ++d) {
    if (desc.dst.dim(d) == 1 && desc.src.dim(d) != desc.src.padded_dims()[d]) {
      return Unimplemented("dimension ", d, " of src has a padded tail");
    }
  }
  if (desc.src.ElementCount() == 0 && desc.dst.ElementCount() != 0)
    return Unimplemented("reduces no element");
  ABSL_RETURN_IF_ERROR(RequireOwnMemory(desc.src));
  ABSL_RETURN_IF_ERROR(PlanOf(resolved).status());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateStrided(const Request<ReductionDesc>& request) {
  const ReductionDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(Plan plan, PlanOf(desc));
  constexpr int64_t kFloatBytes = sizeof(float);
  KernelConfig config{.unit = VectorUnit::Of(request.facts.isa)};
  config.algorithm = desc.algorithm;
  config.p = desc.p;
  config.eps = desc.eps;
  config.reduced_count = ReducedCount(desc);
  config.outer = {plan.outer.count, plan.outer.strides[0] * kFloatBytes};
  config.inner = {plan.inner.count, plan.inner.strides[0] * kFloatBytes};
  config.line = plan.line;
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<KernelGenerator>(request.facts.name, config));
  return std::make_unique<Strided>(WithCode(InfoOf(request), *generator), desc, std::move(plan),
                                   std::move(generator));
}

}  // namespace tilewire::reduction
