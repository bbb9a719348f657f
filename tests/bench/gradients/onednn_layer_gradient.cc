// SPDX-License-Identifier: Apache-2.0
#include <dnnl.hpp>
#include <string>
#include <vector>

#include "tests/bench/gradients/layer_gradients.h"
#include "tests/bench/onednn/side.h"

namespace tilewire::bench {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
constexpr auto kTraining = prop_kind::forward_training;

class OneDnnGradientOfLayer final : public OneDnnSide {
 public:
  // Throws dnnl::error.
  OneDnnGradientOfLayer(const Operation& operation, Tag tag)
      : OneDnnSide(operation, tag), kind_(LayerOf(operation)) {
    if (kind_ == "max" || kind_ == "avg") {
      Pooling();
    } else if (kind_ == "batch_normalization") {
      BatchNormalization();
    } else if (kind_ == "layer_normalization") {
      LayerNormalization();
    } else if (kind_ == "lrn") {
      Lrn();
    } else if (kind_ == "relu") {
      Relu();
    } else if (kind_ == "prelu") {
      Prelu();
    } else if (kind_ == "of_src_of_inner_product") {
      SrcOfInnerProduct();
    } else {
      WeightsOfInnerProduct();
    }
  }

 private:
  void Pooling() {
    const memory::dims kernel = {op_.at("k"), op_.at("k")}, strides = {op_.at("s"), op_.at("s")},
                       padding = {op_.at("p"), op_.at("p")};
    const algorithm of =
        kind_ == "max" ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding;
    const memory::desc src = Image(), dst = Image(op_.at("c"), op_.out(), tag_);
    const dnnl::pooling_forward::primitive_desc forward(
        {kTraining, of, src, dst, strides, kernel, padding, padding}, UserScratchpad(), engine_);
    Bring(DNNL_ARG_SRC, src);
    Bring(DNNL_ARG_DST, dst);
    if (kind_ == "max") Bring(DNNL_ARG_WORKSPACE, forward.workspace_desc());
    Finish<dnnl::pooling_forward>(forward);
    if (IsForwardForTraining(op_)) return;
    Run();
    const dnnl::pooling_backward::primitive_desc backward(
        {of, src, dst, strides, kernel, padding, padding}, UserScratchpad(), engine_, forward);
    Bring(DNNL_ARG_DIFF_SRC, src);
    Bring(DNNL_ARG_DIFF_DST, dst);
    Finish<dnnl::pooling_backward>(backward);
  }

  void BatchNormalization() {
    const auto flags = dnnl::normalization_flags::use_scale_shift;
    const dnnl::batch_normalization_forward::primitive_desc forward(
        {kTraining, Image(), 1e-5f, flags}, UserScratchpad(), engine_);
    Bring(DNNL_ARG_SRC, Image());
    Bring(DNNL_ARG_DST, Image());
    Bring(DNNL_ARG_MEAN, forward.mean_desc());
    Bring(DNNL_ARG_VARIANCE, forward.variance_desc());
    Bring(DNNL_ARG_SCALE_SHIFT, forward.weights_desc());
    Finish<dnnl::batch_normalization_forward>(forward);
    if (IsForwardForTraining(op_)) return;
    Run();
    const dnnl::batch_normalization_backward::primitive_desc backward(
        {prop_kind::backward, Image(), Image(), 1e-5f, flags}, UserScratchpad(), engine_, forward);
    Bring(DNNL_ARG_DIFF_SRC, Image());
    Bring(DNNL_ARG_DIFF_DST, Image());
    Bring(DNNL_ARG_DIFF_SCALE_SHIFT, backward.diff_weights_desc());
    Finish<dnnl::batch_normalization_backward>(backward);
  }

  void LayerNormalization() {
    const auto flags = dnnl::normalization_flags::use_scale_shift;
    const memory::desc rows({op_.at("n"), op_.at("c")}, kFloat, Tag::ab);
    const dnnl::layer_normalization_forward::primitive_desc forward({kTraining, rows, 1e-5f, flags},
                                                                    UserScratchpad(), engine_);
    Bring(DNNL_ARG_SRC, rows);
    Bring(DNNL_ARG_DST, rows);
    Bring(DNNL_ARG_MEAN, forward.mean_desc());
    Bring(DNNL_ARG_VARIANCE, forward.variance_desc());
    Bring(DNNL_ARG_SCALE_SHIFT, forward.weights_desc());
    Finish<dnnl::layer_normalization_forward>(forward);
    if (IsForwardForTraining(op_)) return;
    Run();
    const dnnl::layer_normalization_backward::primitive_desc backward(
        {prop_kind::backward, rows, rows, 1e-5f, flags}, UserScratchpad(), engine_, forward);
    Bring(DNNL_ARG_DIFF_SRC, rows);
    Bring(DNNL_ARG_DIFF_DST, rows);
    Bring(DNNL_ARG_DIFF_SCALE_SHIFT, backward.diff_weights_desc());
    Finish<dnnl::layer_normalization_backward>(backward);
  }

  void Lrn() {
    constexpr auto kAcross = algorithm::lrn_across_channels;
    const dnnl::lrn_forward::primitive_desc forward(
        {kTraining, kAcross, Image(), 5, 1e-4f, 0.75f, 1.0f}, UserScratchpad(), engine_);
    Bring(DNNL_ARG_SRC, Image());
    Bring(DNNL_ARG_DST, Image());
    Bring(DNNL_ARG_WORKSPACE, forward.workspace_desc());
    Finish<dnnl::lrn_forward>(forward);
    Run();
    const dnnl::lrn_backward::primitive_desc backward(
        {kAcross, Image(), Image(), 5, 1e-4f, 0.75f, 1.0f}, UserScratchpad(), engine_, forward);
    Bring(DNNL_ARG_DIFF_SRC, Image());
    Bring(DNNL_ARG_DIFF_DST, Image());
    Finish<dnnl::lrn_backward>(backward);
  }

  void Relu() {
    const dnnl::eltwise_forward::primitive_desc forward(
        {kTraining, algorithm::eltwise_relu, Image(), 0.0f}, UserScratchpad(), engine_);
    const dnnl::eltwise_backward::primitive_desc backward(
        {algorithm::eltwise_relu, Image(), Image(), 0.0f}, UserScratchpad(), engine_, forward);
    Bring(DNNL_ARG_SRC, Image());
    Bring(DNNL_ARG_DIFF_SRC, Image());
    Bring(DNNL_ARG_DIFF_DST, Image());
    Finish<dnnl::eltwise_backward>(backward);
  }

  void Prelu() {
    const int64_t size = IsPerPixel(op_) ? op_.at("in") : 1;
    const memory::desc slopes({1, IsPerChannel(op_) ? op_.at("c") : 1, size, size}, kFloat,
                              Tag::any);
    const dnnl::prelu_forward::primitive_desc forward({kTraining, Image(), slopes},
                                                      UserScratchpad(), engine_);
    const dnnl::prelu_backward::primitive_desc backward({Image(), slopes, Image(), slopes},
                                                        UserScratchpad(), engine_, forward);
    Bring(DNNL_ARG_SRC, Image());
    Bring(DNNL_ARG_WEIGHTS, backward.weights_desc());
    Bring(DNNL_ARG_DIFF_SRC, Image());
    Bring(DNNL_ARG_DIFF_WEIGHTS, backward.diff_weights_desc());
    Bring(DNNL_ARG_DIFF_DST, Image());
    Finish<dnnl::prelu_backward>(backward);
  }

  // Tensors of an inner product, all formats open, and its forward primitive.
  memory::desc Src() const { return Any({op_.at("n"), op_.at("c")}); }
  memory::desc Weights() const { return Any({op_.at("o"), op_.at("c")}); }
  memory::desc Bias() const { return memory::desc({op_.at("o")}, kFloat, Tag::a); }
  memory::desc Dst() const { return Any({op_.at("n"), op_.at("o")}); }
  static memory::desc Any(const memory::dims& dims) { return memory::desc(dims, kFloat, Tag::any); }
  dnnl::inner_product_forward::primitive_desc InnerProduct() const {
    return {{kTraining, Src(), Weights(), Bias(), Dst()}, engine_};
  }

  void SrcOfInnerProduct() {
    const dnnl::inner_product_backward_data::primitive_desc backward(
        {Src(), Weights(), Dst()}, UserScratchpad(), engine_, InnerProduct());
    Bring(DNNL_ARG_DIFF_SRC, backward.diff_src_desc());
    Bring(DNNL_ARG_WEIGHTS, backward.weights_desc());
    Bring(DNNL_ARG_DIFF_DST, backward.diff_dst_desc());
    Finish<dnnl::inner_product_backward_data>(backward);
  }

  void WeightsOfInnerProduct() {
    const dnnl::inner_product_backward_weights::primitive_desc backward(
        {Src(), Weights(), Bias(), Dst()}, UserScratchpad(), engine_, InnerProduct());
    Bring(DNNL_ARG_SRC, backward.src_desc());
    Bring(DNNL_ARG_DIFF_WEIGHTS, backward.diff_weights_desc());
    Bring(DNNL_ARG_DIFF_BIAS, backward.diff_bias_desc());
    Bring(DNNL_ARG_DIFF_DST, backward.diff_dst_desc());
    Finish<dnnl::inner_product_backward_weights>(backward);
  }

  const std::string kind_;
};

}  // namespace

std::unique_ptr<RunnableOperation> MakeOneDnnGradient(const Operation& operation) {
  using Tag = OneDnnSide::Tag;
  std::vector<Tag> tags = {Tag::nChw16c, Tag::nChw8c, Tag::nhwc, Tag::nchw};
  // Formats are the peer's choice, or rows.
  if (operation.kind.ends_with("inner_product") || operation.kind.ends_with("layer_normalization"))
    tags.resize(1);
  return FastestSide<OneDnnGradientOfLayer>(operation, tags);
}

}  // namespace tilewire::bench
