// SPDX-License-Identifier: Apache-2.0
#include <dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/bench/onednn/side.h"

namespace tilewire::bench {
namespace {

using dnnl::algorithm;
using dnnl::memory;

constexpr auto kInference = dnnl::prop_kind::forward_inference;

class OneDnnOperation final : public OneDnnSide {
 public:
  // Throws dnnl::error.
  OneDnnOperation(const Operation& operation, Tag tag) : OneDnnSide(operation, tag) {
    if (op_.kind.ends_with("convolution")) {
      Convolution();
    } else if (op_.kind == "max" || op_.kind == "avg") {
      Pooling();
    } else if (op_.kind == "lrn") {
      Lrn();
    } else if (op_.kind == "softmax") {
      Softmax();
    } else if (op_.kind == "shuffle") {
      Shuffle();
    } else if (op_.kind == "sum") {
      Sum();
    } else if (op_.kind == "concat") {
      Concat();
    } else if (op_.kind.ends_with("inner_product")) {
      InnerProduct();
    } else if (op_.kind.ends_with("matmul")) {
      Matmul();
    } else if (op_.kind.find("_to_") != std::string::npos) {
      Reorder();
    } else {
      Eltwise();
    }
  }

 private:
  memory::data_type Activation() const { return op_.IsInteger() ? memory::data_type::u8 : kFloat; }
  memory::data_type Weight() const { return op_.IsInteger() ? memory::data_type::s8 : kFloat; }
  memory::desc Any(const memory::dims& dims, memory::data_type type) const {
    return memory::desc(dims, type, Tag::any);
  }
  dnnl::primitive_attr Attribute() const {
    dnnl::primitive_attr attribute = UserScratchpad();
    if (op_.IsInteger()) attribute.set_output_scales(2, std::vector<float>(op_.at("o"), 1e-3f));
    return attribute;
  }

  void Convolution() {
    const int64_t g = op_.at("g"), k = op_.at("k"), o = op_.at("o"), c = op_.at("c"),
                  out = op_.out();
    const memory::desc weights =
        g > 1 ? Any({g, o / g, c / g, k, k}, Weight()) : Any({o, c, k, k}, Weight());
    const memory::dims strides = {op_.at("s"), op_.at("s")}, padding = {op_.at("p"), op_.at("p")};
    dnnl::post_ops relu;
    relu.append_eltwise(1.f, algorithm::eltwise_relu, 0, 0);
    dnnl::primitive_attr attribute = Attribute();
    attribute.set_post_ops(relu);
    const dnnl::convolution_forward::primitive_desc described(
        {kInference, algorithm::convolution_auto,
         Any({op_.at("n"), c, op_.at("in"), op_.at("in")}, Activation()), weights,
         memory::desc({o}, kFloat, Tag::a), Any({op_.at("n"), o, out, out}, Activation()), strides,
         padding, padding},
        attribute, engine_);
    Bring(DNNL_ARG_SRC, described.src_desc());
    Bring(DNNL_ARG_WEIGHTS, described.weights_desc());
    Bring(DNNL_ARG_BIAS, described.bias_desc());
    Bring(DNNL_ARG_DST, described.dst_desc());
    Finish<dnnl::convolution_forward>(described);
  }

  void Pooling() {
    const memory::dims kernel = {op_.at("k"), op_.at("k")}, strides = {op_.at("s"), op_.at("s")},
                       padding = {op_.at("p"), op_.at("p")};
    const memory::desc dst({op_.at("n"), op_.at("c"), op_.out(), op_.out()}, kFloat, Tag::any);
    const dnnl::pooling_forward::primitive_desc described(
        {kInference,
         op_.kind == "max" ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding,
         Image(), dst, strides, kernel, padding, padding},
        UserScratchpad(), engine_);
    Bring(DNNL_ARG_SRC, described.src_desc());
    Bring(DNNL_ARG_DST, described.dst_desc());
    Finish<dnnl::pooling_forward>(described);
  }

  void Lrn() {
    const dnnl::lrn_forward::primitive_desc described(
        {kInference, algorithm::lrn_across_channels, Image(), 5, 1e-4f, 0.75f, 1.0f},
        UserScratchpad(), engine_);
    Bring(DNNL_ARG_SRC, Image());
    Bring(DNNL_ARG_DST, Image());
    Finish<dnnl::lrn_forward>(described);
  }

  void Softmax() {
    const memory::desc md({op_.at("n"), op_.at("c")}, kFloat, Tag::ab);
    const dnnl::softmax_forward::primitive_desc described({kInference, md, 1}, UserScratchpad(),
                                                          engine_);
    Bring(DNNL_ARG_SRC, md);
    Bring(DNNL_ARG_DST, md);
    Finish<dnnl::softmax_forward>(described);
  }

  void Shuffle() {
    const dnnl::shuffle_forward::primitive_desc described(
        {kInference, Image(), 1, static_cast<int>(op_.at("c") / op_.at("g"))}, engine_,
        UserScratchpad());
    Bring(DNNL_ARG_SRC, Image());
    Bring(DNNL_ARG_DST, Image());
    Finish<dnnl::shuffle_forward>(described);
  }

  void Sum() {
    const std::vector<memory::desc> sources(op_.at("m"), Image());
    const dnnl::sum::primitive_desc described(std::vector<float>(sources.size(), 1.0f), sources,
                                              engine_, UserScratchpad());
    BringMany(sources);
    Bring(DNNL_ARG_DST, described.dst_desc());
    Finish<dnnl::sum>(described);
  }

  void Concat() {
    std::vector<memory::desc> sources;
    for (const char* size : {"c1", "c2", "c3", "c4"})
      sources.push_back(Image(op_.at(size), op_.at("in"), tag_));
    const dnnl::concat::primitive_desc described(1, sources, engine_, UserScratchpad());
    BringMany(sources);
    Bring(DNNL_ARG_DST, described.dst_desc());
    Finish<dnnl::concat>(described);
  }

  void BringMany(const std::vector<memory::desc>& sources) {
    for (size_t i = 0; i < sources.size(); ++i) {
      Bring(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), sources[i]);
    }
  }

  void InnerProduct() {
    const int64_t n = op_.at("n"), c = op_.at("c"), o = op_.at("o");
    const dnnl::inner_product_forward::primitive_desc described(
        {kInference, Any({n, c}, Activation()), Any({o, c}, Weight()),
         memory::desc({o}, kFloat, Tag::a), Any({n, o}, Activation())},
        Attribute(), engine_);
    Bring(DNNL_ARG_SRC, described.src_desc());
    Bring(DNNL_ARG_WEIGHTS, described.weights_desc());
    Bring(DNNL_ARG_BIAS, described.bias_desc());
    Bring(DNNL_ARG_DST, described.dst_desc());
    Finish<dnnl::inner_product_forward>(described);
  }

  // Weights as they lie: they are computed, so that a layout of the peer's choice would cost a
  // reorder in every run.
  void Matmul() {
    const int64_t n = op_.at("n"), m = op_.at("m"), c = op_.at("c"), o = op_.at("o");
    dnnl::primitive_attr attribute = UserScratchpad();
    attribute.set_output_scales(0, {1e-3f});
    const dnnl::matmul::primitive_desc described(
        {memory::desc({n, m, c}, Activation(), Tag::abc),
         memory::desc({n, c, o}, Weight(), op_.at("t") != 0 ? Tag::acb : Tag::abc),
         memory::desc({n, m, o}, Activation(), Tag::abc)},
        attribute, engine_);
    Bring(DNNL_ARG_SRC, described.src_desc());
    Bring(DNNL_ARG_WEIGHTS, described.weights_desc());
    Bring(DNNL_ARG_DST, described.dst_desc());
    Finish<dnnl::matmul>(described);
  }

  void Reorder() {
    const bool nchw = op_.kind.find("nchw") != std::string::npos;
    const memory::desc plain = Image(op_.at("c"), op_.at("in"), nchw ? Tag::nchw : Tag::nhwc);
    const bool to_blocked = op_.kind.starts_with("n");
    const memory::desc from = to_blocked ? plain : Image(), to = to_blocked ? Image() : plain;
    const dnnl::reorder::primitive_desc described(engine_, from, engine_, to, UserScratchpad());
    Bring(DNNL_ARG_FROM, from);
    Bring(DNNL_ARG_TO, to);
    Finish<dnnl::reorder>(described);
  }

  void Eltwise() {
    static const std::unordered_map<std::string, algorithm> kAlgorithms = {
        {"relu", algorithm::eltwise_relu},
        {"tanh", algorithm::eltwise_tanh},
        {"elu", algorithm::eltwise_elu},
        {"square", algorithm::eltwise_square},
        {"abs", algorithm::eltwise_abs},
        {"sqrt", algorithm::eltwise_sqrt},
        {"linear", algorithm::eltwise_linear},
        {"bounded_relu", algorithm::eltwise_bounded_relu},
        {"soft_relu", algorithm::eltwise_soft_relu},
        {"logistic", algorithm::eltwise_logistic},
        {"exp", algorithm::eltwise_exp},
        {"gelu", algorithm::eltwise_gelu_tanh}};
    const dnnl::eltwise_forward::primitive_desc described(
        {kInference, kAlgorithms.at(op_.kind), Image(), 0.5f, 0.25f}, UserScratchpad(), engine_);
    Bring(DNNL_ARG_SRC, Image());
    Bring(DNNL_ARG_DST, Image());
    Finish<dnnl::eltwise_forward>(described);
  }
};

}  // namespace

std::unique_ptr<RunnableOperation> MakeOneDnn(const Operation& operation) {
  // Reorder and shuffle are of given layouts; elsewhere the peer is at its best.
  const bool given =
      operation.kind == "shuffle" || operation.kind.find("_to_") != std::string::npos;
  using Tag = OneDnnSide::Tag;
  std::vector<Tag> tags = {Tag::nChw16c};
  if (!given) tags.insert(tags.end(), {Tag::nChw8c, Tag::nhwc, Tag::nchw});
  return FastestSide<OneDnnOperation>(operation, tags);
}

}  // namespace tilewire::bench
