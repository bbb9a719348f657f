// SPDX-License-Identifier: Apache-2.0
//
// Fuses the nodes that a quantiser of weights alone writes for a convolution, or for a product of
// matrices:
//
//   range = QuantizationRange(x), quantized = DynamicQuantize(x, range)
//   sums  = Convolution(quantized - zero point)     or InnerProduct, of s8 weights
//   dst   = sums * (scale * factor)                 scale and zero point: parts of the range
//
// and of a product of two matrices that both become integers in the run.
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

bool IsOne(const std::vector<QuantizationParams>& params) {
  return params.size() == 1 && params[0].scale == 1 && params[0].zero_point == 0;
}

// Whether the result holds the numbers of the source, if these are integers from 0 to 255.
bool KeepsNumbers(Editor& editor, int op) {
  if (op == Editor::kNone || editor.removed(op)) return false;
  if (editor.network().values[editor.operation(op).dst].type == DataType::kS8) return false;
  if (editor.As<Reshape>(op) != nullptr || editor.As<Convert>(op) != nullptr) return true;
  if (const Quantize* quantize = editor.As<Quantize>(op)) return IsOne(quantize->params);
  if (const Dequantize* dequantize = editor.As<Dequantize>(op)) return IsOne(dequantize->params);
  return editor.FactorOf(op) == std::optional(1.0f);
}

ValueId OriginOf(Editor& editor, ValueId value) {
  while (KeepsNumbers(editor, editor.producer(value)))
    value = editor.operation(editor.producer(value)).srcs[0];
  return value;
}

// The QuantizationRange whose element `index` the value is; kNoValue if it is none.
ValueId RangeOfPart(Editor& editor, ValueId value, int64_t index) {
  const int op = editor.producer(value);
  const Select* select = editor.As<Select>(op);
  if (select == nullptr || select->from.size() != 1 || select->from[0].size() != 1 ||
      select->from[0][0].start != index || select->from[0][0].count != 1) {
    return kNoValue;
  }
  const ValueId range = editor.operation(op).srcs[0];
  return editor.As<QuantizationRange>(editor.producer(range)) != nullptr ? range : kNoValue;
}

// Integers less the zero point of a range.
struct Difference {
  ValueId integers = kNoValue, range = kNoValue;
};

// The difference that the value holds; nullopt if it holds none.
std::optional<Difference> DifferenceBehind(Editor& editor, ValueId value) {
  const int op = editor.producer(OriginOf(editor, value));
  const std::vector<ValueId>* srcs = editor.SourcesOf(op, Function::kSub);
  if (srcs == nullptr) return std::nullopt;
  const ValueId range = RangeOfPart(editor, OriginOf(editor, (*srcs)[1]), 1);
  if (range == kNoValue) return std::nullopt;
  return Difference{OriginOf(editor, (*srcs)[0]), range};
}

// The DynamicQuantize whose numbers, less their zero point, the value holds; kNone if none.
int QuantizeBehind(Editor& editor, ValueId value) {
  const std::optional<Difference> found = DifferenceBehind(editor, value);
  const int quantize = found ? editor.producer(found->integers) : Editor::kNone;
  if (editor.As<DynamicQuantize>(quantize) == nullptr) return Editor::kNone;
  return found->range == editor.operation(quantize).srcs[1] ? quantize : Editor::kNone;
}

// The product with a factor, or the reshape, that computes `value` is left out of it; false if
// something else computes it.
bool Unscale(Editor& editor, ValueId* value, float* factor) {
  const int op = editor.producer(*value);
  const std::optional<float> scale = editor.FactorOf(op);
  if (!scale && editor.As<Reshape>(op) == nullptr) return false;
  *factor *= scale.value_or(1);
  *value = editor.operation(op).srcs[0];
  return true;
}

// The factor by which the value is the scale of `range`; nullopt if it is something else.
std::optional<float> FactorOfScale(Editor& editor, ValueId value, ValueId range) {
  float factor = 1;
  while (RangeOfPart(editor, value, 0) != range) {
    if (!Unscale(editor, &value, &factor)) return std::nullopt;
  }
  return factor;
}

// The same for each output of `sums`, which are a dimension of what it gives; `value` may be a
// product with one number for each.
std::optional<std::vector<float>> FactorsOfScale(Editor& editor, ValueId value, ValueId range,
                                                 int sums) {
  const Convolution* convolution = editor.As<Convolution>(sums);
  const size_t back = convolution != nullptr ? convolution->strides.size() : 0;
  const int64_t outputs = convolution != nullptr ? convolution->weights.dims[0]
                                                 : editor.As<InnerProduct>(sums)->weights.dims[0];
  const std::vector<ValueId>* srcs = editor.SourcesOf(editor.producer(value), Function::kMul);
  for (int side = 0; srcs != nullptr && side < 2; ++side) {
    const Literal* literal = editor.As<Literal>(editor.producer((*srcs)[side]));
    if (literal == nullptr) continue;
    const Constant& numbers = *literal->constant;
    const size_t rank = numbers.dims.size();
    const bool fits = rank > back && numbers.dims[rank - 1 - back] == outputs &&
                      static_cast<int64_t>(numbers.floats.size()) == outputs;
    const std::optional<float> factor = FactorOfScale(editor, (*srcs)[1 - side], range);
    if (!fits || !factor) return std::nullopt;
    std::vector<float> factors(numbers.floats.begin(), numbers.floats.end());
    for (float& one : factors) one *= *factor;
    return factors;
  }
  const std::optional<float> factor = FactorOfScale(editor, value, range);
  if (!factor) return std::nullopt;
  return std::vector<float>(outputs, *factor);
}

// Whether the operation is a convolution of integers, or a product with s8 weights, and no more.
// Convolutions of groups have weights without a zero point.
bool IsSums(Editor& editor, int op) {
  if (const Convolution* convolution = editor.As<Convolution>(op)) {
    return convolution->sums_integers && convolution->fused.empty() && convolution->bias.empty() &&
           (convolution->groups == 1 || convolution->weights.zero_point == 0) &&
           SumFits32Bits(convolution->weights);
  }
  const InnerProduct* product = editor.As<InnerProduct>(op);
  return product != nullptr && product->fused.empty() && product->bias.empty() &&
         !product->src_quantization && SumFits32Bits(product->weights);
}

// The operation whose sums `value` holds, up to conversions, and reshapes of rows, for this use
// alone; kNone if there is none.
int SumsBehind(Editor& editor, ValueId value) {
  const int64_t outputs = editor.dims(value).empty() ? 0 : editor.dims(value).back();
  bool reshaped = false;
  while (editor.use_count(value) == 1) {
    const int op = editor.producer(value);
    if (IsSums(editor, op)) {
      const bool rows = editor.As<InnerProduct>(op) != nullptr;
      return !reshaped || (rows && editor.dims(value).back() == outputs) ? op : Editor::kNone;
    }
    reshaped = reshaped || editor.As<Reshape>(op) != nullptr;
    if (editor.As<Convert>(op) == nullptr && editor.As<Reshape>(op) == nullptr)
      return Editor::kNone;
    value = editor.operation(op).srcs[0];
  }
  return Editor::kNone;
}

// The difference of u8 that the value holds; nullopt if it is none of the value's dims.
std::optional<Difference> DifferenceOfBytes(Editor& editor, ValueId value) {
  const std::optional<Difference> found = DifferenceBehind(editor, value);
  const bool fits = found && editor.network().values[found->integers].type == DataType::kU8 &&
                    editor.dims(found->integers) == editor.dims(value);
  return fits ? found : std::nullopt;
}

// The QuantizationRange whose scale the value is, in any shape; kNoValue if it is none.
ValueId RangeOfScale(Editor& editor, ValueId value) {
  while (editor.As<Reshape>(editor.producer(value)) != nullptr)
    value = editor.operation(editor.producer(value)).srcs[0];
  return RangeOfPart(editor, value, 0);
}

// The factor by which the value is the product of the scales of two ranges; nullopt if it is
// something else.
std::optional<float> FactorOfScales(Editor& editor, ValueId value, ValueId a, ValueId b) {
  float factor = 1;
  while (Unscale(editor, &value, &factor)) {
  }
  const std::vector<ValueId>* srcs = editor.SourcesOf(editor.producer(value), Function::kMul);
  if (srcs == nullptr) return std::nullopt;
  const ValueId left = RangeOfScale(editor, (*srcs)[0]), right = RangeOfScale(editor, (*srcs)[1]);
  const bool fits = (left == a && right == b) || (left == b && right == a);
  return fits ? std::optional(factor) : std::nullopt;
}

// Whether the operation multiplies by two scales, and has become the product of matrices that is
// its source `side`.
bool TryMatmul(Editor& editor, int op, int side) {
  if (editor.SourcesOf(op, Function::kMul) == nullptr) return false;
  const std::vector<ValueId> srcs = editor.operation(op).srcs;
  const ValueId dst = editor.operation(op).dst;
  ValueId sums = srcs[side];
  while (editor.As<Convert>(editor.producer(sums)) != nullptr && editor.use_count(sums) == 1)
    sums = editor.operation(editor.producer(sums)).srcs[0];
  const int product = editor.producer(sums);
  if (editor.As<Matmul>(product) == nullptr || editor.use_count(sums) != 1 ||
      editor.dims(sums) != editor.dims(dst)) {
    return false;
  }
  const std::vector<ValueId> factors = editor.operation(product).srcs;
  if (editor.dims(factors[0]).back() > kMostProductsOfBytes) return false;
  const auto left = DifferenceOfBytes(editor, factors[0]);
  const auto right = DifferenceOfBytes(editor, factors[1]);
  if (!left || !right) return false;
  const auto scale = FactorOfScales(editor, srcs[1 - side], left->range, right->range);
  if (!scale || !IsOrdinary(std::abs(*scale))) return false;
  const std::vector<ValueId> all = {left->integers, left->range, right->integers, right->range};
  Operation dynamic = {editor.operation(product).name, DynamicMatmul{*scale}, all, dst};
  editor.SetSources(op, all);
  editor.operation(op) = std::move(dynamic);
  return true;
}

// The same operation on the quantized numbers, times the scale and the factor of each output.
OperationParams Dynamic(Editor& editor, int sums, const std::vector<float>& factors) {
  const auto scale = [&](Weights* weights) {
    weights->scale.resize(factors.size(), 1);
    for (size_t o = 0; o < factors.size(); ++o) weights->scale[o] *= factors[o];
  };
  if (const InnerProduct* product = editor.As<InnerProduct>(sums)) {
    DynamicInnerProduct dynamic{product->weights, {}, {}};
    scale(&dynamic.weights);
    return dynamic;
  }
  const Convolution& c = *editor.As<Convolution>(sums);
  DynamicConvolution dynamic{c.weights,       {}, c.groups, c.strides, c.dilations, c.padding_left,
                             c.padding_right, {}};
  scale(&dynamic.weights);
  return dynamic;
}

// Whether the operation multiplies, and has become one whose sums are its source `side`.
bool TryProduct(Editor& editor, int op, int side) {
  if (editor.SourcesOf(op, Function::kMul) == nullptr) return false;
  const std::vector<ValueId> srcs = editor.operation(op).srcs;
  const ValueId dst = editor.operation(op).dst;
  const int sums = SumsBehind(editor, srcs[side]);
  if (sums == Editor::kNone || editor.dims(srcs[side]) != editor.dims(dst)) return false;
  const int quantize = QuantizeBehind(editor, editor.operation(sums).srcs[0]);
  if (quantize == Editor::kNone) return false;
  const std::vector<ValueId> quantized = editor.operation(quantize).srcs;
  const bool rows = editor.As<InnerProduct>(sums) != nullptr;
  const Dims &from = editor.dims(quantized[0]), &read = editor.dims(editor.operation(sums).srcs[0]);
  if (rows ? from.empty() || from.back() != read.back() : from != read) return false;
  const auto factors = FactorsOfScale(editor, srcs[1 - side], quantized[1], sums);
  if (!factors || !absl::c_all_of(*factors, [](float f) { return IsOrdinary(std::abs(f)); }))
    return false;
  Operation dynamic = {editor.operation(sums).name, Dynamic(editor, sums, *factors), quantized,
                       dst};
  editor.SetSources(op, quantized);
  editor.operation(op) = std::move(dynamic);
  return true;
}

}  // namespace

void FuseDynamicQuantization(Network* network) {
  ForEachOperation(network, [](Editor& editor, int op) {
    for (int side : {0, 1})
      if (TryProduct(editor, op, side) || TryMatmul(editor, op, side)) break;
  });
}

}  // namespace tilewire::network
