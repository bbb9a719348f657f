// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/kernels/elements/dense_run.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/element_primitives.h"
#include "engine/primitives/sum/implementations.h"

namespace tilewire::sum {
namespace {

class DenseGenerator final : public DenseRunGenerator {
 public:
  DenseGenerator(absl::string_view name, const std::vector<float>& scales, DataType type,
                 const VectorUnit& unit)
      : DenseRunGenerator(
            name, {.unit = unit, .srcs = std::vector<DataType>(scales.size(), type), .dst = type}),
        scales_(scales) {}

 private:
  Xbyak::Xmm Term(int v) const { return Vector(kFree + v); }
  Xbyak::Xmm Scale() const { return Vector(kFree + kUnroll); }

  void EmitConstants() override { lea(scale_, ptr[rip + scale_table_]); }

  void EmitVectors(int vectors) override {
    for (int i = 0; i < static_cast<int>(scales_.size()); ++i) {
      vbroadcastss(Scale(), ptr[scale_ + i * static_cast<int>(sizeof(float))]);
      for (int v = 0; v < vectors; ++v) {
        const Xbyak::Xmm term = i == 0 ? Value(v) : Term(v);
        Load(i, v, term);
        vmulps(term, term, Scale());
        if (i > 0) vaddps(Value(v), Value(v), term);
      }
    }
  }

  void EmitTables() override {
    L(scale_table_);
    for (float scale : scales_) dd(std::bit_cast<uint32_t>(scale));
  }

  const Xbyak::Reg64 scale_ = rax;  // address of the scales
  const std::vector<float> scales_;
  Xbyak::Label scale_table_;
};

}  // namespace

absl::StatusOr<SumDesc> ResolveDense(const Request<SumDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(SumDesc resolved, ResolveReference(request));
  if (!resolved.dst.IsDense()) return Unimplemented("dst is not dense");
  for (const MemoryDesc& src : resolved.srcs) {
    if (src != resolved.dst) return Unimplemented("layouts differ");
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDense(const Request<SumDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(auto generator,
                        jit::Compile<DenseGenerator>(request.facts.name, request.desc.scales,
                                                     request.desc.dst.data_type(),
                                                     VectorUnit::Of(request.facts.isa)));
  return MakeDensePrimitive(InfoOf(request), /*stay_zero=*/false, std::move(generator));
}

}  // namespace tilewire::sum
