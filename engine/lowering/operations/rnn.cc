// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {
namespace {

using Role = network::Rnn::Role;

// Where a role is in the descriptor, and the argument that it is.
struct Slot {
  MemoryDesc RnnDesc::*desc;
  int arg;
};
// By role.
constexpr Slot kSlots[] = {{&RnnDesc::src_layer, kArgSrc},
                           {&RnnDesc::weights_layer, kArgWeights},
                           {&RnnDesc::weights_iter, kArgWeightsIter},
                           {&RnnDesc::bias, kArgBias},
                           {&RnnDesc::weights_peephole, kArgWeightsPeephole},
                           {&RnnDesc::src_iter, kArgSrcIter},
                           {&RnnDesc::src_iter_c, kArgSrcIterC},
                           {&RnnDesc::sequence_lengths, kArgSequenceLengths}};
const Slot& SlotOf(Role role) { return kSlots[static_cast<int>(role)]; }

bool IsWeights(Role role) { return role >= Role::kWeightsLayer && role <= Role::kPeephole; }

// dst_layer is the first steps of the result, dst_iter and dst_iter_c the steps after them.
absl::Status SetResults(const network::Rnn& rnn, const Dims& dims, RnnDesc* desc) {
  const int directions = functions::DirectionsOf(rnn.direction);
  const int64_t steps = dims[0] - rnn.gives_iter - rnn.gives_iter_c;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc whole,
                        MemoryDesc::CreatePattern(dims, DataType::kF32, "abc"));
  ABSL_ASSIGN_OR_RETURN(desc->dst_layer, whole.SubMemory({steps, dims[1], dims[2]}, {0, 0, 0}));
  const Dims apart = {dims[0], dims[1], directions, dims[2] / directions};
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc split,
                        MemoryDesc::CreatePattern(apart, DataType::kF32, "abcd"));
  const auto state = [&](int64_t step) -> absl::StatusOr<MemoryDesc> {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc one,
                          split.SubMemory({1, apart[1], apart[2], apart[3]}, {step, 0, 0, 0}));
    return one.Permuted({0, 2, 1, 3});
  };
  if (rnn.gives_iter) {
    ABSL_ASSIGN_OR_RETURN(desc->dst_iter, state(steps));
  }
  if (rnn.gives_iter_c) {
    ABSL_ASSIGN_OR_RETURN(desc->dst_iter_c, state(steps + rnn.gives_iter));
  }
  return absl::OkStatus();
}

// Weights as the primitive wants them, everything else in row-major order.
absl::StatusOr<RnnDesc> DescOf(const network::Rnn& rnn, OperationContext& context) {
  RnnDesc desc{PropKind::kForwardInference,
               rnn.cell,
               rnn.direction,
               rnn.activations,
               rnn.clip,
               rnn.couples_gates};
  for (size_t i = 0; i < rnn.roles.size(); ++i) {
    MemoryDesc& tensor = desc.*SlotOf(rnn.roles[i]).desc;
    if (IsWeights(rnn.roles[i])) {
      ABSL_ASSIGN_OR_RETURN(tensor, context.AnyDesc(context.src(i)));
    } else {
      ABSL_ASSIGN_OR_RETURN(tensor, context.RowMajorDesc(context.src(i)));
    }
  }
  for (const auto& [role, weights] : rnn.known) {
    ABSL_ASSIGN_OR_RETURN(desc.*SlotOf(role).desc,
                          MemoryDesc::CreateAny(weights.dims, DataType::kF32));
  }
  ABSL_RETURN_IF_ERROR(SetResults(rnn, context.dst_value().dims, &desc));
  return desc;
}

}  // namespace

// One step. Its results lie one after the other in one buffer.
absl::Status LowerRnn(const network::Rnn& rnn, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(RnnDesc desc, DescOf(rnn, context));
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc));
  Bindings bindings;
  for (size_t i = 0; i < rnn.roles.size(); ++i) {
    const int arg = SlotOf(rnn.roles[i]).arg;
    ABSL_ASSIGN_OR_RETURN(const Place src, context.InLayout(context.src(i), primitive->Desc(arg)));
    bindings.push_back({arg, src.buffer});
  }
  const LoweringContext& settings = context.settings();
  for (const auto& [role, weights] : rnn.known) {
    const int arg = SlotOf(role).arg;
    ABSL_ASSIGN_OR_RETURN(auto packed,
                          settings.weights->Pack(weights, primitive->Desc(arg), settings.team));
    if (weights.own) context.plan().CountOwn(*packed);
    bindings.push_back(context.plan().Constant(arg, std::move(packed)));
  }
  context.ConsumeSources();
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc whole, context.RowMajorDesc(context.dst()));
  const Place dst = context.plan().NewPlace(whole);
  for (int arg : {kArgDst, kArgDstIter, kArgDstIterC}) {
    if (!primitive->Desc(arg).IsZero()) bindings.push_back({arg, dst.buffer});
  }
  context.Emit(std::move(primitive), std::move(bindings));
  return context.BindResult(dst);
}

}  // namespace tilewire::lowering
