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

// Immutable. The padded tail needs no care: its line is 0 src + 0, and relu keeps zero.
class Rows final : public Primitive {
 public:
  Rows(PrimitiveInfo primitive_info, const BatchNormalizationDesc& desc, const MemoryDesc& line,
       ElementwisePlan plan, std::unique_ptr<const Generator> generator)
      : Primitive(std::move(primitive_info)),
        desc_(desc),
        line_(line),
        line_elements_(line.PaddedElementCount()),
        plan_(std::move(plan)),
        generator_(std::move(generator)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    if (desc_.dst.ElementCount() == 0) return;
    auto* a = reinterpret_cast<float*>(scratchpad);
    float* b = a + line_elements_;
    FillLines(ParametersOf(desc_, args), a, b);
    plan_.Run(generator_->entry<ElementwiseGenerator::Function>(), First<float>(args, kArgDst),
              {First<const float>(args, kArgSrc), a, b}, team);
  }

  void FillLines(const ChannelParameters& parameters, float* a, float* b) const {
    std::fill_n(a, 2 * line_elements_, 0.0f);
    for (int64_t c = 0; c < desc_.src.dim(1); ++c) {
      const double scale = (parameters.scale == nullptr ? 1 : parameters.scale[c]) /
                           std::sqrt(static_cast<double>(parameters.variance[c]) + desc_.epsilon);
      const double shift = parameters.shift == nullptr ? 0 : parameters.shift[c];
      const int64_t at = line_.At(1, c);
      a[at] = static_cast<float>(scale);
      b[at] = static_cast<float>(shift - scale * parameters.mean[c]);
    }
  }

  const BatchNormalizationDesc desc_;
  const SeparableOffsets line_;
  const int64_t line_elements_;
  const ElementwisePlan plan_;
  const std::unique_ptr<const Generator> generator_;
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
  PrimitiveInfo info = WithCode(InfoOf(request), *generator);
  info.scratchpad_bytes = 2 * line.PaddedElementCount() * static_cast<int64_t>(sizeof(float));
  return std::make_unique<Rows>(std::move(info), desc, line, std::move(plan), std::move(generator));
}

}  // namespace tilewire::batch_normalization
