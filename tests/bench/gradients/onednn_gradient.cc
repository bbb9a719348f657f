// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/gradients/onednn_gradient.h"

#include <dnnl.hpp>
#include <unordered_map>

#include "tests/support/random_tensor.h"

namespace tilewire::bench {
namespace {

using dnnl::memory;

constexpr auto kFloats = memory::data_type::f32;

// A convolution's descriptors, all formats open.
struct Tensors {
  explicit Tensors(const Shape& s)
      : src({s.batch, s.ic, s.in, s.in}, kFloats, memory::format_tag::any),
        weights(s.groups > 1
                    ? memory::dims{s.groups, s.oc / s.groups, s.ic / s.groups, s.kernel, s.kernel}
                    : memory::dims{s.oc, s.ic, s.kernel, s.kernel},
                kFloats, memory::format_tag::any),
        bias({s.oc}, kFloats, memory::format_tag::a),
        dst({s.batch, s.oc, s.out, s.out}, kFloats, memory::format_tag::any),
        strides({s.stride, s.stride}),
        padding({s.padding, s.padding}) {}

  const memory::desc src, weights, bias, dst;
  const memory::dims strides, padding;
};

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

// The forward primitive that backward ones are described with.
dnnl::convolution_forward::primitive_desc Hint(const Tensors& t, const dnnl::engine& engine) {
  return {{dnnl::prop_kind::forward_training, kAlgorithm, t.src, t.weights, t.bias, t.dst,
           t.strides, t.padding, t.padding},
          engine};
}

dnnl::primitive_attr OwnScratchpad() {
  dnnl::primitive_attr attribute;
  attribute.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attribute;
}

}  // namespace

struct OneDnnGradient::State {
  void Add(int argument, const memory::desc& desc) {
    memory tensor(desc, engine);
    testing::FillUniform(
        {static_cast<float*>(tensor.get_data_handle()), desc.get_size() / sizeof(float)}, argument);
    arguments.insert({argument, tensor});
  }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
};

OneDnnGradient::OneDnnGradient(const Shape& shape, GradientKind kind)
    : state_(std::make_unique<State>()) {
  const Tensors t(shape);
  const auto hint = Hint(t, state_->engine);
  if (kind == GradientKind::kSrc) {
    const dnnl::convolution_backward_data::primitive_desc described(
        {kAlgorithm, t.src, t.weights, t.dst, t.strides, t.padding, t.padding}, OwnScratchpad(),
        state_->engine, hint);
    state_->primitive = dnnl::convolution_backward_data(described);
    state_->Add(DNNL_ARG_DIFF_SRC, described.diff_src_desc());
    state_->Add(DNNL_ARG_WEIGHTS, described.weights_desc());
    state_->Add(DNNL_ARG_DIFF_DST, described.diff_dst_desc());
    state_->Add(DNNL_ARG_SCRATCHPAD, described.scratchpad_desc());
    return;
  }
  const dnnl::convolution_backward_weights::primitive_desc described(
      {kAlgorithm, t.src, t.weights, t.bias, t.dst, t.strides, t.padding, t.padding},
      OwnScratchpad(), state_->engine, hint);
  state_->primitive = dnnl::convolution_backward_weights(described);
  state_->Add(DNNL_ARG_SRC, described.src_desc());
  state_->Add(DNNL_ARG_DIFF_WEIGHTS, described.diff_weights_desc());
  state_->Add(DNNL_ARG_DIFF_BIAS, described.diff_bias_desc());
  state_->Add(DNNL_ARG_DIFF_DST, described.diff_dst_desc());
  state_->Add(DNNL_ARG_SCRATCHPAD, described.scratchpad_desc());
}

OneDnnGradient::~OneDnnGradient() = default;

void OneDnnGradient::Run() {
  state_->primitive.execute(state_->stream, state_->arguments);
  state_->stream.wait();
}

}  // namespace tilewire::bench
