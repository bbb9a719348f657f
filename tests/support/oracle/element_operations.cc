// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "engine/functions/function.h"
#include "engine/functions/integer_functions.h"
#include "engine/memory/element_types.h"
#include "engine/network/elementwise.h"
#include "tests/support/oracle/operations.h"

namespace tilewire::testing {
namespace {

using network::QuantizationParams;

// The params of element i of a tensor of these dims.
const QuantizationParams& ParamsAt(const std::vector<QuantizationParams>& params, int axis,
                                   const Dims& dims, size_t i) {
  if (params.size() == 1) return params[0];
  for (size_t d = dims.size() - 1; d > static_cast<size_t>(axis); --d) i /= dims[d];
  return params[i % dims[axis]];
}

// The elements of src that meet in one element of dst, for each of these.
std::vector<Elements> Reduced(const Shaped& src, const Dims& dst) {
  std::vector<Elements> parts(*ElementCount(dst));
  int64_t n = 0;
  ForEachIndex(src.dims, [&](const Dims& index) {
    int64_t to = 0;
    for (size_t d = 0; d < dst.size(); ++d) to = to * dst[d] + (dst[d] == 1 ? 0 : index[d]);
    parts[to].push_back(src.elements[n++]);
  });
  return parts;
}

double Reduce(network::Reduce::Function function, const Elements& elements) {
  using Function = network::Reduce::Function;
  double sum = 0, product = 1, absolute = 0, squares = 0;
  for (double x : elements) {
    sum += x;
    product *= x;
    absolute += std::abs(x);
    squares += x * x;
  }
  const double results[] = {sum,
                            sum / static_cast<double>(elements.size()),
                            *std::max_element(elements.begin(), elements.end()),
                            *std::min_element(elements.begin(), elements.end()),
                            product,
                            absolute,
                            squares};
  static_assert(static_cast<int>(Function::kSumOfSquares) == 6);
  return results[static_cast<int>(function)];
}

// The function of integers as of 64 bits, of which the type keeps the lowest ones.
double OfIntegers(const network::Elementwise& elementwise, const double* x, DataType type) {
  int64_t integers[3] = {};
  for (int s = 0; s < functions::ArityOf(elementwise.function); ++s)
    integers[s] = static_cast<int64_t>(x[s]);
  const int64_t result = functions::EvaluateIntegers(elementwise, integers);
  double kept = 0;
  VisitIntegerOrDouble(type, [&](auto element) {
    kept = static_cast<double>(static_cast<decltype(element)>(result));
  });
  return kept;
}

}  // namespace

Elements Compute(const network::Activation& activation, const Operands& operands) {
  Elements dst = operands.srcs[0].elements;
  for (double& element : dst) {
    element = operands.functions_in_double
                  ? functions::Evaluate(activation.op, &element)
                  : functions::EltwiseScalar(activation.op, static_cast<float>(element));
  }
  return dst;
}

Elements Compute(const network::Elementwise& elementwise, const Operands& operands) {
  return ForEach(operands.dst, [&](const Dims& index) -> double {
    double x[3] = {};
    for (size_t s = 0; s < operands.srcs.size(); ++s) x[s] = operands.srcs[s].AtBroadcast(index);
    const DataType numbers_type = operands.src_types.back();
    if (IsIntegerType(operands.type) && IsIntegerType(numbers_type))
      return OfIntegers(elementwise, x, numbers_type);
    if (operands.functions_in_double) return functions::Evaluate(elementwise, x);
    const float numbers[] = {static_cast<float>(x[0]), static_cast<float>(x[1]),
                             static_cast<float>(x[2])};
    return functions::Evaluate(elementwise, numbers);
  });
}

Elements Compute(const network::Sum&, const Operands& operands) {
  Elements dst(*ElementCount(operands.dst), 0);
  for (const Shaped& src : operands.srcs) {
    for (size_t i = 0; i < dst.size(); ++i) dst[i] += src.elements[i];
  }
  return dst;
}

Elements Compute(const network::Quantize& quantize, const Operands& operands) {
  Elements dst = operands.srcs[0].elements;
  for (size_t i = 0; i < dst.size(); ++i) {
    dst[i] = network::QuantizeElement(static_cast<float>(dst[i]),
                                      ParamsAt(quantize.params, quantize.axis, operands.dst, i),
                                      operands.type);
  }
  return dst;
}

Elements Compute(const network::QuantizationRange&, const Operands& operands) {
  float low = 0, high = 0;
  for (double element : operands.srcs[0].elements) {
    low = std::min(low, static_cast<float>(element));
    high = std::max(high, static_cast<float>(element));
  }
  const float step = (high - low) / 255, scale = step > 0 ? step : 1;
  return {scale, std::nearbyint(-low / scale)};
}

Elements Compute(const network::DynamicQuantize&, const Operands& operands) {
  const Elements& range = operands.srcs[1].elements;
  Elements integers;
  for (double element : operands.srcs[0].elements) {
    const float quotient = static_cast<float>(element) / static_cast<float>(range[0]);
    integers.push_back(std::clamp(std::nearbyint(quotient) + range[1], 0.0, 255.0));
  }
  return integers;
}

Elements Compute(const network::Dequantize& dequantize, const Operands& operands) {
  Elements dst = operands.srcs[0].elements;
  for (size_t i = 0; i < dst.size(); ++i) {
    dst[i] = network::DequantizeElement(
        static_cast<float>(dst[i]), ParamsAt(dequantize.params, dequantize.axis, operands.dst, i));
  }
  return dst;
}

Elements Compute(const network::ScaleBytes& bytes, const Operands& operands) {
  int64_t inner = 1;
  for (size_t d = bytes.axis + 1; d < operands.dst.size(); ++d) inner *= operands.dst[d];
  Elements dst = operands.srcs[0].elements;
  for (size_t i = 0; i < dst.size(); ++i) {
    const size_t index = i / static_cast<size_t>(inner) % bytes.scale.size();
    dst[i] = dst[i] * bytes.scale[index] + bytes.shift[index];
  }
  return dst;
}

// In f32, as the formula says: which integer a sum half-way between two rounds to depends on it.
Elements Compute(const network::IntegerSum& sum, const Operands& operands) {
  Elements dst;
  for (int64_t i = 0; i < *ElementCount(operands.dst); ++i) {
    float real = 0;
    for (size_t s = 0; s < operands.srcs.size(); ++s)
      real += network::DequantizeElement(static_cast<float>(operands.srcs[s].elements[i]),
                                         sum.src_quantization[s]);
    if (sum.relu && real < 0) real = 0;
    dst.push_back(network::QuantizeElement(real, sum.dst_quantization, operands.type));
  }
  return dst;
}

Elements Compute(const network::Softmax& softmax, const Operands& operands) {
  int64_t inner = 1;
  for (size_t d = softmax.axis + 1; d < operands.dst.size(); ++d) inner *= operands.dst[d];
  const int64_t size = operands.dst[softmax.axis];
  Elements dst = operands.srcs[0].elements;
  for (int64_t line = 0; line < static_cast<int64_t>(dst.size()) / size; ++line) {
    double* const first = &dst[line / inner * size * inner + line % inner];
    double largest = first[0], sum = 0;
    for (int64_t i = 0; i < size; ++i) largest = std::max(largest, first[i * inner]);
    for (int64_t i = 0; i < size; ++i) sum += std::exp(first[i * inner] - largest);
    for (int64_t i = 0; i < size; ++i)
      first[i * inner] = std::exp(first[i * inner] - largest) / sum;
  }
  return dst;
}

Elements Compute(const network::Lrn& lrn, const Operands& operands) {
  const Shaped& src = operands.srcs[0];
  return ForEach(src.dims, [&](const Dims& index) {
    double sum = 0;
    Dims near = index;
    for (near[1] = std::max<int64_t>(0, index[1] - lrn.size / 2);
         near[1] <= std::min(src.dims[1] - 1, index[1] + lrn.size / 2); ++near[1]) {
      sum += std::pow(src.AtBroadcast(near), 2);
    }
    return src.AtBroadcast(index) *
           std::pow(lrn.k + lrn.alpha / static_cast<double>(lrn.size) * sum,
                    -static_cast<double>(lrn.beta));
  });
}

Elements Compute(const network::Reduce& reduce, const Operands& operands) {
  Elements dst;
  for (const Elements& part : Reduced(operands.srcs[0], operands.dst))
    dst.push_back(Reduce(reduce.function, part));
  return dst;
}

Elements Compute(const network::Interpolate& interpolate, const Operands& operands) {
  return ForEach(operands.dst, [&](const Dims& index) {
    double sum = 0;
    Dims from = index;
    for (int64_t t = 0; t < interpolate.taps; ++t) {
      const int64_t entry = index[interpolate.axis] * interpolate.taps + t;
      from[interpolate.axis] = interpolate.indices[entry];
      sum += interpolate.weights[entry] * operands.srcs[0].AtBroadcast(from);
    }
    return sum;
  });
}

Elements Compute(const network::TopK& top, const Operands& operands) {
  const Shaped& src = operands.srcs[0];
  return ForEach(operands.dst, [&](const Dims& index) {
    // The element before which exactly index[axis] others rank.
    for (int64_t i = 0; i < src.dims[top.axis]; ++i) {
      Dims at = index, other = index;
      at[top.axis] = i;
      const double x = src.AtBroadcast(at);
      int64_t before = 0;
      for (other[top.axis] = 0; other[top.axis] < src.dims[top.axis]; ++other[top.axis]) {
        const double y = src.AtBroadcast(other);
        const bool earlier = top.last_of_equals ? other[top.axis] > i : other[top.axis] < i;
        before += y == x ? earlier : (y > x) == top.largest;
      }
      if (before == index[top.axis]) return top.indices ? static_cast<double>(i) : x;
    }
    return std::nan("");  // only where an element is
  });
}

}  // namespace tilewire::testing
