// SPDX-License-Identifier: Apache-2.0
#include "client/primitive_parser.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/primitive_fields.h"
#include "client/primitive_words.h"

namespace tilewire::client {
namespace {

using Sources = std::vector<v1::MemoryDesc>;

// One value of at least `least` per spatial dimension from "2" or "2x1".
absl::Status ParseSpatial(absl::string_view what, const std::string& text, int rank, int64_t least,
                          google::protobuf::RepeatedField<int64_t>* out) {
  absl::StatusOr<std::vector<int64_t>> values = ParseDims(text);
  if (!values.ok() || *absl::c_min_element(*values) < least)
    return Invalid(what, text, absl::StrCat("numbers from ", least, ", such as 1 or 2x1"));
  if (values->size() == 1) values->resize(rank, values->front());
  if (static_cast<int>(values->size()) != rank) {
    return Invalid(what, text, absl::StrCat("1 or ", rank, " numbers (one per spatial dimension)"));
  }
  out->Assign(values->begin(), values->end());
  return absl::OkStatus();
}

// The size of dst along spatial dimension `i`, whose window covers `window` pixels.
template <typename Op>
absl::StatusOr<int64_t> OutputSize(const v1::MemoryDesc& src, int i, int64_t window, const Op& op) {
  const int64_t padded = src.dims(i + 2) + op.padding_left(i) + op.padding_right(i);
  if (window > padded) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a window of ", window, " pixels does not fit into ", padded, " (dimension ", i + 2,
        " of --src ", ToText(src), ", with --padding): take a smaller kernel or more padding"));
  }
  return (padded - window) / op.strides(i) + 1;
}

// The same of a deconvolution, whose paddings are cut off.
template <typename Op>
absl::StatusOr<int64_t> GrownSize(const v1::MemoryDesc& src, int i, int64_t window, const Op& op) {
  const int64_t whole = (src.dims(i + 2) - 1) * op.strides(i) + window;
  const int64_t size = whole - op.padding_left(i) - op.padding_right(i);
  if (size >= 1) return size;
  return absl::InvalidArgumentError(absl::StrCat("--padding leaves nothing of the ", whole,
                                                 " pixels of dimension ", i + 2,
                                                 " of dst: take less padding or a larger kernel"));
}

// --weights, which the kinds that call this cannot do without.
absl::StatusOr<v1::MemoryDesc> ParseWeights(const PrimitiveText& text, absl::string_view example) {
  if (!text.weights.empty()) return ParseMemoryDesc(text.weights);
  return absl::InvalidArgumentError(
      absl::StrCat("--weights is missing, for example --weights=", example));
}

// Strides and paddings of a convolution or pooling; padding on the right is that on the left unless
// given.
template <typename Op>
absl::Status ParseWindow(const PrimitiveText& text, int rank, Op* op) {
  absl::Status status = ParseSpatial("--strides", text.strides, rank, 1, op->mutable_strides());
  status.Update(ParseSpatial("--padding", text.padding, rank, 0, op->mutable_padding_left()));
  status.Update(ParseSpatial("--padding_right",
                             text.padding_right.empty() ? text.padding : text.padding_right, rank,
                             0, op->mutable_padding_right()));
  return status;
}

std::vector<int64_t> DimsOf(const v1::MemoryDesc& desc) {
  return {desc.dims().begin(), desc.dims().end()};
}

template <typename Op>
void AddBias(const PrimitiveText& text, int64_t channels, Op* op) {
  if (!text.bias) return;
  op->mutable_bias()->add_dims(channels);
  op->mutable_bias()->set_type(v1::DATA_TYPE_F32);
}

// [O, I, ...] of all groups to [G, O/G, I, ...].
absl::Status CutGroups(const PrimitiveText& text, v1::MemoryDesc* weights) {
  if (text.groups < 1 || weights->dims(0) % text.groups != 0) {
    return Invalid("--groups", absl::StrCat(text.groups),
                   "a divisor of the number of output channels");
  }
  if (text.groups == 1) return absl::OkStatus();
  weights->set_dims(0, weights->dims(0) / text.groups);
  std::vector<int64_t> dims = DimsOf(*weights);
  dims.insert(dims.begin(), text.groups);
  weights->mutable_dims()->Assign(dims.begin(), dims.end());
  return absl::OkStatus();
}

// A convolution or, with the sizes of src and dst exchanged, a deconvolution.
template <typename Op>
absl::Status FillConvolution(const PrimitiveText& text, const v1::MemoryDesc& src, bool transposed,
                             Op* op) {
  absl::StatusOr<v1::MemoryDesc> weights = ParseWeights(text, "64x64x3x3");
  if (!weights.ok()) return weights.status();
  const int rank = src.dims_size() - 2;
  if (rank < 1 || weights->dims_size() != src.dims_size()) {
    return Invalid("--weights", text.weights, "of the rank of --src: OxIxKHxKW for NxCxHxW");
  }
  absl::Status status = ParseWindow(text, rank, op);
  status.Update(ParseSpatial("--dilations", text.dilations, rank, 0, op->mutable_dilations()));
  if (!status.ok()) return status;
  std::vector<int64_t> dst = {src.dims(0), weights->dims(0)};
  for (int i = 0; i < rank; ++i) {
    const int64_t window = (weights->dims(i + 2) - 1) * (op->dilations(i) + 1) + 1;
    const absl::StatusOr<int64_t> size =
        transposed ? GrownSize(src, i, window, *op) : OutputSize(src, i, window, *op);
    if (!size.ok()) return size.status();
    dst.push_back(*size);
  }
  AddBias(text, weights->dims(0), op);
  if (absl::Status cut = CutGroups(text, &*weights); !cut.ok()) return cut;
  *op->mutable_src() = src;
  *op->mutable_weights() = *weights;
  LetChoose(op->mutable_src());
  LetChoose(op->mutable_weights());
  return FillDst(text, dst, src.type(), op->mutable_dst());
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Convolution* op) {
  const v1::MemoryDesc& src = srcs.front();
  auto algorithm = ParseEnum<v1::ConvolutionAlgorithm>(
      "--algorithm", "CONVOLUTION_", text.algorithm.empty() ? "auto" : text.algorithm);
  if (!algorithm.ok()) return algorithm.status();
  op->set_algorithm(*algorithm);
  return FillConvolution(text, src, /*transposed=*/false, op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::InnerProduct* op) {
  const v1::MemoryDesc& src = srcs.front();
  absl::StatusOr<v1::MemoryDesc> weights = ParseWeights(text, "1000x2048");
  if (!weights.ok()) return weights.status();
  *op->mutable_src() = src;
  *op->mutable_weights() = *weights;
  LetChoose(op->mutable_src());
  LetChoose(op->mutable_weights());
  AddBias(text, weights->dims(0), op);
  return FillDst(text, {src.dims(0), weights->dims(0)}, src.type(), op->mutable_dst());
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Pooling* op) {
  const v1::MemoryDesc& src = srcs.front();
  const int rank = src.dims_size() - 2;
  if (rank < 1) return Invalid("--src", ToText(src), "[N, C, spatial...], which pooling takes");
  if (text.kernel.empty())
    return absl::InvalidArgumentError("pooling needs --kernel, for example --kernel=3x3");
  absl::Status status = ParseSpatial("--kernel", text.kernel, rank, 1, op->mutable_kernel());
  status.Update(ParseWindow(text, rank, op));
  if (!status.ok()) return status;
  auto algorithm = ParseEnum<v1::PoolingAlgorithm>("--algorithm", "POOLING_",
                                                   text.algorithm.empty() ? "max" : text.algorithm);
  if (!algorithm.ok()) return algorithm.status();
  op->set_algorithm(*algorithm);
  *op->mutable_src() = src;
  std::vector<int64_t> dst = {src.dims(0), src.dims(1)};
  for (int i = 0; i < rank; ++i) {
    const absl::StatusOr<int64_t> size = OutputSize(src, i, op->kernel(i), *op);
    if (!size.ok()) return size.status();
    dst.push_back(*size);
  }
  return FillDst(text, dst, src.type(), op->mutable_dst());
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Eltwise* op) {
  const v1::MemoryDesc& src = srcs.front();
  auto algorithm = ParseEnum<v1::EltwiseAlgorithm>(
      "--algorithm", "ELTWISE_", text.algorithm.empty() ? "relu" : text.algorithm);
  if (!algorithm.ok()) return algorithm.status();
  op->mutable_op()->set_algorithm(*algorithm);
  op->mutable_op()->set_alpha(text.alpha);
  op->mutable_op()->set_beta(text.beta);
  *op->mutable_src() = src;
  return FillDst(text, DimsOf(src), src.type(), op->mutable_dst());
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Matmul* op) {
  const v1::MemoryDesc& src = srcs.front();
  absl::StatusOr<v1::MemoryDesc> weights = ParseWeights(text, "64x128");
  if (!weights.ok()) return weights.status();
  const int rank = src.dims_size();
  if (rank < 2 || weights->dims_size() != rank) {
    return Invalid("--weights", text.weights, "of the rank of --src: KxN for MxK");
  }
  std::vector<int64_t> dst = DimsOf(src);
  for (int d = 0; d < rank - 2; ++d) dst[d] = std::max(dst[d], weights->dims(d));
  dst[rank - 1] = weights->dims(rank - 1);
  *op->mutable_src() = src;
  *op->mutable_weights() = *weights;
  op->set_src_zero_point(text.src_zero_point);
  op->set_weights_zero_point(text.weights_zero_point);
  if (text.bias) {
    std::vector<int64_t> bias(rank, 1);
    bias[rank - 1] = dst[rank - 1];
    op->mutable_bias()->mutable_dims()->Assign(bias.begin(), bias.end());
    op->mutable_bias()->set_type(v1::DATA_TYPE_F32);
  }
  return FillDst(text, dst, src.type(), op->mutable_dst());
}

// With a dst of src's dims unless one is given.
template <typename Op>
absl::Status FillSrcAndDst(const PrimitiveText& text, const v1::MemoryDesc& src, Op* op) {
  *op->mutable_src() = src;
  return FillDst(text, DimsOf(src), src.type(), op->mutable_dst());
}

template <typename Op>
absl::Status FillNormalization(const PrimitiveText& text, const v1::MemoryDesc& src, Op* op) {
  op->set_epsilon(text.eps);
  op->set_use_global_stats(text.global_stats);
  op->set_use_scale_shift(text.scale_shift);
  return FillSrcAndDst(text, src, op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Lrn* op) {
  const v1::MemoryDesc& src = srcs.front();
  auto algorithm = ParseEnum<v1::LrnAlgorithm>(
      "--algorithm", "LRN_", text.algorithm.empty() ? "across_channels" : text.algorithm);
  if (!algorithm.ok()) return algorithm.status();
  op->set_algorithm(*algorithm);
  op->set_local_size(text.local_size);
  op->set_alpha(text.alpha);
  op->set_beta(text.beta);
  op->set_k(text.k);
  return FillSrcAndDst(text, src, op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Binary* op) {
  if (srcs.size() != 2) {
    return Invalid("--src", absl::StrJoin(text.srcs, " "), "two tensors, which binary takes");
  }
  auto algorithm = ParseEnum<v1::BinaryAlgorithm>("--algorithm", "BINARY_",
                                                  text.algorithm.empty() ? "add" : text.algorithm);
  if (!algorithm.ok()) return algorithm.status();
  op->set_algorithm(*algorithm);
  *op->mutable_src0() = srcs[0];
  *op->mutable_src1() = srcs[1];
  return FillDst(text, DimsOf(srcs[0]), srcs[0].type(), op->mutable_dst());
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Resampling* op) {
  const v1::MemoryDesc& src = srcs.front();
  auto algorithm = ParseEnum<v1::ResamplingAlgorithm>(
      "--algorithm", "RESAMPLING_", text.algorithm.empty() ? "nearest" : text.algorithm);
  if (!algorithm.ok()) return algorithm.status();
  op->set_algorithm(*algorithm);
  return FillSrcAndDst(text, src, op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Reduction* op) {
  const v1::MemoryDesc& src = srcs.front();
  auto algorithm = ParseEnum<v1::ReductionAlgorithm>(
      "--algorithm", "REDUCTION_", text.algorithm.empty() ? "sum" : text.algorithm);
  if (!algorithm.ok()) return algorithm.status();
  op->set_algorithm(*algorithm);
  op->set_p(text.p);
  op->set_eps(text.eps);
  return FillSrcAndDst(text, src, op);
}

// Sum and concat: `dims` of dst follow from the sources.
template <typename Op>
absl::Status FillSources(const PrimitiveText& text, const std::vector<int64_t>& dims,
                         const Sources& srcs, Op* op) {
  for (const v1::MemoryDesc& src : srcs) *op->add_srcs() = src;
  return FillDst(text, dims, srcs.front().type(), op->mutable_dst());
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Concat* op) {
  std::vector<int64_t> dims = DimsOf(srcs.front());
  op->set_axis(text.axis);
  if (text.axis < 0 || text.axis >= static_cast<int>(dims.size())) {
    return Invalid("--axis", absl::StrCat(text.axis), absl::StrCat("in [0, ", dims.size(), ")"));
  }
  dims[text.axis] = 0;
  for (const v1::MemoryDesc& src : srcs) {
    if (src.dims_size() != srcs.front().dims_size())
      return Invalid("--src", ToText(src), "of the first one's rank");
    dims[text.axis] += src.dims(text.axis);
  }
  return FillSources(text, dims, srcs, op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Deconvolution* op) {
  return FillConvolution(text, srcs.front(), /*transposed=*/true, op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::BatchNormalization* op) {
  return FillNormalization(text, srcs.front(), op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::LayerNormalization* op) {
  return FillNormalization(text, srcs.front(), op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Sum* op) {
  std::vector<float> scales = text.scales;
  if (scales.empty()) scales.assign(srcs.size(), 1.0f);
  op->mutable_scales()->Assign(scales.begin(), scales.end());
  return FillSources(text, DimsOf(srcs.front()), srcs, op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Softmax* op) {
  op->set_axis(text.axis);
  return FillSrcAndDst(text, srcs.front(), op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Shuffle* op) {
  if (text.backward) op->set_prop_kind(v1::PROP_KIND_BACKWARD_DATA);
  op->set_axis(text.axis);
  op->set_group_size(text.group_size);
  return FillSrcAndDst(text, srcs.front(), op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Rnn* op) {
  return FillRnn(text, srcs.front(), op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Gather* op) {
  return FillGather(text, srcs.front(), op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Prelu* op) {
  absl::StatusOr<v1::MemoryDesc> weights = ParseWeights(text, "1x64x1x1");
  if (!weights.ok()) return weights.status();
  *op->mutable_weights() = *std::move(weights);
  LetChoose(op->mutable_weights());
  return FillSrcAndDst(text, srcs.front(), op);
}

absl::Status Fill(const PrimitiveText& text, const Sources& srcs, v1::Reorder* op) {
  if (text.dst.empty())
    return absl::InvalidArgumentError("reorder needs --dst, for example --dst=1x64x56x56:nChw16c");
  return FillSrcAndDst(text, srcs.front(), op);
}

// The tensors of a primitive that runs backward, from those of forward. Most read src, and their
// gradients have its shape.
template <typename Op>
void SetGradients(Op* op) {
  if constexpr (requires { op->mutable_diff_src(); }) {
    *op->mutable_diff_src() = op->src();
    *op->mutable_diff_dst() = op->src();
    op->clear_dst();
  }
}

// The same where backward reads the result in place of src.
void SetGradients(v1::Softmax* op) {
  op->mutable_dst()->Swap(op->mutable_src());
  op->clear_src();
  *op->mutable_diff_src() = *op->mutable_diff_dst() = op->dst();
}

// The same where the result has another shape.
void SetGradients(v1::Reduction* op) {
  *op->mutable_diff_src() = op->src();
  *op->mutable_diff_dst() = op->dst();
}

void SetGradients(v1::Binary* op) {
  *op->mutable_diff_src0() = op->src0();
  *op->mutable_diff_src1() = op->src1();
  *op->mutable_diff_dst() = op->dst();
}

template <typename Op>
absl::Status FillWithPropagation(const PrimitiveText& text, const Sources& srcs, Op* op) {
  if (absl::Status status = Fill(text, srcs, op); !status.ok()) return status;
  if constexpr (requires { op->set_prop_kind(v1::PROP_KIND_BACKWARD); }) {
    const auto prop = ParseEnum<v1::PropKind>("--prop", "PROP_KIND_", text.prop);
    if (!prop.ok()) return prop.status();
    if (*prop == v1::PROP_KIND_FORWARD_INFERENCE) return absl::OkStatus();
    op->set_prop_kind(*prop);
    if (*prop >= v1::PROP_KIND_BACKWARD) SetGradients(op);
  }
  return absl::OkStatus();
}

struct Kind {
  const char* name;
  absl::Status (*fill)(const PrimitiveText& text, const Sources& srcs, v1::PrimitiveDesc* desc);
};

// The list of primitives: each is a field of v1::PrimitiveDesc with an overload of Fill().
#define TILEWIRE_KIND(field)                                                                  \
  {                                                                                           \
#field, [](const PrimitiveText& text, const Sources& srcs,                                \
               v1::PrimitiveDesc*                                                             \
                   desc) { return FillWithPropagation(text, srcs, desc->mutable_##field()); } \
  }
constexpr Kind kKinds[] = {
    TILEWIRE_KIND(convolution),
    TILEWIRE_KIND(deconvolution),
    TILEWIRE_KIND(inner_product),
    TILEWIRE_KIND(matmul),
    TILEWIRE_KIND(pooling),
    TILEWIRE_KIND(eltwise),
    TILEWIRE_KIND(softmax),
    TILEWIRE_KIND(sum),
    TILEWIRE_KIND(concat),
    TILEWIRE_KIND(shuffle),
    TILEWIRE_KIND(reorder),
    TILEWIRE_KIND(lrn),
    TILEWIRE_KIND(binary),
    TILEWIRE_KIND(resampling),
    TILEWIRE_KIND(reduction),
    TILEWIRE_KIND(batch_normalization),
    TILEWIRE_KIND(layer_normalization),
    TILEWIRE_KIND(rnn),
    TILEWIRE_KIND(gather),
    TILEWIRE_KIND(prelu),
};
#undef TILEWIRE_KIND

absl::Status FillOperation(const PrimitiveText& text, const Sources& srcs,
                           v1::PrimitiveDesc* desc) {
  for (const Kind& kind : kKinds) {
    if (text.kind == kind.name) return kind.fill(text, srcs, desc);
  }
  return Invalid("primitive", text.kind,
                 absl::StrCat("one of ", absl::StrJoin(PrimitiveKinds(), ", ")));
}

}  // namespace

std::vector<std::string> PrimitiveKinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

absl::StatusOr<v1::PrimitiveDesc> ParsePrimitive(const PrimitiveText& text) {
  if (text.srcs.empty())
    return absl::InvalidArgumentError("give --src, for example --src=1x64x56x56");
  std::vector<v1::MemoryDesc> srcs;
  for (const std::string& src : text.srcs) {
    absl::StatusOr<v1::MemoryDesc> desc = ParseMemoryDesc(src);
    if (!desc.ok()) return desc.status();
    srcs.push_back(*desc);
  }
  v1::PrimitiveDesc desc;
  if (absl::Status status = FillOperation(text, srcs, &desc); !status.ok()) return status;
  for (const std::string& name : text.post_ops) {
    v1::PostOp* post_op = desc.mutable_attributes()->add_post_ops();
    if (name == "sum") {
      post_op->mutable_sum();
      continue;
    }
    if (name == "max_pooling") {
      post_op->mutable_max_pooling();
      continue;
    }
    if (name == "mask") {
      post_op->mutable_mask();
      continue;
    }
    auto algorithm = ParseEnum<v1::EltwiseAlgorithm>("post-op", "ELTWISE_", name);
    if (!algorithm.ok()) return algorithm.status();
    post_op->mutable_eltwise()->mutable_op()->set_algorithm(*algorithm);
  }
  auto precision = ParseEnum<v1::Precision>("--precision", "PRECISION_", text.precision);
  if (!precision.ok()) return precision.status();
  if (*precision != v1::PRECISION_EXACT) desc.mutable_attributes()->set_precision(*precision);
  return desc;
}

}  // namespace tilewire::client
