// SPDX-License-Identifier: Apache-2.0
//
// Networks of 8-bit integers. Scales are powers of two, weights and biases multiples of them and
// zero points even, so that nothing but the last rounding of a result rounds: it gives the same
// integers in any order of the arithmetic.
#include <cmath>
#include <memory>
#include <utility>

#include "engine/onnx/ops/weights.h"
#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/lowering/networks.h"

namespace tilewire::network {
namespace {

constexpr DataType kU8 = DataType::kU8, kS8 = DataType::kS8;

class KnownIntegers final : public StoredNumbers {
 public:
  KnownIntegers(std::vector<float> integers, int32_t zero_point)
      : integers_(integers.begin(), integers.end()), differences_(std::move(integers)) {
    for (float& element : differences_) element -= static_cast<float>(zero_point);
  }
  absl::StatusOr<HeldFloats> Load() const override { return HeldFloats{differences_, nullptr}; }
  absl::StatusOr<HeldBytes> LoadBytes() const override { return HeldBytes{integers_, nullptr}; }

 private:
  const std::vector<int8_t> integers_;
  std::vector<float> differences_;
};

void MakeIntegers(Weights* weights, int64_t outputs, float step, int32_t zero_point = 0) {
  std::vector<float> integers(weights->data.begin(), weights->data.end());
  float largest = 0;
  for (float element : integers) largest = std::max(largest, std::abs(element));
  for (float& element : integers) element = std::nearbyint(element / largest * 127);
  weights->data = {};
  weights->owner = nullptr;
  weights->s8 = std::make_shared<const KnownIntegers>(std::move(integers), zero_point);
  weights->zero_point = zero_point;
  for (int64_t o = 0; o < outputs; ++o) weights->scale.push_back(o % 3 == 0 ? 2 * step : step);
}

// The operation that was added last, on integers: from `src` to `dst` of `type`, or to f32.
template <typename Weighted>
ValueId QuantizedOperation(NetworkBuilder* b, QuantizationParams src,
                           std::optional<QuantizationParams> dst, DataType type,
                           float step = 1 / 128.0f) {
  Operation& operation = b->last();
  auto& weighted = std::get<Weighted>(operation.params);
  MakeIntegers(&weighted.weights, weighted.weights.dims[0], step);
  for (float& bias : weighted.bias) bias = std::nearbyint(bias * 16) / 16;
  weighted.src_quantization = src;
  weighted.dst_quantization = dst;
  if (dst) b->SetType(operation.dst, type);
  return operation.dst;
}

ValueId ToIntegers(NetworkBuilder* b, const std::string& name, ValueId src,
                   QuantizationParams params, DataType type) {
  return b->AddOperation(name, Quantize{0, {params}}, {src}, b->dims(src), type);
}
ValueId ToReal(NetworkBuilder* b, const std::string& name, ValueId src, QuantizationParams params) {
  return b->AddOperation(name, Dequantize{0, {params}}, {src}, b->dims(src));
}

FusedStep AddIntegers(ValueId addend, QuantizationParams params) {
  FusedStep step = Add(addend);
  step.quantization = params;
  return step;
}

// Zero points on all sides of a fused sum; a maximum of integers; a padded source that is not
// centered.
Network QuantizedResidual(int64_t n) {
  NetworkBuilder b;
  const QuantizationParams input{1 / 64.0f, 120}, first{1 / 16.0f, 4}, inner{1 / 8.0f, 0},
      last{1 / 8.0f, 10};
  const ValueId x = b.Input("x", {n, 3, 9, 7});
  const ValueId q = ToIntegers(&b, "q", x, input, kU8);
  const ValueId padded = b.AddOperation(
      "padded",
      Select{{{}, {}, {{-1, 1, 1}, {0, 1, 9}, {-1, 1, 1}}, {{-1, 1, 1}, {0, 1, 7}, {-1, 1, 1}}},
             120},
      {q}, {n, 3, 11, 9}, kU8);
  b.Conv("stem", padded, 20, {.padding = 0, .fused = {Relu()}});
  const ValueId stem = QuantizedOperation<Convolution>(&b, input, first, kU8);
  const ValueId pool = b.MaxPool("pool", stem, 3, 2, 1);
  b.SetType(pool, kU8);
  b.Conv("one", pool, 16, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  const ValueId one = QuantizedOperation<Convolution>(&b, first, inner, kU8);
  b.Conv("two", one, 20, {.fused = {AddIntegers(pool, first), Relu()}});
  const ValueId two = QuantizedOperation<Convolution>(&b, inner, last, kU8);
  b.Fc("fc", two, 11);
  const ValueId fc = QuantizedOperation<InnerProduct>(&b, last, std::nullopt, kU8);
  return b.Finish({fc, ToReal(&b, "two.real", two, last), ToReal(&b, "r", pool, first)});
}

// Groups, one channel a group, signed sources and results, a concat of integers, an f32 sum behind
// integer products.
Network QuantizedGroups(int64_t n) {
  NetworkBuilder b;
  const QuantizationParams fine{1 / 64.0f, 0}, wide{1 / 4.0f, 0};
  const ValueId x = b.Input("x", {n, 24, 6, 5});
  const ValueId q = ToIntegers(&b, "q", x, fine, kS8);
  b.Conv("grouped", q, 48, {.kernel = 1, .padding = 0, .groups = 3});
  const ValueId grouped = QuantizedOperation<Convolution>(&b, fine, wide, kS8);
  b.Conv("depthwise", grouped, 48, {.groups = 48, .bias = false, .fused = {Relu()}});
  const ValueId depthwise = QuantizedOperation<Convolution>(&b, wide, wide, kS8);
  const ValueId both = b.ConcatOf("both", {grouped, depthwise});
  b.SetType(both, kS8);
  b.Conv("back", both, 24, {.kernel = 1, .padding = 0, .fused = {Add(x)}});
  const ValueId back = QuantizedOperation<Convolution>(&b, wide, std::nullopt, kS8);
  return b.Finish({back, ToReal(&b, "both.real", both, wide)});
}

// Channels enough to fill matrix tiles: an unsigned and a signed source, whole steps and parts of
// one, groups, a sum.
Network QuantizedWide(int64_t n) {
  NetworkBuilder b;
  const QuantizationParams input{1 / 64.0f, 120}, inner{1 / 8.0f, 0}, centered{1 / 4.0f, -6};
  const ValueId x = b.Input("x", {n, 40, 6, 9});
  const ValueId q = ToIntegers(&b, "q", x, input, kU8);
  b.Conv("point", q, 64, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  const ValueId point = QuantizedOperation<Convolution>(&b, input, inner, kU8);
  b.Conv("grouped", point, 64, {.groups = 2, .fused = {AddIntegers(point, inner), Relu()}});
  const ValueId grouped = QuantizedOperation<Convolution>(&b, inner, centered, kS8);
  b.Conv("last", grouped, 33, {.kernel = 1, .padding = 0});
  return b.Finish({QuantizedOperation<Convolution>(&b, centered, std::nullopt, kU8)});
}

// Sums of several types and grids that are not powers of two: every operation rounds as in f32.
Network QuantizedSums(int64_t n) {
  NetworkBuilder b;
  const QuantizationParams one{0.0079f, 117}, two{0.013f, -3}, three{0.0171f, 5};
  const ValueId x = b.Input("x", {n, 11, 6, 5}), y = b.Input("y", {n, 11, 6, 5});
  const ValueId p = ToIntegers(&b, "p", x, one, kU8), q = ToIntegers(&b, "q", y, two, kS8);
  const Dims dims = b.dims(p);
  const ValueId sum = b.AddOperation("sum", IntegerSum{{one, two}, three, true}, {p, q}, dims, kU8);
  const ValueId moved = b.AddOperation("moved", IntegerSum{{two}, three}, {q}, dims, kU8);
  const ValueId signs =
      b.AddOperation("signs", IntegerSum{{one, two, one}, two}, {p, q, p}, dims, kS8);
  const ValueId both = b.ConcatOf("both", {sum, moved});
  b.SetType(both, kU8);
  const ScaleBytes each{1, PseudoRandom("scales", 11, 0.5f, 1), PseudoRandom("shifts", 11, -1, 1)};
  const ValueId scaled = b.AddOperation("scaled", each, {moved}, dims);
  return b.Finish(
      {ToReal(&b, "both.real", both, three), ToReal(&b, "signs.real", signs, two), scaled});
}

// Integers by a range that is computed, the same for every image: with padding around them,
// strided, in groups, one channel per group, and as they are; weights with zero points.
Network QuantizedInRun(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 7, 9});
  const ValueId range =
      b.AddOperation("range", QuantizationRange{}, {b.Numbers("limits", {3, 5})}, {2});
  const auto dynamic = [&](const std::string& name, int64_t channels, ConvolutionOptions options,
                           int32_t zero_point = 0) {
    const ValueId result = b.Conv(name, x, channels, std::move(options));
    Convolution c = std::get<Convolution>(b.last().params);
    MakeIntegers(&c.weights, channels, 1 / 128.0f, zero_point);
    b.last().params = DynamicConvolution{c.weights,   c.bias,         c.groups,        c.strides,
                                         c.dilations, c.padding_left, c.padding_right, c.fused};
    b.last().srcs.push_back(range);
    return result;
  };
  const ValueId sum = dynamic("sum", 20, {.fused = {Add(x), Relu()}});
  const ValueId strided = dynamic("strided", 33, {.stride = 2, .bias = false});
  const ValueId point = dynamic("point", 40, {.kernel = 1, .padding = 0, .fused = {Relu()}});
  const ValueId grouped = dynamic("grouped", 30, {.padding = 2, .dilation = 1, .groups = 5});
  const ValueId depthwise = dynamic("depthwise", 20, {.groups = 20});
  const ValueId shifted = dynamic("shifted", 33, {.stride = 2}, -11);
  const ValueId shifted_point = dynamic("shifted_point", 17, {.kernel = 1, .padding = 0}, 90);
  return b.Finish(
      {sum, strided, b.Conv("end", point, 8), grouped, depthwise, shifted, shifted_point});
}

// Rows of integers by such a range, of one row and of many for each image, and the integers.
Network IntegersInRun(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 5, 7, 9});
  const ValueId range =
      b.AddOperation("range", QuantizationRange{}, {b.Numbers("limits", {3, 5})}, {2});
  const auto product = [&](const std::string& name, ValueId src, int64_t outputs, bool bias,
                           Dims dst, int32_t zero_point = 0) {
    const Dims dims = {outputs, b.dims(src).back()};
    DynamicInnerProduct dynamic;
    dynamic.weights =
        reader::WeightsOf(MakeFloats(name, dims, PseudoRandom(name, dims[0] * dims[1], -1, 1)));
    MakeIntegers(&dynamic.weights, outputs, 1 / 128.0f, zero_point);
    if (bias) dynamic.bias = PseudoRandom(name + ".b", outputs, -1, 1);
    if (!bias) dynamic.fused = {Relu()};
    return b.AddOperation(name, std::move(dynamic), {src, range}, std::move(dst));
  };
  const ValueId rows = product("rows", x, 33, false, {n, 5, 7, 33});
  const ValueId flat = b.Reshaped("flat", x, {n, 315});
  const ValueId one = product("one", flat, 20, true, {n, 20});
  const ValueId shifted = product("shifted", x, 18, true, {n, 5, 7, 18}, -77);
  const ValueId integers =
      b.AddOperation("integers", DynamicQuantize{}, {x, range}, b.dims(x), kU8);
  const ValueId real = ToReal(&b, "real", integers, {0.5f, 3});
  return b.Finish({real, rows, one, shifted});
}

// Products of such rows with each other, turned and not.
Network ProductsInRun(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 7, 36}), y = b.Input("y", {n, 3, 36, 20});
  const ValueId wide = b.AddOperation("wide", QuantizationRange{}, {b.Numbers("far", {4, 6})}, {2});
  const ValueId range =
      b.AddOperation("range", QuantizationRange{}, {b.Numbers("limits", {3, 5})}, {2});
  const ValueId p = b.AddOperation("p", DynamicQuantize{}, {x, range}, b.dims(x), kU8);
  const ValueId q = b.AddOperation("q", DynamicQuantize{}, {y, wide}, b.dims(y), kU8);
  const ValueId turned = b.AddOperation("turned", Transpose{{0, 1, 3, 2}}, {p}, {n, 3, 36, 7}, kU8);
  const ValueId product =
      b.AddOperation("product", DynamicMatmul{0.5f}, {p, range, q, wide}, {n, 3, 7, 20});
  const ValueId squares =
      b.AddOperation("squares", DynamicMatmul{}, {p, range, turned, range}, {n, 3, 7, 7});
  return b.Finish({product, squares});
}

// Products of computed integers, as in attention: of parts of one tensor, turned and not, with zero
// points on all sides; to integers, which a transpose and a product with weights read, and to f32.
Network QuantizedProducts(int64_t n) {
  NetworkBuilder b;
  const QuantizationParams input{1 / 64.0f, 121}, other{1 / 32.0f, -5}, score{1 / 2.0f, 98},
      last{1 / 4.0f, 0};
  const ValueId x = b.Input("x", {n, 13, 3, 36}), y = b.Input("y", {n, 3, 13, 13});
  const ValueId q = ToIntegers(&b, "q", x, input, kU8), p = ToIntegers(&b, "p", y, other, kS8);
  const ValueId rows = b.AddOperation("rows", Transpose{{0, 2, 1, 3}}, {q}, {n, 3, 13, 36}, kU8);
  const ValueId turned =
      b.AddOperation("turned", Transpose{{0, 2, 3, 1}}, {q}, {n, 3, 36, 13}, kU8);
  const ValueId scores = b.AddOperation("scores", IntegerMatmul{input, input, score},
                                        {rows, turned}, {n, 3, 13, 13}, kU8);
  const ValueId context =
      b.AddOperation("context", IntegerMatmul{other, input, last}, {p, rows}, {n, 3, 13, 36}, kS8);
  const ValueId back =
      b.AddOperation("back", Transpose{{0, 2, 1, 3}}, {context}, {n, 13, 3, 36}, kS8);
  const ValueId real = b.AddOperation("real", IntegerMatmul{score, other, std::nullopt},
                                      {scores, p}, {n, 3, 13, 13});
  return b.Finish(
      {ToReal(&b, "scores.real", scores, score), ToReal(&b, "back.real", back, last), real});
}

// Shares that softmax gives, as integers of two kinds, which no convolution reads.
Network QuantizedShares(int64_t n) {
  NetworkBuilder b;
  const QuantizationParams one{1 / 255.0f, 0}, two{1 / 200.0f, 3};
  const ValueId shares = b.SoftmaxOf("shares", b.Input("x", {n, 3, 13, 12}), 3);
  const ValueId q = ToIntegers(&b, "q", shares, one, kU8);
  const ValueId p = b.AddOperation("p", IntegerSum{{one}, two}, {q}, b.dims(q), kU8);
  return b.Finish({b.SoftmaxOf("again", ToReal(&b, "real", p, two), 3)});
}

}  // namespace

absl::Span<const NetworkCase> QuantizedNetworks() {
  static constexpr NetworkCase kCases[] = {
      {"QuantizedResidual", QuantizedResidual}, {"QuantizedGroups", QuantizedGroups},
      {"QuantizedProducts", QuantizedProducts}, {"QuantizedWide", QuantizedWide},
      {"QuantizedSums", QuantizedSums},         {"QuantizedInRun", QuantizedInRun},
      {"IntegersInRun", IntegersInRun},         {"ProductsInRun", ProductsInRun},
      {"QuantizedShares", QuantizedShares}};
  return kCases;
}

Network QuantizedOrdinary(int64_t n) {
  NetworkBuilder b;
  const QuantizationParams input{0.0079f, 117}, output{kOrdinaryStep, 93};
  const float step = 0.0031f;
  const FusedStep swish{.activation = {functions::EltwiseAlgorithm::kSwish, 1, 0}};
  const FusedStep clip{.activation = {functions::EltwiseAlgorithm::kClip, -0.7f, 1.9f}};
  const ValueId x = b.Input("x", {n, 5, 6, 7});
  const ValueId q = ToIntegers(&b, "q", x, input, kU8);
  b.Conv("plain", q, 20, {.padding = 0});
  const ValueId plain = QuantizedOperation<Convolution>(&b, input, output, kU8, step);
  b.Conv("swish", q, 20, {.kernel = 1, .padding = 0, .fused = {swish}});
  const ValueId swished = QuantizedOperation<Convolution>(&b, input, output, kU8, step);
  b.Conv("sum", q, 5, {.kernel = 1, .padding = 0, .fused = {AddIntegers(q, input), clip}});
  const ValueId sum = QuantizedOperation<Convolution>(&b, input, output, kU8, step);
  b.Fc("fc", q, 11, {.fused = {Relu()}});
  const ValueId fc = QuantizedOperation<InnerProduct>(&b, input, output, kU8, step);
  std::vector<ValueId> outputs;
  for (const ValueId integers : {plain, swished, sum, fc})
    outputs.push_back(ToReal(&b, "real" + std::to_string(integers), integers, output));
  return b.Finish(outputs);
}

}  // namespace tilewire::network
