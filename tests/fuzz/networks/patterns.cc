// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/networks/patterns.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tests/support/random_choice.h"

namespace tilewire::testing {
namespace {

// One number per index of `axis`, with dimensions of 1 after it; now and then of other dims.
Dims AlongAxis(Random& random, const Dims& dims, int axis) {
  if (dims.empty() || Chance(random, 10)) return dims;
  Dims along(dims.size() - axis, 1);
  along[0] = dims[axis];
  if (Chance(random, 20)) along.insert(along.begin(), axis, 1);
  return along;
}

Made Convolved(NetworkMaker& maker, const Made& src, int64_t outputs, int64_t size) {
  Random& random = maker.random();
  const int64_t channels = src.size(1);
  const int64_t groups = Chance(random, 25) ? std::max<int64_t>(1, channels) : 1;
  outputs = groups > 1 ? channels : outputs;
  Dims dims = {outputs, channels / groups};
  dims.resize(src.dims.size(), size);
  const Made weights = maker.Floats(dims);
  std::vector<Made> inputs = {src, weights};
  if (Chance(random, 50)) inputs.push_back(maker.Floats({outputs}));
  const size_t spatial = src.dims.size() - 2;
  return maker.Node(
      "Conv", inputs,
      {Int("group", groups), Ints("pads", std::vector<int64_t>(2 * spatial, size / 2)),
       Ints("strides", std::vector<int64_t>(spatial, random.Integer(1, 2)))});
}

Made Mean(NetworkMaker& maker, const Made& src, int64_t axis) {
  Random& random = maker.random();
  if (src.rank() >= 3 && Chance(random, 15)) {  // of windows that may leave something out
    std::vector<int64_t> kernel(src.rank() - 2, 1), strides(src.rank() - 2, 1);
    kernel.back() = std::max<int64_t>(1, src.size(-1) - (Chance(random, 40) ? 1 : 0));
    strides.back() = kernel.back();
    return maker.Node("AveragePool", {src},
                      {Ints("kernel_shape", kernel), Ints("strides", strides)});
  }
  if (maker.opset() >= 18) return maker.Node("ReduceMean", {src, maker.Integers({axis})});
  return maker.Node("ReduceMean", {src}, {Ints("axes", {axis})});
}

// (x - mean) / sqrt(variance + epsilon) * scale + shift.
void AddSpelledNormalization(NetworkMaker& maker) {
  Random& random = maker.random();
  const Made x = maker.AnyOf(1, 7);
  const int64_t axis = Chance(random, 85) ? -1 : random.Integer(0, x.rank() - 1);
  const Made centred = maker.Node("Sub", {x, Mean(maker, x, axis)});
  const Made square = Chance(random, 50) ? maker.Node("Mul", {centred, centred})
                                         : maker.Node("Pow", {centred, maker.Number(2)});
  const Made variance = Mean(maker, square, axis);
  const Made shifted = maker.Node("Add", {variance, maker.Number(0.25f)});
  const Made quotient = maker.Node("Div", {centred, maker.Node("Sqrt", {shifted})});
  if (!quotient.exists()) return;
  const Dims row = AlongAxis(random, quotient.dims, quotient.rank() - 1);
  const Made scaled = maker.Node("Mul", {quotient, maker.Floats(row)});
  if (Chance(random, 60)) maker.Node("Add", {scaled, maker.Floats(row)});
}

void AddNormalization(NetworkMaker& maker) {
  Random& random = maker.random();
  const Made x = maker.AnyOf(2, 6);
  const int64_t channels = x.size(1);
  const Made row = maker.Floats({channels}), mean = maker.Floats({channels}, 0, 1);
  const Made variance = maker.Floats({channels}, 1, 2);
  switch (random.Integer(0, 3)) {
    case 0:
      maker.Node("BatchNormalization", {x, row, mean, mean, variance});
      return;
    case 1:
      maker.Node("InstanceNormalization", {x, row, mean});
      return;
    case 2: {
      const int64_t axis = random.Integer(-x.rank(), x.rank() - 1);
      const Dims rest(x.dims.begin() + (axis < 0 ? axis + x.rank() : axis), x.dims.end());
      maker.Node("LayerNormalization", {x, maker.Floats(rest), maker.Floats(rest)},
                 {Int("axis", axis)});
      return;
    }
    default: {  // a sum that is normalized, through a reshape or not
      Made sum = maker.Node("Add", {x, maker.Input(x.dims)});
      if (Chance(random, 30)) sum = Reshaped(maker, sum, {1, sum.size(0), -1});
      const Dims rest = {sum.size(-1)};
      maker.Node("LayerNormalization", {sum, maker.Floats(rest), maker.Floats(rest)});
      if (Chance(random, 30)) maker.Node("Relu", {sum});
    }
  }
}

// Gelu, swish, hard swish and their gates.
void AddSpelledActivation(NetworkMaker& maker) {
  Random& random = maker.random();
  const Made x = maker.AnyOf(0, 8);
  const int64_t kind = random.Integer(0, 2);
  if (kind == 0) {
    const Made erf = maker.Node("Erf", {maker.Node("Div", {x, maker.Number(1.41421356f)})});
    const Made gate = maker.Node("Add", {erf, maker.Number(1)});
    const Made half = maker.Number(Chance(random, 90) ? 0.5f : 0.75f);
    if (Chance(random, 50)) {
      maker.Node("Mul", {maker.Node("Mul", {x, half}), gate});
    } else {
      maker.Node("Mul", {maker.Node("Mul", {gate, x}), half});
    }
    return;
  }
  Made gate = kind == 1 ? maker.Node("Sigmoid", {x}) : Made();
  if (kind == 2) {
    const Made shifted = maker.Node("Add", {x, maker.Number(3)});
    const Made bounded = maker.Node("Clip", {shifted, maker.Number(0), maker.Number(6)});
    gate = maker.Node("Div", {bounded, maker.Number(Chance(random, 90) ? 6 : 5)});
  }
  maker.Node("Mul", {gate, Chance(random, 85) ? x : maker.AnyOf(0, 8)});
}

// Steps that convolutions and products take over: sums, activations, factors of channels, a
// pooling.
void AddSteps(NetworkMaker& maker, Made value) {
  Random& random = maker.random();
  for (int64_t steps = random.Integer(0, 5); steps > 0 && value.exists(); --steps) {
    const int channels = std::min(1, std::max(0, value.rank() - 1));
    const int spatial = std::max(0, value.rank() - 2);
    switch (random.Integer(0, 5)) {
      case 0:
        value = maker.Node("Add", {value, maker.Input(value.dims)});
        break;
      case 1:
        value = maker.Node("Mul", {value, maker.Floats(AlongAxis(random, value.dims, channels))});
        break;
      case 2:
        value = maker.Node("PRelu", {value, maker.Floats(AlongAxis(random, value.dims, channels))});
        break;
      case 3:
        value = maker.Node("MaxPool", {value},
                           {Ints("kernel_shape", std::vector<int64_t>(spatial, 2)),
                            Ints("strides", std::vector<int64_t>(spatial, 2)),
                            Int("ceil_mode", random.Integer(0, 1))});
        break;
      case 4:
        value = maker.Node("Add", {value, maker.Floats({value.size(-1)})});
        break;
      default:
        value = maker.Node(Pick(random, {"Relu", "Tanh", "LeakyRelu", "HardSwish"}), {value});
    }
  }
}

void AddConvolution(NetworkMaker& maker) {
  Random& random = maker.random();
  Made x = maker.AnyOf(3, 5);
  if (Chance(random, 25)) {
    std::vector<int64_t> pads(2 * x.rank(), 0);
    for (int64_t& pad : pads) pad = Chance(random, 40) ? random.Integer(0, 2) : 0;
    x = maker.Node("Pad", {x, maker.Integers(pads)});
    if (!x.exists()) return;
  }
  AddSteps(maker, Convolved(maker, x, random.Integer(1, 20), Pick<int64_t>(random, {1, 1, 2, 3})));
}

// A linear layer, on pixels between transposes, or on a flattened tensor.
void AddLinear(NetworkMaker& maker) {
  Random& random = maker.random();
  Made x = maker.AnyOf(1, 6);
  const bool turns = x.rank() >= 3 && Chance(random, 50);
  std::vector<int64_t> last(x.rank()), first(x.rank());
  std::iota(last.begin(), last.end(), 0);
  first = last;
  if (turns) {
    std::rotate(last.begin() + 1, last.begin() + 2, last.end());
    std::rotate(first.begin() + 1, first.end() - 1, first.end());
    x = Transposed(maker, x, last);
  } else if (Chance(random, 30)) {
    x = maker.Node("Flatten", {x}, {Int("axis", random.Integer(0, x.rank()))});
  }
  for (int64_t layers = random.Integer(1, 2); layers > 0; --layers) {
    const int64_t outputs = random.Integer(1, 9);
    Made product = maker.Node("MatMul", {x, maker.Floats({x.size(-1), outputs})});
    if (Chance(random, 60)) product = maker.Node("Add", {maker.Floats({outputs}), product});
    x = Chance(random, 60) ? maker.Node("Relu", {product}) : product;
    if (!x.exists()) x = product;
  }
  AddSteps(maker, turns ? Transposed(maker, x, first) : x);
}

// Channels that are joined, shuffled and split.
void AddShuffle(NetworkMaker& maker) {
  Random& random = maker.random();
  Made x = maker.AnyOf(2, 6);
  const int axis = Chance(random, 85) ? 1 : static_cast<int>(random.Integer(0, x.rank() - 1));
  if (Chance(random, 60)) x = maker.Node("Concat", {x, maker.Input(x.dims)}, {Int("axis", axis)});
  if (!x.exists()) return;
  const int64_t groups = random.Integer(1, 3);
  if (x.size(axis) % groups != 0) return;
  Dims split = x.dims;
  split[axis] = groups;
  split.insert(split.begin() + axis + 1, x.size(axis) / groups);
  std::vector<int64_t> order(split.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axis], order[axis + 1]);
  if (Chance(random, 10)) order = RandomOrder(random, static_cast<int>(order.size()));
  const Made turned = Transposed(maker, Reshaped(maker, x, split), order);
  const Made shuffled = Reshaped(maker, turned, x.dims);
  if (!shuffled.exists() || Chance(random, 30)) return;
  const int64_t half = shuffled.size(axis) / 2;
  if (half > 0)
    maker.Nodes("Split", {shuffled, maker.Integers({half, shuffled.size(axis) - half})},
                {Int("axis", axis)}, 2);
}

// Concatenations that begin alike.
void AddNestedConcats(NetworkMaker& maker) {
  Random& random = maker.random();
  const Made x = maker.AnyOf(1, 6);
  const int64_t axis = random.Integer(0, x.rank() - 1);
  std::vector<Made> parts = {x};
  for (int64_t more = random.Integer(1, 3); more > 0; --more) {
    Dims dims = x.dims;
    dims[axis] = random.Integer(1, 17);
    parts.push_back(Chance(random, 70) ? maker.Input(dims) : parts.back());
    maker.Node("Concat", parts, {Int("axis", axis)});
    if (Chance(random, 20)) maker.Node("Concat", parts, {Int("axis", axis)});
  }
}

// A gate per channel: means, two layers, a product.
void AddSqueezeAndExcite(NetworkMaker& maker) {
  Random& random = maker.random();
  const Made x = maker.AnyOf(3, 5);
  const int64_t channels = x.size(1);
  Made gate = maker.Node("GlobalAveragePool", {x});
  if (Chance(random, 50)) {
    gate = maker.Node("Flatten", {gate});
    gate = maker.Node("Gemm", {gate, maker.Floats({channels, 3})});
    gate = maker.Node("Gemm", {maker.Node("Relu", {gate}), maker.Floats({3, channels})});
    Dims dims(x.dims.size(), 1);
    dims[0] = x.dims[0];
    dims[1] = channels;
    gate = Reshaped(maker, gate, dims);
  } else if (gate.exists()) {
    gate = maker.Node("Relu", {Convolved(maker, gate, 3, 1)});
    if (gate.exists()) gate = Convolved(maker, gate, channels, 1);
  }
  maker.Node("Mul", {x, maker.Node("Sigmoid", {gate})});
}

}  // namespace

std::vector<int64_t> RandomOrder(Random& random, int rank) {
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  for (int d = rank - 1; d > 0; --d) std::swap(order[d], order[random.Integer(0, d)]);
  return order;
}

Made Reshaped(NetworkMaker& maker, const Made& src, const Dims& dims) {
  return maker.Node("Reshape", {src, maker.Integers(ListOf(dims))});
}

Made Transposed(NetworkMaker& maker, const Made& src, const std::vector<int64_t>& order) {
  return maker.Node("Transpose", {src}, {Ints("perm", order)});
}

void AddPattern(NetworkMaker& maker) {
  using Pattern = void (*)(NetworkMaker&);
  static const std::vector<Pattern> patterns = {AddAttention,
                                                AddAttention,
                                                AddAttention,
                                                AddSpelledNormalization,
                                                AddNormalization,
                                                AddNormalization,
                                                AddSpelledActivation,
                                                AddConvolution,
                                                AddConvolution,
                                                AddLinear,
                                                AddLinear,
                                                AddShuffle,
                                                AddNestedConcats,
                                                AddSqueezeAndExcite,
                                                AddQuantizedLayer,
                                                AddQuantizedLayer,
                                                AddQuantizedMoves,
                                                AddDynamicQuantization,
                                                AddImageOfBytes};
  PickOf(maker.random(), patterns)(maker);
}

}  // namespace tilewire::testing
