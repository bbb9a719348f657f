// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/onednn/convolution.h"

#include <cstdlib>
#include <dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/bench/stopwatch.h"
#include "tests/support/random_tensor.h"

namespace tilewire::bench {
namespace {

using dnnl::memory;

constexpr auto kF32 = memory::data_type::f32;

// The types of activations and of weights.
std::pair<memory::data_type, memory::data_type> TypesOf(Arithmetic arithmetic) {
  constexpr auto kBf16 = memory::data_type::bf16;
  if (arithmetic == Arithmetic::kU8S8) return {memory::data_type::u8, memory::data_type::s8};
  return arithmetic == Arithmetic::kBf16 ? std::pair(kBf16, kBf16) : std::pair(kF32, kF32);
}

dnnl::primitive_attr ReluAttribute(const Shape& s, Arithmetic arithmetic) {
  dnnl::post_ops post_ops;
  post_ops.append_eltwise(1.f, dnnl::algorithm::eltwise_relu, 0, 0);
  dnnl::primitive_attr attribute;
  attribute.set_post_ops(post_ops);
  attribute.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (arithmetic == Arithmetic::kU8S8)
    attribute.set_output_scales(2, std::vector<float>(s.oc, 1e-3f));
  return attribute;
}

dnnl::convolution_forward::primitive_desc Describe(const Shape& s, Arithmetic arithmetic,
                                                   const dnnl::engine& engine) {
  constexpr auto kAny = memory::format_tag::any;
  const auto [activation, weight] = TypesOf(arithmetic);
  const memory::desc src({s.batch, s.ic, s.in, s.in}, activation, kAny),
      dst({s.batch, s.oc, s.out, s.out}, activation, kAny);
  const memory::desc bias({s.oc}, kF32, memory::format_tag::a);
  const memory::desc weights =
      s.groups > 1 ? memory::desc({s.groups, s.oc / s.groups, s.ic / s.groups, s.kernel, s.kernel},
                                  weight, kAny)
                   : memory::desc({s.oc, s.ic, s.kernel, s.kernel}, weight, kAny);
  const memory::dims strides = {s.stride, s.stride}, padding = {s.padding, s.padding};
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference,
                                             dnnl::algorithm::convolution_auto, src, weights, bias,
                                             dst, strides, padding, padding);
  return {desc, ReluAttribute(s, arithmetic), engine};
}

}  // namespace

struct OneDnnConvolution::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::convolution_forward convolution;
  std::unordered_map<int, memory> arguments;
};

OneDnnConvolution::OneDnnConvolution(const Shape& shape, Arithmetic arithmetic)
    : state_(std::make_unique<State>()) {
  const auto described = Describe(shape, arithmetic, state_->engine);
  state_->convolution = dnnl::convolution_forward(described);
  state_->arguments = {{DNNL_ARG_SRC, memory(described.src_desc(), state_->engine)},
                       {DNNL_ARG_WEIGHTS, memory(described.weights_desc(), state_->engine)},
                       {DNNL_ARG_BIAS, memory(described.bias_desc(), state_->engine)},
                       {DNNL_ARG_DST, memory(described.dst_desc(), state_->engine)},
                       {DNNL_ARG_SCRATCHPAD, memory(described.scratchpad_desc(), state_->engine)}};
  for (auto& [argument, tensor] : state_->arguments) {
    const size_t size = tensor.get_desc().get_size();
    if (tensor.get_desc().data_type() == kF32) {
      testing::FillUniform({static_cast<float*>(tensor.get_data_handle()), size / sizeof(float)},
                           argument);
    } else {
      testing::FillGarbage(tensor.get_data_handle(), size, argument);
    }
  }
}

OneDnnConvolution::~OneDnnConvolution() = default;

FirstExecution MeasureOneDnnFirstExecution(const Shape& shape) {
  dnnl::set_primitive_cache_capacity(0);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  FirstExecution first;
  dnnl::convolution_forward::primitive_desc described;
  dnnl::convolution_forward convolution;
  first.create = Seconds([&] {
    described = Describe(shape, Arithmetic::kF32, engine);
    convolution = dnnl::convolution_forward(described);
  });
  const auto make = [&](const memory::desc& desc) {
    memory tensor(desc, engine);
    testing::FillUniform({static_cast<float*>(tensor.get_data_handle()), desc.get_size() / 4}, 1);
    return tensor;
  };
  const memory::desc packed_desc = described.weights_desc();
  memory plain =
      make(memory::desc(packed_desc.dims(), kF32,
                        shape.groups > 1 ? memory::format_tag::goihw : memory::format_tag::oihw));
  memory src = make(described.src_desc()), packed = make(packed_desc),
         bias = make(described.bias_desc()), dst = make(described.dst_desc()),
         scratchpad = make(described.scratchpad_desc());
  first.pack = Seconds([&] {
    dnnl::reorder(plain, packed).execute(stream, plain, packed);
    stream.wait();
  });
  first.run = Seconds([&] {
    convolution.execute(stream, {{DNNL_ARG_SRC, src},
                                 {DNNL_ARG_WEIGHTS, packed},
                                 {DNNL_ARG_BIAS, bias},
                                 {DNNL_ARG_DST, dst},
                                 {DNNL_ARG_SCRATCHPAD, scratchpad}});
    stream.wait();
  });
  return first;
}

void OneDnnConvolution::Run() {
  state_->convolution.execute(state_->stream, state_->arguments);
  state_->stream.wait();
}

}  // namespace tilewire::bench
