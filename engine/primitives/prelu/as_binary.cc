// SPDX-License-Identifier: Apache-2.0
//
// A prelu is a binary function of src and weights, under other names of arguments: what stands here
// exchanges them.
#include <memory>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/primitives/binary/binary.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/prelu/implementations.h"
#include "engine/primitives/reordered.h"

namespace tilewire::prelu {
namespace {

// The binary function's name of an argument.
int ArgInside(int arg) {
  if (arg == kArgWeights) return kArgSrc1;
  return arg == kArgDiffWeights ? kArgDiffSrc1 : arg;
}

absl::StatusOr<BinaryDesc> BinaryOf(const PreluDesc& desc) {
  BinaryDesc inner;
  inner.algorithm = BinaryAlgorithm::kPRelu;
  inner.src0 = desc.src;
  ABSL_ASSIGN_OR_RETURN(inner.src1, WeightsOf(desc));
  inner.dst = desc.dst;
  if (!IsBackward(desc.prop_kind)) return inner;
  inner.prop_kind = PropKind::kBackwardData;
  inner.dst = desc.src;  // a shape
  inner.diff_src0 = desc.diff_src;
  if (desc.prop_kind == PropKind::kBackward) inner.diff_src1 = inner.src1;
  inner.diff_dst = desc.diff_dst;
  return inner;
}

// The row of the same instruction set.
absl::StatusOr<Candidate<BinaryDesc>> AskBinary(const Request<PreluDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(const BinaryDesc inner, BinaryOf(request.desc));
  for (const Implementation<BinaryDesc>& row : BinaryImplementations()) {
    if (row.isa != request.facts.isa || !row.traits.propagations.Has(inner.prop_kind)) continue;
    return Ask(row, {inner, request.attributes, row, request.machine});
  }
  return Unimplemented("has no binary function");
}

// Immutable.
class AsBinary final : public Primitive {
 public:
  AsBinary(PrimitiveInfo info, std::unique_ptr<const Primitive> inner)
      : Primitive(std::move(info)), inner_(std::move(inner)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    ExecuteArgs inside;
    for (const ArgDesc& entry : info().args) inside.Set(ArgInside(entry.arg), args.Find(entry.arg));
    ExecuteStage(*inner_, inside, scratchpad, team);
  }

  const std::unique_ptr<const Primitive> inner_;
};

}  // namespace

absl::StatusOr<PreluDesc> ResolveAsBinary(const Request<PreluDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(const Candidate<BinaryDesc> inner, AskBinary(request));
  PreluDesc resolved = request.desc;
  resolved.weights = inner.resolved.src1;
  if (!IsBackward(resolved.prop_kind)) {
    resolved.dst = inner.resolved.dst;
    return resolved;
  }
  resolved.diff_src = inner.resolved.diff_src0;
  resolved.diff_dst = inner.resolved.diff_dst;
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAsBinary(const Request<PreluDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(const Candidate<BinaryDesc> found, AskBinary(request));
  Attributes inside = request.attributes;
  inside.scratchpad_mode = ScratchpadMode::kUser;
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<Primitive> inner,
                        found.row->create({found.resolved, inside, *found.row, request.machine}));
  ABSL_RETURN_IF_ERROR(FinishCreation(inside, {}, inner.get()));
  PrimitiveInfo info = InfoOfPrelu(request);
  info.code_bytes = inner->info().code_bytes;
  info.scratchpad_bytes = inner->info().scratchpad_bytes;
  return std::make_unique<AsBinary>(std::move(info), std::move(inner));
}

}  // namespace tilewire::prelu
