// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "tests/fuzz/networks/patterns.h"
#include "tests/support/random_choice.h"

namespace tilewire::testing {
namespace {

using onnx::TensorProto;

// A scale and a zero point: of the whole tensor, or one per index of an axis.
struct Parameters {
  Made scale, zero_point;
  ElementType type;
  Attributes attributes;
};

Parameters RandomParameters(NetworkMaker& maker, const Made& src) {
  Random& random = maker.random();
  Parameters by;
  by.type = Chance(random, 50) ? TensorProto::UINT8 : TensorProto::INT8;
  const bool per_index = src.rank() > 0 && Chance(random, 12);
  const int64_t axis = per_index ? random.Integer(0, src.rank() - 1) : 1;
  const Dims dims = per_index ? Dims{src.size(static_cast<int>(axis))} : Dims();
  if (per_index) by.attributes.push_back(Int("axis", axis));
  by.scale = per_index ? maker.Floats(dims, 0.125f, 0.5f)
                       : maker.Number(Pick(random, {0.03125f, 0.0625f, 0.02f, 1.f}));
  const bool around_zero = by.type == TensorProto::INT8 || Chance(random, 20);
  const int64_t most = around_zero ? (Chance(random, 30) ? 3 : 0) : 140;
  by.zero_point = maker.IntegersOf(dims, by.type, around_zero ? 0 : 116, most);
  return by;
}

Made Quantized(NetworkMaker& maker, const Made& real, const Parameters& by) {
  return maker.Node("QuantizeLinear", {real, by.scale, by.zero_point}, by.attributes);
}
Made Dequantized(NetworkMaker& maker, const Made& integers, const Parameters& by) {
  return maker.Node("DequantizeLinear", {integers, by.scale, by.zero_point}, by.attributes);
}

// To integers and back.
Made Rounded(NetworkMaker& maker, const Made& real) {
  if (!real.exists()) return {};
  const Parameters by = RandomParameters(maker, real);
  const Made integers = Quantized(maker, real, by);
  if (integers.exists() && Chance(maker.random(), 8)) maker.Node("Relu", {integers});
  return Dequantized(maker, integers, by);
}

// A real tensor that bytes stand for.
Made OfBytes(NetworkMaker& maker, const Dims& dims) {
  const Made like = {"", dims};
  const Parameters by = RandomParameters(maker, like);
  return Dequantized(maker, maker.Input(dims, by.type), by);
}

Made KnownOfBytes(NetworkMaker& maker, const Dims& dims, int axis) {
  Random& random = maker.random();
  const bool is_signed = Chance(random, 75), per_index = Chance(random, 50);
  const ElementType type = is_signed ? TensorProto::INT8 : TensorProto::UINT8;
  const Dims one = per_index ? Dims{dims[axis]} : Dims();
  const int64_t zero = is_signed ? 0 : 128;
  const Made integers = maker.IntegersOf(dims, type, zero - 30, zero + 30);
  return maker.Node("DequantizeLinear",
                    {integers, maker.Floats(one, 0.125f, 0.25f),
                     maker.IntegersOf(one, type, zero, zero + (Chance(random, 15) ? 3 : 0))},
                    {Int("axis", axis)});
}

Made WeightedOfBytes(NetworkMaker& maker, const Made& src) {
  Random& random = maker.random();
  if (src.rank() >= 3 && src.rank() <= 5 && Chance(random, 70)) {
    const int64_t outputs = random.Integer(1, 18), size = Pick<int64_t>(random, {1, 2, 3});
    Dims dims = {outputs, src.size(1)};
    dims.resize(src.rank(), size);
    const size_t spatial = src.rank() - 2;
    return maker.Node("Conv", {src, KnownOfBytes(maker, dims, 0)},
                      {Ints("pads", std::vector<int64_t>(2 * spatial, size / 2))});
  }
  if (Chance(random, 30)) return maker.Node("MatMul", {src, OfBytes(maker, {src.size(-1), 4})});
  const int64_t outputs = random.Integer(1, 9);
  return maker.Node("MatMul", {src, KnownOfBytes(maker, {src.size(-1), outputs}, 1)});
}

}  // namespace

// Between conversions: a convolution or product, a sum, an activation, a concatenation.
void AddQuantizedLayer(NetworkMaker& maker) {
  Random& random = maker.random();
  const Dims dims = maker.RandomDims(static_cast<int>(random.Integer(2, 6)));
  Made value = Chance(random, 50) ? OfBytes(maker, dims) : Rounded(maker, maker.AnyOf(2, 6));
  for (int64_t layers = random.Integer(1, 3); layers > 0 && value.exists(); --layers) {
    Made next;
    switch (random.Integer(0, 4)) {
      case 0:
        next = maker.Node("Add", {value, OfBytes(maker, value.dims)});
        break;
      case 1:
        next = maker.Node("Concat", {value, OfBytes(maker, value.dims)}, {Int("axis", 1)});
        break;
      case 2:
        next = maker.Node("Mul", {value, maker.Number(0.5f)});
        break;
      default:
        next = WeightedOfBytes(maker, value);
    }
    if (Chance(random, 40)) next = maker.Node("Relu", {next});
    value = Chance(random, 85) ? Rounded(maker, next) : next;
  }
}

// Operators between conversions that only move or compare elements.
void AddQuantizedMoves(NetworkMaker& maker) {
  Random& random = maker.random();
  Made value = OfBytes(maker, maker.RandomDims(static_cast<int>(random.Integer(1, 7))));
  for (int64_t moves = random.Integer(1, 3); moves > 0 && value.exists(); --moves) {
    switch (random.Integer(0, 4)) {
      case 0:
        value = Transposed(maker, value, RandomOrder(random, value.rank()));
        break;
      case 1:
        value = Reshaped(maker, value, {value.size(0), -1});
        break;
      case 2:
        value = maker.Node("Concat", {value, OfBytes(maker, value.dims)}, {Int("axis", 0)});
        break;
      case 3:
        value = maker.Node(
            "Pad",
            {value, maker.Integers(std::vector<int64_t>(2 * value.rank(), random.Integer(0, 1)))});
        break;
      default:
        value = maker.Node(
            "MaxPool", {value},
            {Ints("kernel_shape", std::vector<int64_t>(std::max(1, value.rank() - 2), 2))});
    }
    if (Chance(random, 40)) value = Rounded(maker, value);
  }
}

void AddDynamicQuantization(NetworkMaker& maker) {
  Random& random = maker.random();
  const Made x = maker.AnyOf(1, 5);
  const std::vector<Made> parts = maker.Nodes("DynamicQuantizeLinear", {x}, {}, 3);
  if (parts.empty()) return;
  const bool is_signed = Chance(random, 70), per_output = Chance(random, 40);
  const ElementType type = is_signed ? TensorProto::INT8 : TensorProto::UINT8;
  const int64_t zero = is_signed ? 0 : 128;
  Made sums;
  const int64_t outputs = random.Integer(1, 9);
  Dims factors = per_output ? Dims{outputs} : Dims();
  if (x.rank() >= 3 && Chance(random, 50)) {
    Dims dims = {outputs, x.size(1)};
    dims.resize(x.rank(), Pick<int64_t>(random, {1, 2}));
    const Made weights = maker.IntegersOf(dims, type, zero - 40, zero + 40);
    sums = maker.Node("ConvInteger",
                      {parts[0], weights, parts[2], maker.IntegersOf({}, type, zero, zero)});
    if (per_output) factors.resize(x.rank() - 1, 1);
  } else {
    const Made weights = maker.IntegersOf({x.size(-1), outputs}, type, zero - 40, zero + 40);
    sums = maker.Node("MatMulInteger",
                      {parts[0], weights, parts[2], maker.IntegersOf({}, type, zero, zero)});
  }
  const Made real = maker.Node("Cast", {sums}, {Int("to", TensorProto::FLOAT)});
  const Made scale = maker.Node("Mul", {parts[1], maker.Floats(factors, 0.125f, 0.5f)});
  const Made product = maker.Node("Mul", {real, scale});
  if (Chance(random, 60)) maker.Node("Add", {product, maker.Floats({product.size(-1)})});
}

// Bytes that are made real, scaled and shifted, by channel or not, before or after a transpose.
void AddImageOfBytes(NetworkMaker& maker) {
  Random& random = maker.random();
  const ElementType type = Chance(random, 80) ? TensorProto::UINT8 : TensorProto::INT8;
  const Dims dims = maker.RandomDims(static_cast<int>(random.Integer(0, 6)));
  Made value = maker.Node("Cast", {maker.Input(dims, type)}, {Int("to", TensorProto::FLOAT)});
  for (int64_t steps = random.Integer(1, 4); steps > 0 && value.exists(); --steps) {
    Dims by(value.dims.size(), 1);
    if (!by.empty() && Chance(random, 60)) {
      const int64_t axis = random.Integer(0, value.rank() - 1);
      by[axis] = value.dims[axis];
    }
    const Made numbers = maker.Floats(by, 0.25f, 2);
    switch (random.Integer(0, 3)) {
      case 0:
        value = maker.Node("Sub", {value, numbers});
        break;
      case 1:
        value = maker.Node("Div", {value, numbers});
        break;
      case 2:
        value = Transposed(maker, value, RandomOrder(random, value.rank()));
        break;
      default:
        value = maker.Node("Mul", {numbers, value});
    }
  }
  if (value.exists() && value.rank() == 4)
    maker.Node("Conv", {value, maker.Floats({5, value.size(1), 1, 1})});
}

}  // namespace tilewire::testing
