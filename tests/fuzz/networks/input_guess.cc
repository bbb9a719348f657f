// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fuzz/networks/node_guess.h"
#include "tests/support/random_choice.h"

namespace tilewire::testing {
namespace {

using onnx::TensorProto;
using Recipe = void (*)(NetworkMaker& maker, const Made& x, Guess* guess);

// Real numbers that are known: in the file, or computed from 8-bit integers when it is loaded.
Made Known(NetworkMaker& maker, const Dims& dims) {
  if (!Chance(maker.random(), 20)) return maker.Floats(dims);
  const Made integers = maker.IntegersOf(dims, TensorProto::INT8, -8, 8);
  const Made real = maker.Node("DequantizeLinear", {integers, maker.Number(0.125f)});
  return real.exists() ? real : maker.Floats(dims);
}

// A value of these dims: computed before, given, or known.
Made OfDims(NetworkMaker& maker, const Dims& dims, ElementType type = TensorProto::FLOAT) {
  Random& random = maker.random();
  for (int tries = 0; tries < 3; ++tries) {
    Made one = maker.Any();
    if (one.dims == dims && one.type == type) return one;
  }
  if (Chance(random, 50)) return maker.Input(dims, type);
  if (type == TensorProto::FLOAT) return Known(maker, dims);
  const bool is_byte = type == TensorProto::UINT8 || type == TensorProto::INT8;
  return maker.IntegersOf(dims, type, 0, is_byte ? 100 : 3);
}

// Dims that are broadcast with those of x.
Dims BroadcastDims(Random& random, Dims dims) {
  for (int64_t& dim : dims) {
    if (Chance(random, 30)) dim = dim == 1 ? random.Integer(1, 3) : 1;
  }
  if (Chance(random, 30)) dims.erase(dims.begin(), dims.begin() + random.Integer(0, dims.size()));
  if (Chance(random, 10)) dims.insert(dims.begin(), random.Integer(1, 2));
  return dims;
}

void Alike(NetworkMaker& maker, const Made& x, Guess* guess) {
  guess->inputs.push_back(OfDims(maker, BroadcastDims(maker.random(), x.dims), x.type));
}

void PerChannel(NetworkMaker& maker, const Made& x, Guess* guess) {
  guess->inputs.push_back(maker.Floats({x.size(1)}, 0.5f, 1.5f));
}

void OfLast(NetworkMaker& maker, const Made& x, Guess* guess) {
  guess->inputs.push_back(OfDims(maker, {x.size(-1)}));
}

void FourPerChannel(NetworkMaker& maker, const Made& x, Guess* guess) {
  for (int i = 0; i < 4; ++i) PerChannel(maker, x, guess);
}

void Weights(NetworkMaker& maker, const Made& x, Guess* guess) {
  Random& random = maker.random();
  const int64_t outputs = random.Integer(1, 9);
  const int64_t groups = Chance(random, 25) && x.size(1) > 0 ? x.size(1) : 1;
  Dims dims = {groups > 1 ? groups : outputs, x.size(1) / groups};
  for (int d = 2; d < x.rank(); ++d) dims.push_back(random.Integer(1, 3));
  const bool is_integer = x.type != TensorProto::FLOAT;
  guess->inputs.push_back(OfDims(maker, dims, is_integer ? TensorProto::INT8 : x.type));
  guess->attributes.push_back(Int("group", groups));
  if (!is_integer && Chance(random, 40)) guess->inputs.push_back(OfDims(maker, {dims[0]}));
}

void TransposedWeights(NetworkMaker& maker, const Made& x, Guess* guess) {
  Random& random = maker.random();
  Dims dims = {x.size(1), random.Integer(1, 5)};
  for (int d = 2; d < x.rank(); ++d) dims.push_back(random.Integer(1, 3));
  guess->inputs.push_back(OfDims(maker, dims));
  if (Chance(random, 40)) guess->inputs.push_back(OfDims(maker, {dims[1]}));
}

void MatrixFactor(NetworkMaker& maker, const Made& x, Guess* guess) {
  Random& random = maker.random();
  Dims dims = {x.size(-1), random.Integer(1, 9)};
  if (x.rank() > 2 && Chance(random, 60)) {
    const Dims lead(x.dims.begin(), x.dims.end() - 2);
    const Dims more = BroadcastDims(random, lead);
    dims.insert(dims.begin(), more.begin(), more.end());
  }
  if (Chance(random, 10)) dims.pop_back();
  const bool is_byte = x.type == TensorProto::UINT8 || x.type == TensorProto::INT8;
  guess->inputs.push_back(OfDims(maker, dims, is_byte ? TensorProto::INT8 : x.type));
}

void GemmFactors(NetworkMaker& maker, const Made& x, Guess* guess) {
  Random& random = maker.random();
  const int64_t outputs = random.Integer(1, 9);
  const bool turned = Chance(random, 40);
  const Dims dims = turned ? Dims{outputs, x.size(-1)} : Dims{x.size(-1), outputs};
  guess->inputs.push_back(OfDims(maker, dims));
  guess->attributes.push_back(Int("transB", turned));
  if (Chance(random, 60)) guess->inputs.push_back(OfDims(maker, {outputs}));
}

void Shape(NetworkMaker& maker, const Made& x, Guess* guess) {
  Random& random = maker.random();
  std::vector<int64_t> shape;
  int64_t left = ElementCount(x.dims).value_or(1);
  while (left > 1 && shape.size() < 6) {
    int64_t factor = random.Integer(1, std::min<int64_t>(left, 6));
    while (left % factor != 0) --factor;
    shape.push_back(factor);
    left /= factor;
  }
  if (left > 1) shape.push_back(left);
  if (!shape.empty() && Chance(random, 40)) shape[random.Integer(0, shape.size() - 1)] = -1;
  guess->inputs.push_back(maker.Integers(shape));
}

void Sizes(NetworkMaker& maker, const Made& x, Guess* guess) {
  Random& random = maker.random();
  std::vector<int64_t> sizes(x.dims.begin(), x.dims.end());
  for (int64_t& size : sizes) size = size == 1 || Chance(random, 20) ? random.Integer(1, 4) : size;
  if (Chance(random, 25)) sizes.insert(sizes.begin(), random.Integer(1, 3));
  guess->inputs.push_back(maker.Integers(sizes));
}

void Repeats(NetworkMaker& maker, const Made& x, Guess* guess) {
  std::vector<int64_t> repeats;
  for (int d = 0; d < x.rank(); ++d) repeats.push_back(maker.random().Integer(1, 3));
  guess->inputs.push_back(maker.Integers(repeats));
}

void Axes(NetworkMaker& maker, const Made& x, Guess* guess) {
  std::vector<int64_t> axes;
  for (int d = 0; d < x.rank(); ++d) {
    if (Chance(maker.random(), 40)) axes.push_back(d);
  }
  if (maker.opset() >= 18 || Chance(maker.random(), 30)) {
    guess->inputs.push_back(maker.Integers(axes));
  } else {
    guess->attributes.push_back(Ints("axes", axes));
  }
}

void OnesOfShape(NetworkMaker& maker, const Made& x, Guess* guess) {
  std::vector<int64_t> axes;
  for (int d = 0; d < x.rank(); ++d) {
    if (x.dims[d] == 1 && Chance(maker.random(), 60)) axes.push_back(d);
  }
  if (maker.opset() >= 13) {
    guess->inputs.push_back(maker.Integers(axes));
  } else {
    guess->attributes.push_back(Ints("axes", axes));
  }
}

void Pads(NetworkMaker& maker, const Made& x, Guess* guess) {
  std::vector<int64_t> pads(2 * x.rank());
  for (int64_t& pad : pads) pad = Chance(maker.random(), 50) ? maker.random().Integer(-1, 2) : 0;
  guess->inputs.push_back(maker.Integers(pads));
  if (Chance(maker.random(), 50)) guess->inputs.push_back(Known(maker, {}));
}

void Slices(NetworkMaker& maker, const Made& x, Guess* guess) {
  Random& random = maker.random();
  std::vector<int64_t> starts, ends, axes, steps;
  for (int d = 0; d < x.rank(); ++d) {
    if (!Chance(random, 50)) continue;
    axes.push_back(d);
    starts.push_back(random.Integer(-2, 2));
    ends.push_back(Chance(random, 50) ? INT64_MAX : random.Integer(-1, 6));
    steps.push_back(Pick<int64_t>(random, {1, 1, 1, 2, -1}));
  }
  for (const auto& list : {starts, ends, axes, steps})
    guess->inputs.push_back(maker.Integers(list));
}

void Indices(NetworkMaker& maker, const Made& x, Guess* guess) {
  Random& random = maker.random();
  const int axis = static_cast<int>(random.Integer(0, std::max(0, x.rank() - 1)));
  guess->attributes.push_back(Int("axis", axis));
  const Dims dims = Chance(random, 50) ? x.dims : maker.RandomDims(random.Integer(0, 2));
  const int64_t last = std::max<int64_t>(0, x.size(axis) - 1);
  guess->inputs.push_back(Chance(random, 70)
                              ? maker.IntegersOf(dims, TensorProto::INT64, -last - 1, last)
                              : maker.Input(dims, TensorProto::INT64));
}

void Updates(NetworkMaker& maker, const Made& x, Guess* guess) {
  Indices(maker, x, guess);
  guess->inputs.push_back(OfDims(maker, guess->inputs.back().dims, x.type));
}

void IndexTuples(NetworkMaker& maker, const Made& x, Guess* guess) {
  Random& random = maker.random();
  Dims dims = maker.RandomDims(random.Integer(0, 2));
  dims.push_back(random.Integer(1, std::max(1, x.rank())));
  guess->inputs.push_back(maker.IntegersOf(dims, TensorProto::INT64, 0, 0));
}

void UpdatedTuples(NetworkMaker& maker, const Made& x, Guess* guess) {
  IndexTuples(maker, x, guess);
  Dims dims = guess->inputs[0].dims;
  const int64_t length = dims.back();
  dims.pop_back();
  dims.insert(dims.end(), x.dims.begin() + std::min<int64_t>(length, x.rank()), x.dims.end());
  guess->inputs.push_back(OfDims(maker, dims, x.type));
}

void Count(NetworkMaker& maker, const Made& x, Guess* guess) {
  guess->inputs.push_back(
      maker.Integers({maker.random().Integer(1, std::max<int64_t>(1, x.size(-1)))}));
}

void Scales(NetworkMaker& maker, const Made& x, Guess* guess) {
  guess->inputs.push_back(Made());  // regions
  Made scales = maker.Floats({x.rank()}, 1, 2);
  if (Chance(maker.random(), 40)) {
    std::vector<int64_t> sizes;
    for (int64_t dim : x.dims)
      sizes.push_back(std::max<int64_t>(1, dim + maker.random().Integer(-1, 2)));
    guess->inputs.push_back(Made());
    scales = maker.Integers(sizes);
  }
  guess->inputs.push_back(scales);
}

void UpsampleScales(NetworkMaker& maker, const Made& x, Guess* guess) {
  guess->inputs.push_back(maker.Floats({x.rank()}, 1, 2));
}

void Splits(NetworkMaker& maker, const Made& x, Guess* guess) {
  const int axis = static_cast<int>(maker.random().Integer(0, std::max(0, x.rank() - 1)));
  const int64_t first = maker.random().Integer(0, x.size(axis));
  guess->inputs.push_back(maker.Integers({first, x.size(axis) - first}));
  guess->attributes.push_back(Int("axis", axis));
}

void Parts(NetworkMaker& maker, const Made& x, Guess* guess) {
  Random& random = maker.random();
  const int axis = static_cast<int>(random.Integer(0, std::max(0, x.rank() - 1)));
  guess->attributes.push_back(Int("axis", axis));
  for (int64_t more = random.Integer(0, 3); more > 0; --more) {
    Dims dims = x.dims;
    if (!dims.empty()) dims[axis] = random.Integer(1, 5);
    guess->inputs.push_back(OfDims(maker, dims, x.type));
  }
}

void Bytes(NetworkMaker& maker, const Made& x, Guess* guess) {
  const ElementType type = x.type == TensorProto::FLOAT ? TensorProto::UINT8 : x.type;
  guess->inputs.push_back(maker.Number(0.0625f));
  guess->inputs.push_back(maker.IntegersOf({}, type, 0, 100));
}

// Scale and zero point of x, then another tensor with its own, then those of the result.
void TwoOfBytes(NetworkMaker& maker, const Made& x, Guess* guess) {
  Bytes(maker, x, guess);
  Guess other;
  Alike(maker, x, &other);
  guess->inputs.push_back(other.inputs[0]);
  Bytes(maker, x, guess);
  Bytes(maker, x, guess);
}

void ProductOfBytes(NetworkMaker& maker, const Made& x, Guess* guess) {
  Bytes(maker, x, guess);
  Guess other;
  x.rank() >= 3 && Chance(maker.random(), 50) ? Weights(maker, x, &other)
                                              : MatrixFactor(maker, x, &other);
  guess->inputs.push_back(other.inputs[0]);
  Bytes(maker, other.inputs[0], guess);
  Bytes(maker, x, guess);
}

void OneOfBytes(NetworkMaker& maker, const Made& x, Guess* guess) {
  Bytes(maker, x, guess);
  Bytes(maker, x, guess);
}

void RecurrentWeights(NetworkMaker& maker, const Made& x, int64_t gates, Guess* guess) {
  const int64_t states = maker.random().Integer(1, 5);
  guess->inputs.push_back(OfDims(maker, {1, gates * states, x.size(-1)}));
  guess->inputs.push_back(OfDims(maker, {1, gates * states, states}));
  if (Chance(maker.random(), 50)) guess->inputs.push_back(maker.Floats({1, 2 * gates * states}));
  guess->attributes.push_back(Int("hidden_size", states));
}
void LstmWeights(NetworkMaker& maker, const Made& x, Guess* guess) {
  RecurrentWeights(maker, x, 4, guess);
}
void GruWeights(NetworkMaker& maker, const Made& x, Guess* guess) {
  RecurrentWeights(maker, x, 3, guess);
}
void RnnWeights(NetworkMaker& maker, const Made& x, Guess* guess) {
  RecurrentWeights(maker, x, 1, guess);
}

void KeysAndValues(NetworkMaker& maker, const Made& x, Guess* guess) {
  Dims dims = x.dims;
  if (dims.size() >= 3) dims[dims.size() - 2] = maker.random().Integer(1, 6);
  guess->inputs.push_back(OfDims(maker, dims));
  guess->inputs.push_back(OfDims(maker, dims));
}

void Equation(NetworkMaker& maker, const Made& x, Guess* guess) {
  Random& random = maker.random();
  const std::string letters = std::string("abcdefghijk").substr(0, x.rank());
  if (Chance(random, 30) || x.rank() > 8) {
    guess->attributes.push_back(
        String("equation", letters + "->" + letters.substr(0, random.Integer(0, x.rank()))));
    return;
  }
  const int64_t shared = random.Integer(0, x.rank());
  Dims dims(x.dims.begin(), x.dims.begin() + shared);
  dims.push_back(random.Integer(1, 4));
  const std::string other = letters.substr(0, shared) + "z";
  std::string result = other;
  if (shared > 1) result.erase(result.begin() + random.Integer(0, shared - 1));
  guess->attributes.push_back(String("equation", absl::StrCat(letters, ",", other, "->", result)));
  guess->inputs.push_back(OfDims(maker, dims));
}

void Grid(NetworkMaker& maker, const Made& x, Guess* guess) {
  guess->inputs.push_back(OfDims(maker, {x.size(0), 3, 2, 2}));
}

void Regions(NetworkMaker& maker, const Made&, Guess* guess) {
  guess->inputs.push_back(maker.Input({3, 4}));
  guess->inputs.push_back(maker.IntegersOf({3}, TensorProto::INT64, 0, 0));
}

void Choice(NetworkMaker& maker, const Made& x, Guess* guess) {
  const Made a = OfDims(maker, BroadcastDims(maker.random(), x.dims));
  guess->inputs.push_back(a);
  guess->inputs.push_back(OfDims(maker, BroadcastDims(maker.random(), x.dims), a.type));
}

void Bounds(NetworkMaker& maker, const Made&, Guess* guess) {
  guess->inputs.push_back(Chance(maker.random(), 70) ? maker.Number(-0.5f) : Known(maker, {}));
  guess->inputs.push_back(Chance(maker.random(), 50) ? maker.Number(0.5f) : Made());
}

void Axis(NetworkMaker& maker, const Made& x, Guess* guess) {
  const int last = std::max(0, x.rank() - 1);
  guess->inputs.push_back(maker.IntegersOf({}, TensorProto::INT64, -x.rank(), last));
}

void Depth(NetworkMaker& maker, const Made&, Guess* guess) {
  guess->inputs.push_back(maker.IntegersOf({}, TensorProto::INT64, 1, 5));
  guess->inputs.push_back(maker.Floats({2}));
}

void RowOfLast(NetworkMaker& maker, const Made& x, Guess* guess) {
  guess->inputs.push_back(OfDims(maker, x.dims));
  OfLast(maker, x, guess);
}

void TwoPerChannel(NetworkMaker& maker, const Made& x, Guess* guess) {
  PerChannel(maker, x, guess);
  PerChannel(maker, x, guess);
}

using RecipeTable = std::map<std::string, Recipe>;

const RecipeTable& RecipesOfLayers() {
  static const auto* const recipes =
      new RecipeTable{{"Conv", Weights},
                      {"ConvTranspose", TransposedWeights},
                      {"MatMul", MatrixFactor},
                      {"com.microsoft.FusedMatMul", MatrixFactor},
                      {"Gemm", GemmFactors},
                      {"BatchNormalization", FourPerChannel},
                      {"InstanceNormalization", TwoPerChannel},
                      {"GroupNormalization", TwoPerChannel},
                      {"LayerNormalization", OfLast},
                      {"RMSNormalization", OfLast},
                      {"SimplifiedLayerNormalization", OfLast},
                      {"com.microsoft.BiasGelu", OfLast},
                      {"com.microsoft.FastGelu", OfLast},
                      {"com.microsoft.SkipLayerNormalization", RowOfLast},
                      {"com.microsoft.SkipSimplifiedLayerNormalization", RowOfLast},
                      {"LSTM", LstmWeights},
                      {"GRU", GruWeights},
                      {"RNN", RnnWeights},
                      {"Attention", KeysAndValues},
                      {"com.microsoft.MultiHeadAttention", KeysAndValues},
                      {"Einsum", Equation},
                      {"GridSample", Grid},
                      {"RoiAlign", Regions}};
  return *recipes;
}

const RecipeTable& RecipesOfBytes() {
  static const auto* const recipes =
      new RecipeTable{{"ConvInteger", Weights},
                      {"MatMulInteger", MatrixFactor},
                      {"QuantizeLinear", Bytes},
                      {"DequantizeLinear", Bytes},
                      {"com.microsoft.QuantizeLinear", Bytes},
                      {"com.microsoft.DequantizeLinear", Bytes},
                      {"com.microsoft.QLinearAdd", TwoOfBytes},
                      {"com.microsoft.QLinearMul", TwoOfBytes},
                      {"QLinearConv", ProductOfBytes},
                      {"QLinearMatMul", ProductOfBytes},
                      {"com.microsoft.QLinearConv", ProductOfBytes},
                      {"com.microsoft.QLinearSigmoid", OneOfBytes},
                      {"com.microsoft.QLinearLeakyRelu", OneOfBytes},
                      {"com.microsoft.QLinearAveragePool", OneOfBytes},
                      {"com.microsoft.QLinearGlobalAveragePool", OneOfBytes},
                      {"com.microsoft.QLinearSoftmax", OneOfBytes}};
  return *recipes;
}

const RecipeTable& RecipesOfMoves() {
  static const auto* const recipes = new RecipeTable{{"Reshape", Shape},
                                                     {"Expand", Sizes},
                                                     {"CenterCropPad", Sizes},
                                                     {"Tile", Repeats},
                                                     {"Squeeze", OnesOfShape},
                                                     {"Unsqueeze", Axes},
                                                     {"Pad", Pads},
                                                     {"Slice", Slices},
                                                     {"Gather", Indices},
                                                     {"GatherElements", Indices},
                                                     {"Scatter", Updates},
                                                     {"ScatterElements", Updates},
                                                     {"GatherND", IndexTuples},
                                                     {"ScatterND", UpdatedTuples},
                                                     {"TopK", Count},
                                                     {"Resize", Scales},
                                                     {"Upsample", UpsampleScales},
                                                     {"Split", Splits},
                                                     {"Concat", Parts},
                                                     {"Where", Choice},
                                                     {"Clip", Bounds},
                                                     {"CumSum", Axis},
                                                     {"OneHot", Depth}};
  return *recipes;
}

// Null of an operator whose inputs are like the first one.
Recipe RecipeOf(const std::string& name) {
  for (const RecipeTable* table : {&RecipesOfLayers(), &RecipesOfBytes(), &RecipesOfMoves()}) {
    const auto found = table->find(name);
    if (found != table->end()) return found->second;
  }
  return nullptr;
}

}  // namespace

Guess GuessInputs(NetworkMaker& maker, const reader::OpRow& row, const Made& x) {
  Random& random = maker.random();
  Guess guess;
  const Recipe recipe = RecipeOf(std::string(row.name));
  if (recipe != nullptr) {
    recipe(maker, x, &guess);
  } else if (absl::StartsWith(row.name, "Reduce") && Chance(random, 70)) {
    Axes(maker, x, &guess);
  }
  const int given = static_cast<int>(guess.inputs.size()) + 1;
  const int most = std::min(row.max_inputs, row.min_inputs + 2);
  const int64_t wanted = Chance(random, 80)
                             ? row.min_inputs
                             : random.Integer(row.min_inputs, std::max(row.min_inputs, most));
  for (int64_t i = given; i < wanted; ++i) {
    if (row.deciding >> i & 1) {
      Sizes(maker, x, &guess);
    } else {
      Alike(maker, x, &guess);
    }
  }
  return guess;
}

}  // namespace tilewire::testing
