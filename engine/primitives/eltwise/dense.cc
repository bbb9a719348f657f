// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/jit/eltwise_emitter.h"
#include "engine/kernels/elements/dense_run.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/element_primitives.h"
#include "engine/primitives/eltwise/implementations.h"

namespace tilewire::eltwise {
namespace {

class DenseGenerator final : public DenseRunGenerator {
 public:
  DenseGenerator(absl::string_view name, const EltwiseOp& op, DataType type, const VectorUnit& unit)
      : DenseRunGenerator(name, {.unit = unit, .srcs = {type}, .dst = type}),
        emitter_(this, unit, op, {.table = rax, .scratch = {4, 5, 6, 7, 8}, .mask = k1}) {}

 private:
  void EmitConstants() override { emitter_.LoadTable(); }
  void EmitVectors(int vectors) override {
    std::vector<int> registers;
    for (int v = 0; v < vectors; ++v) {
      Load(0, v, Value(v));
      registers.push_back(v);
    }
    emitter_.Apply(registers);
  }
  void EmitTables() override { emitter_.EmitTable(); }

  jit::EltwiseEmitter emitter_;
};

}  // namespace

absl::StatusOr<EltwiseDesc> ResolveDense(const Request<EltwiseDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(EltwiseDesc resolved, ResolveReference(request));
  if (resolved.src != resolved.dst) {
    return Unimplemented("layouts of src and dst differ");
  }
  if (!resolved.dst.IsDense()) return Unimplemented("not dense");
  if (!functions::HasCode(resolved.op.function))
    return Unimplemented(functions::RowOf(resolved.op.function).no_code);
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDense(const Request<EltwiseDesc>& request) {
  const EltwiseDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<DenseGenerator>(
                                            request.facts.name, desc.op, desc.dst.data_type(),
                                            VectorUnit::Of(request.facts.isa)));
  return MakeDensePrimitive(InfoOf(request), /*stay_zero=*/functions::PreservesZero(desc.op),
                            std::move(generator));
}

}  // namespace tilewire::eltwise
