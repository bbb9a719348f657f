// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/rnn/implementations.h"
#include "engine/primitives/rnn/rnn.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace rnn {
namespace {

absl::Status Expect(absl::string_view name, const MemoryDesc& desc, const Dims& dims) {
  if (desc.IsZero() || desc.dims() == dims) return absl::OkStatus();
  return InvalidArgument("rnn: ", name, " is ", DimsToString(desc.dims()), ", expected ",
                         DimsToString(dims));
}

absl::Status ValidateStates(const RnnDesc& desc, const RnnSizes& sizes) {
  const Dims state = {1, sizes.directions, sizes.sequences, sizes.states};
  ABSL_RETURN_IF_ERROR(Expect("src_iter", desc.src_iter, state));
  ABSL_RETURN_IF_ERROR(Expect("src_iter_c", desc.src_iter_c, state));
  ABSL_RETURN_IF_ERROR(Expect("dst_iter", desc.dst_iter, state));
  ABSL_RETURN_IF_ERROR(Expect("dst_iter_c", desc.dst_iter_c, state));
  for (const MemoryDesc* tensor : {&desc.dst_iter, &desc.dst_iter_c}) {
    if (!tensor->IsZero()) ABSL_RETURN_IF_ERROR(CheckDestination("rnn: dst_iter", *tensor));
  }
  const Dims layer = {sizes.steps, sizes.sequences,
                      sizes.states * functions::StatesPerResult(desc.direction)};
  ABSL_RETURN_IF_ERROR(Expect("dst_layer", desc.dst_layer, layer));
  return Expect("sequence_lengths", desc.sequence_lengths, {sizes.sequences});
}

absl::Status ValidateWeights(const RnnDesc& desc, const RnnSizes& sizes) {
  const int64_t directions = sizes.directions, gates = sizes.gates;
  ABSL_RETURN_IF_ERROR(Expect("weights_layer", desc.weights_layer,
                              {1, directions, sizes.inputs, gates, sizes.states}));
  ABSL_RETURN_IF_ERROR(Expect("weights_iter", desc.weights_iter,
                              {1, directions, sizes.states, gates, sizes.states}));
  ABSL_RETURN_IF_ERROR(
      Expect("weights_peephole", desc.weights_peephole, {1, directions, 3, sizes.states}));
  return Expect("bias", desc.bias, {1, directions, sizes.bias_gates, sizes.states});
}

constexpr float kLeastNormal = std::numeric_limits<float>::min();

absl::Status ValidateFunctions(const RnnDesc& desc) {
  const int wanted = functions::DirectionsOf(desc.direction) * functions::ActivationsOf(desc.cell);
  if (static_cast<int>(desc.activations.size()) != wanted) {
    return InvalidArgument("rnn: ", desc.activations.size(), " activations, expected ", wanted);
  }
  for (const RnnActivation& activation : desc.activations)
    ABSL_RETURN_IF_ERROR(functions::CheckHasCode("rnn: activation", activation.function));
  // Denormals count as 0 while a primitive runs, and 0 stands for no bound.
  const auto bits = std::bit_cast<uint32_t>(desc.clip);
  const bool is_denormal = bits > 0 && bits < std::bit_cast<uint32_t>(kLeastNormal);
  if (!std::isfinite(desc.clip) || desc.clip < 0 || is_denormal) {
    return InvalidArgument("rnn: clip ", desc.clip);
  }
  const bool has_memory =
      desc.couples_gates || !desc.src_iter_c.IsZero() || !desc.dst_iter_c.IsZero();
  if (desc.cell != RnnCell::kLstm && (has_memory || !desc.weights_peephole.IsZero())) {
    return InvalidArgument("rnn: ", AlgorithmName(desc.cell), " with what an lstm alone has");
  }
  return absl::OkStatus();
}

absl::Status Validate(const RnnDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckSource("rnn: src_layer", desc.src_layer));
  ABSL_RETURN_IF_ERROR(CheckDestination("rnn: dst_layer", desc.dst_layer));
  const auto has_rank = [](const MemoryDesc& tensor, int rank) { return tensor.rank() == rank; };
  if (!has_rank(desc.src_layer, 3) || !has_rank(desc.weights_layer, 5) ||
      !has_rank(desc.weights_iter, 5)) {
    return InvalidArgument("rnn: src_layer ", DimsToString(desc.src_layer.dims()),
                           ", weights_layer ", DimsToString(desc.weights_layer.dims()),
                           ", weights_iter ", DimsToString(desc.weights_iter.dims()),
                           " are not of ranks 3, 5 and 5");
  }
  if (desc.weights_layer.dim(0) != 1) {
    return Unimplemented("rnn: takes one layer at a time");
  }
  const RnnSizes sizes(desc);
  ABSL_RETURN_IF_ERROR(ValidateFunctions(desc));
  ABSL_RETURN_IF_ERROR(ValidateWeights(desc, sizes));
  return ValidateStates(desc, sizes);
}

}  // namespace

RnnSizes::RnnSizes(const RnnDesc& desc)
    : steps(desc.src_layer.dim(0)),
      sequences(desc.src_layer.dim(1)),
      inputs(desc.src_layer.dim(2)),
      states(desc.weights_iter.dim(2)),
      directions(functions::DirectionsOf(desc.direction)),
      gates(functions::GatesOf(desc.cell)),
      bias_gates(functions::BiasGatesOf(desc.cell)) {}

PrimitiveInfo InfoOf(const Request<RnnDesc>& request) {
  const RnnDesc& desc = request.desc;
  std::vector<ArgDesc> args;
  for (const ArgDesc& arg : {ArgDesc{kArgSrc, desc.src_layer},
                             {kArgSrcIter, desc.src_iter},
                             {kArgSrcIterC, desc.src_iter_c},
                             {kArgWeights, desc.weights_layer},
                             {kArgWeightsIter, desc.weights_iter},
                             {kArgWeightsPeephole, desc.weights_peephole},
                             {kArgBias, desc.bias},
                             {kArgSequenceLengths, desc.sequence_lengths},
                             {kArgDst, desc.dst_layer},
                             {kArgDstIter, desc.dst_iter},
                             {kArgDstIterC, desc.dst_iter_c}}) {
    if (!arg.desc.IsZero()) args.push_back(arg);
  }
  return BasicInfo(request, std::move(args));
}

absl::Status RequireInferenceF32(const RnnDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src_layer, desc.src_iter, desc.src_iter_c,
                                  desc.weights_layer, desc.weights_iter, desc.weights_peephole,
                                  desc.bias, desc.dst_layer, desc.dst_iter, desc.dst_iter_c));
  ABSL_RETURN_IF_ERROR(RequireType(DataType::kS32, {&desc.sequence_lengths}));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  return RequireInference(desc.prop_kind);
}

absl::Status CheckLengths(const RnnDesc& desc, const ExecuteArgs& args) {
  const MemoryDesc& tensor = desc.sequence_lengths;
  if (tensor.IsZero()) return absl::OkStatus();
  const auto* lengths = args.Get<const int32_t>(kArgSequenceLengths);
  const int64_t steps = desc.src_layer.dim(0);
  for (int64_t n = 0; n < tensor.dim(0); ++n) {
    const int64_t length = lengths[tensor.Offset({n})];
    if (length < 0 || length > steps) {
      return InvalidArgument("rnn: sequence ", n, " has length ", length, " of ", steps, " steps");
    }
  }
  return absl::OkStatus();
}

}  // namespace rnn

std::vector<RnnDesc> RnnProbes(DataType type) {
  RnnDesc desc;
  desc.activations = {
      {functions::Function::kLogistic}, {functions::Function::kTanh}, {functions::Function::kTanh}};
  desc.src_layer = probes::Tagged({3, 2, 32}, type, "abc");
  desc.weights_layer = probes::Any({1, 1, 32, 4, 32}, type);
  desc.weights_iter = probes::Any({1, 1, 32, 4, 32}, type);
  desc.bias = probes::Any({1, 1, 4, 32}, type);
  desc.dst_layer = probes::Any({3, 2, 32}, type);
  return {desc};
}

TILEWIRE_DEFINE_PRIMITIVE(Rnn, rnn,
                          {kAvx512AndAvx2, {{"f32", ResolvePackedWeights, CreatePackedWeights}}});

}  // namespace tilewire
