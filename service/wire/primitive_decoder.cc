// SPDX-License-Identifier: Apache-2.0
#include "service/wire/primitive_decoder.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::service {
namespace {

// A tensor of a primitive. The engine knows tensors without elements, but a primitive of them
// computes nothing, so that one that arrives here is a mistake of the client. Long integers are
// known to the reference of nearly every primitive, but offered as indices alone.
absl::StatusOr<MemoryDesc> Named(const v1::MemoryDesc& message, absl::string_view name,
                                 bool are_indices = false) {
  absl::StatusOr<MemoryDesc> desc = DecodeMemoryDesc(message);
  if (!desc.ok()) {
    return absl::Status(desc.status().code(), absl::StrCat(name, ": ", desc.status().message()));
  }
  if (desc->data_type() == DataType::kS64 && !are_indices) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": type s64 is for the indices of a gather alone"));
  }
  for (int d = 0; d < desc->rank(); ++d) {
    if (desc->dim(d) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": dimension ", d, " is 0, allowed are sizes from 1"));
    }
  }
  return desc;
}

absl::StatusOr<std::vector<MemoryDesc>> Sources(
    const google::protobuf::RepeatedPtrField<v1::MemoryDesc>& messages) {
  if (messages.size() > kMaxSources) {
    return absl::InvalidArgumentError(
        absl::StrCat(messages.size(), " sources; at most ", kMaxSources));
  }
  std::vector<MemoryDesc> sources;
  for (const v1::MemoryDesc& message : messages) {
    ABSL_ASSIGN_OR_RETURN(MemoryDesc source,
                          Named(message, absl::StrCat("srcs[", sources.size(), "]")));
    sources.push_back(std::move(source));
  }
  return sources;
}

absl::StatusOr<PropKind> DecodePropKind(v1::PropKind kind) {
  switch (kind) {
    case v1::PROP_KIND_UNDEFINED:
    case v1::PROP_KIND_FORWARD_INFERENCE:
      return PropKind::kForwardInference;
    case v1::PROP_KIND_FORWARD_TRAINING:
      return PropKind::kForwardTraining;
    case v1::PROP_KIND_BACKWARD:
      return PropKind::kBackward;
    case v1::PROP_KIND_BACKWARD_DATA:
      return PropKind::kBackwardData;
    case v1::PROP_KIND_BACKWARD_WEIGHTS:
      return PropKind::kBackwardWeights;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("unknown prop_kind ", static_cast<int>(kind),
                       "; allowed are 0, 64, 96, 128, 160 and 192, with which the gradient of a "
                       "bias comes"));
  }
}

// One value per spatial dimension; `fallback` everywhere if there is none.
absl::StatusOr<Dims> Spatial(const google::protobuf::RepeatedField<int64_t>& values, int spatial,
                             int64_t fallback, absl::string_view name) {
  if (values.empty()) return Dims(std::max(spatial, 0), fallback);
  if (values.size() != spatial) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", values.size(), " values for ", spatial, " spatial dimensions"));
  }
  return Dims(values.begin(), values.end());
}

// An algorithm whose numbers, from 0 to the generated enum's last, count the engine's from `first`
// on.
template <typename Algorithm, typename Message>
absl::StatusOr<Algorithm> DecodeAlgorithm(Message number, int last, absl::string_view primitive,
                                          Algorithm first = Algorithm{}) {
  if (number < 0 || number > last) {
    return absl::InvalidArgumentError(absl::StrCat("unknown ", primitive, " algorithm ",
                                                   static_cast<int>(number), "; allowed are 0 to ",
                                                   last));
  }
  return static_cast<Algorithm>(static_cast<int>(first) + number);
}

// The tensors of a primitive with one source.
template <typename Message, typename Desc>
absl::Status DecodeSrcAndDst(const Message& message, Desc* desc) {
  ABSL_ASSIGN_OR_RETURN(desc->src, Named(message.src(), "src"));
  ABSL_ASSIGN_OR_RETURN(desc->dst, Named(message.dst(), "dst"));
  return absl::OkStatus();
}

// A tensor that may be absent.
absl::Status DecodeIfGiven(bool is_given, const v1::MemoryDesc& message, absl::string_view name,
                           MemoryDesc* desc) {
  if (!is_given) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(*desc, Named(message, name));
  return absl::OkStatus();
}

// The tensors of a primitive with one source that reads some of them backward, beside gradients.
template <typename Message, typename Desc>
absl::Status DecodeWithGradients(const Message& message, Desc* desc) {
  ABSL_RETURN_IF_ERROR(
      DecodeIfGiven(message.has_diff_src(), message.diff_src(), "diff_src", &desc->diff_src));
  ABSL_RETURN_IF_ERROR(
      DecodeIfGiven(message.has_diff_dst(), message.diff_dst(), "diff_dst", &desc->diff_dst));
  if (!IsBackward(desc->prop_kind)) return DecodeSrcAndDst(message, desc);
  ABSL_RETURN_IF_ERROR(DecodeIfGiven(message.has_src(), message.src(), "src", &desc->src));
  return DecodeIfGiven(message.has_dst(), message.dst(), "dst", &desc->dst);
}

// A tensor without a layout is left to the primitive.
absl::Status LeaveOpen(const v1::MemoryDesc& message, MemoryDesc* desc) {
  if (message.layout_case() != v1::MemoryDesc::LAYOUT_NOT_SET) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(*desc, MemoryDesc::CreateAny(desc->dims(), desc->data_type()));
  return absl::OkStatus();
}

// The other tensors of a primitive with weights, which may choose the layout of all that it reads.
// desc->src has been decoded.
template <typename Message, typename Desc>
absl::Status DecodeWeightsAndBias(const Message& message, Desc* desc) {
  ABSL_RETURN_IF_ERROR(LeaveOpen(message.src(), &desc->src));
  ABSL_ASSIGN_OR_RETURN(desc->weights, Named(message.weights(), "weights"));
  ABSL_RETURN_IF_ERROR(LeaveOpen(message.weights(), &desc->weights));
  if (!message.has_bias()) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(desc->bias, Named(message.bias(), "bias"));
  return LeaveOpen(message.bias(), &desc->bias);
}

// The places of the windows of a convolution or pooling. desc->src has been decoded.
template <typename Message, typename Desc>
absl::Status DecodeWindows(const Message& message, Desc* desc) {
  const int spatial = desc->src.rank() - 2;
  ABSL_ASSIGN_OR_RETURN(desc->strides, Spatial(message.strides(), spatial, 1, "strides"));
  ABSL_ASSIGN_OR_RETURN(desc->padding_left,
                        Spatial(message.padding_left(), spatial, 0, "padding_left"));
  ABSL_ASSIGN_OR_RETURN(desc->padding_right,
                        Spatial(message.padding_right(), spatial, 0, "padding_right"));
  return absl::OkStatus();
}

// The fields that convolution and deconvolution share.
template <typename Message, typename Desc>
absl::Status DecodeConvolved(const Message& message, Desc* desc) {
  ABSL_ASSIGN_OR_RETURN(desc->prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_RETURN_IF_ERROR(DecodeSrcAndDst(message, desc));
  ABSL_RETURN_IF_ERROR(DecodeWeightsAndBias(message, desc));
  ABSL_RETURN_IF_ERROR(DecodeWindows(message, desc));
  ABSL_ASSIGN_OR_RETURN(desc->dilations,
                        Spatial(message.dilations(), desc->src.rank() - 2, 0, "dilations"));
  return absl::OkStatus();
}

absl::StatusOr<OpDesc> Decode(const v1::Reorder& message) {
  ReorderDesc desc;
  ABSL_RETURN_IF_ERROR(DecodeSrcAndDst(message, &desc));
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Shuffle& message) {
  ShuffleDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_RETURN_IF_ERROR(DecodeSrcAndDst(message, &desc));
  desc.axis = message.axis();
  desc.group_size = message.group_size();
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Concat& message) {
  ConcatDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.srcs, Sources(message.srcs()));
  ABSL_ASSIGN_OR_RETURN(desc.dst, Named(message.dst(), "dst"));
  desc.axis = message.axis();
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Sum& message) {
  SumDesc desc;
  if (message.scales_size() != message.srcs_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(message.scales_size(), " scales for ", message.srcs_size(), " sources"));
  }
  for (const float scale : message.scales())
    if (!std::isfinite(scale))
      return absl::InvalidArgumentError(absl::StrCat("scale ", scale, " of a sum is not finite"));
  desc.scales.assign(message.scales().begin(), message.scales().end());
  ABSL_ASSIGN_OR_RETURN(desc.srcs, Sources(message.srcs()));
  ABSL_ASSIGN_OR_RETURN(desc.dst, Named(message.dst(), "dst"));
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Convolution& message) {
  ConvolutionDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.algorithm,
                        DecodeAlgorithm<ConvolutionAlgorithm>(
                            message.algorithm(), v1::ConvolutionAlgorithm_MAX, "convolution"));
  ABSL_RETURN_IF_ERROR(DecodeConvolved(message, &desc));
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Eltwise& message) {
  EltwiseDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_ASSIGN_OR_RETURN(desc.op, DecodeEltwiseOp(message.op()));
  ABSL_RETURN_IF_ERROR(DecodeWithGradients(message, &desc));
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Softmax& message) {
  SoftmaxDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_RETURN_IF_ERROR(DecodeWithGradients(message, &desc));
  desc.axis = message.axis();
  ABSL_ASSIGN_OR_RETURN(
      desc.algorithm,
      DecodeAlgorithm<SoftmaxAlgorithm>(message.algorithm(), v1::SoftmaxAlgorithm_MAX, "softmax"));
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Pooling& message) {
  PoolingDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_ASSIGN_OR_RETURN(
      desc.algorithm,
      DecodeAlgorithm<PoolingAlgorithm>(message.algorithm(), v1::PoolingAlgorithm_MAX, "pooling"));
  ABSL_RETURN_IF_ERROR(DecodeSrcAndDst(message, &desc));
  ABSL_ASSIGN_OR_RETURN(desc.kernel, Spatial(message.kernel(), desc.src.rank() - 2, 1, "kernel"));
  ABSL_RETURN_IF_ERROR(DecodeWindows(message, &desc));
  if (message.has_workspace()) {
    ABSL_ASSIGN_OR_RETURN(desc.workspace, DecodeWorkspace(message.workspace()));
  }
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::InnerProduct& message) {
  InnerProductDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_RETURN_IF_ERROR(DecodeSrcAndDst(message, &desc));
  ABSL_RETURN_IF_ERROR(DecodeWeightsAndBias(message, &desc));
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Lrn& message) {
  LrnDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_ASSIGN_OR_RETURN(desc.algorithm, DecodeAlgorithm<LrnAlgorithm>(message.algorithm(),
                                                                      v1::LrnAlgorithm_MAX, "lrn"));
  ABSL_RETURN_IF_ERROR(DecodeWithGradients(message, &desc));
  desc.local_size = message.local_size();
  desc.alpha = message.alpha();
  desc.beta = message.beta();
  desc.k = message.k();
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Binary& message) {
  BinaryDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.algorithm,
                        DecodeAlgorithm(message.algorithm(), v1::BinaryAlgorithm_MAX, "binary",
                                        BinaryAlgorithm::kAdd));
  ABSL_ASSIGN_OR_RETURN(desc.src0, Named(message.src0(), "src0"));
  ABSL_ASSIGN_OR_RETURN(desc.src1, Named(message.src1(), "src1"));
  ABSL_ASSIGN_OR_RETURN(desc.dst, Named(message.dst(), "dst"));
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_RETURN_IF_ERROR(
      DecodeIfGiven(message.has_diff_src0(), message.diff_src0(), "diff_src0", &desc.diff_src0));
  ABSL_RETURN_IF_ERROR(
      DecodeIfGiven(message.has_diff_src1(), message.diff_src1(), "diff_src1", &desc.diff_src1));
  ABSL_RETURN_IF_ERROR(
      DecodeIfGiven(message.has_diff_dst(), message.diff_dst(), "diff_dst", &desc.diff_dst));
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::BatchNormalization& message) {
  BatchNormalizationDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_RETURN_IF_ERROR(DecodeWithGradients(message, &desc));
  desc.epsilon = message.epsilon();
  desc.use_global_stats = message.use_global_stats();
  desc.use_scale_shift = message.use_scale_shift();
  desc.fuse_relu = message.fuse_relu();
  if (message.has_workspace()) {
    ABSL_ASSIGN_OR_RETURN(desc.workspace, DecodeWorkspace(message.workspace()));
  }
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Resampling& message) {
  ResamplingDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_ASSIGN_OR_RETURN(desc.algorithm,
                        DecodeAlgorithm<ResamplingAlgorithm>(
                            message.algorithm(), v1::ResamplingAlgorithm_MAX, "resampling"));
  ABSL_RETURN_IF_ERROR(DecodeSrcAndDst(message, &desc));
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Reduction& message) {
  ReductionDesc desc;
  ABSL_ASSIGN_OR_RETURN(
      desc.algorithm, DecodeAlgorithm<ReductionAlgorithm>(message.algorithm(),
                                                          v1::ReductionAlgorithm_MAX, "reduction"));
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_RETURN_IF_ERROR(DecodeWithGradients(message, &desc));
  desc.p = message.p();
  desc.eps = message.eps();
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::LayerNormalization& message) {
  LayerNormalizationDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_RETURN_IF_ERROR(DecodeWithGradients(message, &desc));
  desc.epsilon = message.epsilon();
  desc.use_global_stats = message.use_global_stats();
  desc.use_scale_shift = message.use_scale_shift();
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Matmul& message) {
  MatmulDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_RETURN_IF_ERROR(DecodeSrcAndDst(message, &desc));
  ABSL_RETURN_IF_ERROR(DecodeWeightsAndBias(message, &desc));
  desc.src_zero_point = message.src_zero_point();
  desc.weights_zero_point = message.weights_zero_point();
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Deconvolution& message) {
  DeconvolutionDesc desc;
  ABSL_RETURN_IF_ERROR(DecodeConvolved(message, &desc));
  return desc;
}

// The functions of a cell of MKL-DNN's, once per direction.
std::vector<RnnActivation> UsualActivations(RnnCell cell, RnnDirection direction) {
  const RnnActivation logistic = {.function = EltwiseAlgorithm::kLogistic};
  const RnnActivation tanh = {.function = EltwiseAlgorithm::kTanh};
  std::vector<RnnActivation> all;
  for (int d = 0; d < functions::DirectionsOf(direction); ++d) {
    for (int i = 0; i < functions::ActivationsOf(cell); ++i)
      all.push_back(i == 0 && cell != RnnCell::kVanillaRnn ? logistic : tanh);
  }
  return all;
}

absl::Status DecodeCell(const v1::Rnn& message, RnnDesc* desc) {
  ABSL_ASSIGN_OR_RETURN(desc->prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_ASSIGN_OR_RETURN(desc->cell,
                        DecodeAlgorithm<RnnCell>(message.cell(), v1::RnnCell_MAX, "rnn cell"));
  ABSL_ASSIGN_OR_RETURN(
      desc->direction,
      DecodeAlgorithm<RnnDirection>(message.direction(), v1::RnnDirection_MAX, "rnn direction"));
  desc->activations = UsualActivations(desc->cell, desc->direction);
  desc->clip = message.clip();
  desc->couples_gates = message.couples_gates();
  if (message.activations_size() == 0) return absl::OkStatus();
  if (message.activations_size() != static_cast<int>(desc->activations.size())) {
    return absl::InvalidArgumentError(absl::StrCat("activations: ", message.activations_size(),
                                                   ", expected ", desc->activations.size()));
  }
  for (int i = 0; i < message.activations_size(); ++i) {
    ABSL_ASSIGN_OR_RETURN(desc->activations[i], DecodeEltwiseOp(message.activations(i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<OpDesc> Decode(const v1::Rnn& message) {
  RnnDesc desc;
  ABSL_RETURN_IF_ERROR(DecodeCell(message, &desc));
  const struct {
    bool is_given;
    const v1::MemoryDesc& tensor;
    const char* name;
    MemoryDesc* decoded;
  } tensors[] = {
      {true, message.src_layer(), "src_layer", &desc.src_layer},
      {message.has_src_iter(), message.src_iter(), "src_iter", &desc.src_iter},
      {message.has_src_iter_c(), message.src_iter_c(), "src_iter_c", &desc.src_iter_c},
      {true, message.weights_layer(), "weights_layer", &desc.weights_layer},
      {true, message.weights_iter(), "weights_iter", &desc.weights_iter},
      {message.has_weights_peephole(), message.weights_peephole(), "weights_peephole",
       &desc.weights_peephole},
      {message.has_bias(), message.bias(), "bias", &desc.bias},
      {message.has_sequence_lengths(), message.sequence_lengths(), "sequence_lengths",
       &desc.sequence_lengths},
      {true, message.dst_layer(), "dst_layer", &desc.dst_layer},
      {message.has_dst_iter(), message.dst_iter(), "dst_iter", &desc.dst_iter},
      {message.has_dst_iter_c(), message.dst_iter_c(), "dst_iter_c", &desc.dst_iter_c},
  };
  for (const auto& one : tensors) {
    if (!one.is_given) continue;
    ABSL_ASSIGN_OR_RETURN(*one.decoded, Named(one.tensor, one.name));
  }
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Gather& message) {
  GatherDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_RETURN_IF_ERROR(DecodeSrcAndDst(message, &desc));
  ABSL_ASSIGN_OR_RETURN(desc.indices, Named(message.indices(), "indices", /*are_indices=*/true));
  desc.axis = message.axis();
  return desc;
}

absl::StatusOr<OpDesc> Decode(const v1::Prelu& message) {
  PreluDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.prop_kind, DecodePropKind(message.prop_kind()));
  ABSL_RETURN_IF_ERROR(DecodeWithGradients(message, &desc));
  ABSL_ASSIGN_OR_RETURN(desc.weights, Named(message.weights(), "weights"));
  ABSL_RETURN_IF_ERROR(LeaveOpen(message.weights(), &desc.weights));
  return desc;
}

// "reorder, shuffle, ...": what PrimitiveDesc has a message for.
std::string OfferedOperations() {
  const google::protobuf::OneofDescriptor* operations =
      v1::PrimitiveDesc::descriptor()->FindOneofByName("operation");
  std::string names;
  for (int i = 0; i < operations->field_count(); ++i)
    absl::StrAppend(&names, i == 0 ? "" : ", ", operations->field(i)->name());
  return names;
}

}  // namespace

absl::StatusOr<OpDesc> DecodeOperation(const v1::PrimitiveDesc& message) {
  switch (message.operation_case()) {
#define TILEWIRE_PRIMITIVE(Name, name) \
  case v1::PrimitiveDesc::k##Name:     \
    return Decode(message.name());
#define TILEWIRE_STEP_PRIMITIVE(Name, name)
#include "engine/primitives/primitive_list.inc"
#undef TILEWIRE_PRIMITIVE
    case v1::PrimitiveDesc::OPERATION_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the primitive has no operation that is offered: one of ", OfferedOperations()));
}

}  // namespace tilewire::service
