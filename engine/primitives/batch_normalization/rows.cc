// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/elements/elementwise_kernel.h"
#include "engine/kernels/elements/elementwise_plan.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/batch_normalization/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"

namespace tilewire::batch_normalization {
namespace {

class Generator final : public ElementwiseGenerator {
 public:
  Generator(absl::string_view name, const ElementwiseConfig& config)
      : ElementwiseGenerator(name, config) {}

 private:
  void EmitFunction(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others,
                    const Xbyak::Xmm&) override {
    vfmadd213ps(value, others[0], others[1]);
  }
};

// The padded tail needs no care: its line is 0 src + 0, and relu keeps zero.
struct LinesDriver {
  void Run(const DrivenRun& run) const {
    if (desc.dst.ElementCount() == 0) return;
    auto* a = reinterpret_cast<float*>(run.scratchpad);
    float* b = a + line_elements;
    FillLines(ParametersOf(desc, run.args), a, b);
    plan.Run(generator->entry<ElementwiseGenerator::Function>(), run.First<float>(kArgDst),
             {run.First<const float>(kArgSrc), a, b}, run.team);
  }
  size_t code_bytes() const { return generator->code_bytes(); }

  void FillLines(const ChannelParameters& parameters, float* a, float* b) const {
    std::fill_n(a, 2 * line_elements, 0.0f);
    for (int64_t c = 0; c < desc.src.dim(1); ++c) {
      const double scale = (parameters.scale == nullptr ? 1 : parameters.scale[c]) /
                           std::sqrt(static_cast<double>(parameters.variance[c]) + desc.epsilon);
      const double shift = parameters.shift == nullptr ? 0 : parameters.shift[c];
      const int64_t at = line.At(1, c);
      a[at] = static_cast<float>(scale);
      b[at] = static_cast<float>(shift - scale * parameters.mean[c]);
    }
  }

  BatchNormalizationDesc desc;
  SeparableOffsets line;
  int64_t line_elements;
  ElementwisePlan plan;
  std::unique_ptr<const Generator> generator;
};

// One number per channel, in dst's layout.
absl::StatusOr<MemoryDesc> LineOf(const BatchNormalizationDesc& desc) {
  for (const InnerBlock& block : desc.dst.inner_blocks()) {
    if (block.dim != 1) return Unimplemented("blocked on another axis than 1");
  }
  Dims dims(desc.dst.rank(), 1);
  dims[1] = desc.dst.dim(1);
  return MemoryDesc::CreatePattern(dims, DataType::kF32, LayoutPattern(desc.dst));
}

absl::StatusOr<ElementwisePlan> PlanOf(const BatchNormalizationDesc& desc, const MemoryDesc& line,
                                       cpu::Isa isa) {
  return ElementwisePlan::Create({&desc.dst, &desc.src, &line, &line}, VectorUnit::Of(isa));
}

}  // namespace

absl::StatusOr<BatchNormalizationDesc> ResolveRows(const Request<BatchNormalizationDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(BatchNormalizationDesc resolved, ResolveReference(request));
  if (!request.desc.use_global_stats) return Unimplemented("statistics are not given");
  if (HasAddend(request.desc)) return Unimplemented("adds nothing");
  if (SavesBits(request.desc)) return Unimplemented("saves no bits of what relu lets through");
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc line, LineOf(resolved));
  ABSL_RETURN_IF_ERROR(PlanOf(resolved, line, request.facts.isa).status());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(
    const Request<BatchNormalizationDesc>& request) {
  const BatchNormalizationDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc line, LineOf(desc));
  ABSL_ASSIGN_OR_RETURN(ElementwisePlan plan, PlanOf(desc, line, request.facts.isa));
  ABSL_ASSIGN_OR_RETURN(auto generator,
                        jit::Compile<Generator>(request.facts.name,
                                                plan.Config(PostOpsOf(desc, request.attributes))));
  PrimitiveInfo info = InfoOf(request);
  const int64_t elements = line.PaddedElementCount();
  info.scratchpad_bytes = 2 * elements * static_cast<int64_t>(sizeof(float));
  return MakeDriven(std::move(info), LinesDriver{desc, SeparableOffsets(line), elements,
                                                 std::move(plan), std::move(generator)});
}

}  // namespace tilewire::batch_normalization
