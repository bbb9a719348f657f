// SPDX-License-Identifier: Apache-2.0
//
// Gradients, from the formulas.
#include <cmath>
#include <utility>

#include "tests/support/oracle/gradients.h"
#include "tests/support/oracle/operations.h"

namespace tilewire::testing {
namespace {

int64_t Place(const Dims& dims, const Dims& index) {
  int64_t place = 0;
  for (size_t d = 0; d < dims.size(); ++d) place = place * dims[d] + index[d];
  return place;
}

Elements Zeros(const Dims& dims) { return Elements(*ElementCount(dims), 0); }

Elements SumsAlone(const std::vector<ProductSum>& sums) {
  Elements values;
  for (const ProductSum& sum : sums) values.push_back(sum.value);
  return values;
}

Products ProductsOf(const network::ComputedConvolution& c, const Dims& src, const Dims& weights,
                    const Dims& dst) {
  return ConvolutionProducts({.src = src,
                              .dst = dst,
                              .kernel = Dims(weights.begin() + 2, weights.end()),
                              .groups = c.groups,
                              .strides = c.strides,
                              .dilations = c.dilations,
                              .padding_left = c.padding_left});
}

// Calls visit(place in src, place in dst, number of the tap, taps inside) for all elements that
// windows hold.
template <typename Visit>
void ForEachWindow(const network::Pooling& pooling, const Dims& src, const Dims& dst, Visit visit) {
  ForEachIndex(dst, [&](const Dims& window) {
    std::vector<std::pair<int64_t, int64_t>> inside;  // places in src, numbers of taps
    Dims at = window;
    ForEachIndex(pooling.kernel, [&](const Dims& tap) {
      for (size_t d = 0; d < tap.size(); ++d) {
        at[d + 2] = window[d + 2] * pooling.strides[d] + tap[d] - pooling.padding_left[d];
        if (at[d + 2] < 0 || at[d + 2] >= src[d + 2]) return;
      }
      inside.emplace_back(Place(src, at), Place(pooling.kernel, tap));
    });
    for (const auto& [place, tap] : inside) visit(place, Place(dst, window), tap, inside.size());
  });
}

// For each place of a tensor of these dims, its line along `axis`, all of which have a number.
std::vector<int64_t> LinesOf(Dims dims, int axis) {
  std::vector<int64_t> lines;
  Dims without = dims;
  without[axis] = 1;
  ForEachIndex(dims, [&](const Dims& index) {
    lines.push_back(Place(without, BroadcastIndex(without, index)));
  });
  return lines;
}

}  // namespace

std::vector<Elements> ComputeAll(const network::Pooling& pooling, const Operands& operands) {
  std::vector<Elements> results = {Compute(pooling, operands)};
  if (!pooling.saves_places) return results;
  const Shaped& src = operands.srcs[0];
  Elements places = Zeros(operands.dst), best = places;
  std::vector<bool> seen(places.size(), false);
  ForEachWindow(pooling, src.dims, operands.dst,
                [&](int64_t from, int64_t to, int64_t tap, size_t) {
                  const double x = src.elements[from];
                  if (seen[to] && !(x > best[to])) return;
                  seen[to] = true;
                  best[to] = x;
                  places[to] = static_cast<double>(tap);
                });
  results.push_back(std::move(places));
  return results;
}

Elements Compute(const network::ConvolutionDataGradient& gradient, const Operands& operands) {
  const Shaped &dy = operands.srcs[0], &weights = operands.srcs[1];
  const Products products = ProductsOf(gradient.forward, operands.dst, weights.dims, dy.dims);
  return SumsAlone(SumsOf(products, {Zeros(operands.dst), weights.elements, dy.elements}).src);
}

Elements Compute(const network::ComputedDeconvolution& deconvolution, const Operands& operands) {
  Elements dst = Compute(network::ConvolutionDataGradient{deconvolution.convolution}, operands);
  if (operands.srcs.size() < 3) return dst;
  const int64_t channels = operands.dst[1];
  const int64_t plane = *ElementCount(operands.dst) / (operands.dst[0] * channels);
  for (size_t i = 0; i < dst.size(); ++i)
    dst[i] += operands.srcs[2].elements[static_cast<int64_t>(i) / plane % channels];
  return dst;
}

std::vector<Elements> ComputeAll(const network::ConvolutionWeightsGradient& gradient,
                                 const Operands& operands) {
  const Shaped &dy = operands.srcs[0], &src = operands.srcs[1];
  const Products products = ProductsOf(gradient.forward, src.dims, operands.dst, dy.dims);
  return {SumsAlone(SumsOf(products, {src.elements, Zeros(operands.dst), dy.elements}).weights),
          SumsOfChannels(dy.dims, dy.elements)};
}

Elements Compute(const network::MatmulGradient& gradient, const Operands& operands) {
  const Shaped &dy = operands.srcs[0], &other = operands.srcs[1];
  if (gradient.by_second) {
    return SumsAlone(SumsOf(MatrixProducts(other.dims, operands.dst, dy.dims),
                            {other.elements, Zeros(operands.dst), dy.elements})
                         .weights);
  }
  return SumsAlone(SumsOf(MatrixProducts(operands.dst, other.dims, dy.dims),
                          {Zeros(operands.dst), other.elements, dy.elements})
                       .src);
}

Elements Compute(const network::ActivationGradient& gradient, const Operands& operands) {
  Elements dst = operands.srcs[0].elements;
  for (size_t i = 0; i < dst.size(); ++i) {
    const double saved = operands.srcs[1].elements[i];
    dst[i] *= gradient.from_result ? functions::EltwiseDerivativeOfResult(gradient.op, saved)
                                   : functions::EltwiseDerivative(gradient.op, saved);
  }
  return dst;
}

Elements Compute(const network::PoolingGradient& gradient, const Operands& operands) {
  const network::Pooling& pooling = gradient.forward;
  const Shaped& dy = operands.srcs[0];
  const bool all_count = pooling.algorithm == network::Pooling::Algorithm::kAvgIncludePadding;
  const double size = static_cast<double>(*ElementCount(pooling.kernel));
  Elements dst = Zeros(operands.dst);
  ForEachWindow(pooling, operands.dst, dy.dims,
                [&](int64_t to, int64_t from, int64_t tap, size_t inside) {
                  if (!pooling.saves_places) {
                    dst[to] += dy.elements[from] / (all_count ? size : double(inside));
                  } else if (operands.srcs[1].elements[from] == double(tap)) {
                    dst[to] += dy.elements[from];
                  }
                });
  return dst;
}

Elements Compute(const network::SoftmaxGradient& gradient, const Operands& operands) {
  const Elements &dy = operands.srcs[0].elements, &y = operands.srcs[1].elements;
  const std::vector<int64_t> lines = LinesOf(operands.dst, gradient.axis);
  Elements sums(dy.size(), 0), dst;
  for (size_t i = 0; i < dy.size(); ++i) sums[lines[i]] += dy[i] * y[i];
  for (size_t i = 0; i < dy.size(); ++i) dst.push_back(y[i] * (dy[i] - sums[lines[i]]));
  return dst;
}

std::vector<Elements> ComputeAll(const network::BatchNormalizationGradient& gradient,
                                 const Operands& operands) {
  Elements dy = operands.srcs[0].elements;
  for (size_t i = 0; gradient.forward.relu && i < dy.size(); ++i)
    if (operands.srcs[5].elements[i] == 0) dy[i] = 0;
  const Elements &x = operands.srcs[1].elements, &scale = operands.srcs[2].elements,
                 &mean = operands.srcs[3].elements, &variance = operands.srcs[4].elements;
  std::vector<int64_t> channels;
  ForEachIndex(operands.dst, [&](const Dims& index) { channels.push_back(index[1]); });
  const double count = double(x.size()) / double(scale.size());
  const auto root = [&](int64_t c) { return std::sqrt(variance[c] + gradient.forward.epsilon); };
  const auto normal = [&](size_t i) { return (x[i] - mean[channels[i]]) / root(channels[i]); };
  Elements by_scale(scale.size(), 0), by_shift = by_scale, dst;
  for (size_t i = 0; i < x.size(); ++i) {
    by_scale[channels[i]] += dy[i] * normal(i);
    by_shift[channels[i]] += dy[i];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t c = channels[i];
    const double of_batch = (by_shift[c] + normal(i) * by_scale[c]) / count;
    dst.push_back(scale[c] / root(c) *
                  (dy[i] - (gradient.forward.uses_given_statistics ? 0 : of_batch)));
  }
  std::vector<Elements> results = {dst};
  if (gradient.by_parameters) results.insert(results.end(), {by_scale, by_shift});
  if (gradient.by_addend) results.push_back(dy);
  return results;
}

std::vector<Elements> ComputeAll(const network::LayerNormalizationGradient& gradient,
                                 const Operands& operands) {
  const Elements &dy = operands.srcs[0].elements, &x = operands.srcs[1].elements;
  const size_t columns = operands.dst.back();
  Elements by_scale(columns, 0), by_shift = by_scale, dst;
  for (size_t row = 0; row < x.size() / columns; ++row) {
    const double mean = operands.srcs[2].elements[row];
    const double root = std::sqrt(operands.srcs[3].elements[row] + gradient.epsilon);
    const auto normal = [&](size_t c) { return (x[row * columns + c] - mean) / root; };
    const auto scaled = [&](size_t c) {
      return dy[row * columns + c] * (gradient.scales ? operands.srcs[4].elements[c] : 1);
    };
    double level = 0, share = 0;
    for (size_t c = 0; c < columns; ++c) {
      by_scale[c] += dy[row * columns + c] * normal(c);
      by_shift[c] += dy[row * columns + c];
      level += scaled(c) / double(columns);
      share += scaled(c) * normal(c) / double(columns);
    }
    for (size_t c = 0; c < columns; ++c)
      dst.push_back((scaled(c) - level - normal(c) * share) / root);
  }
  if (!gradient.by_parameters) return {dst};
  return {dst, by_scale, by_shift};
}

Elements Compute(const network::LrnGradient& gradient, const Operands& operands) {
  const network::Lrn& lrn = gradient.forward;
  const Shaped &dy = operands.srcs[0], &src = operands.srcs[1];
  const double scale = lrn.alpha / static_cast<double>(lrn.size), beta = lrn.beta;
  const auto over_near = [&](const Dims& index, const auto& term) {
    double sum = 0;
    Dims near = index;
    for (near[1] = std::max<int64_t>(0, index[1] - lrn.size / 2);
         near[1] <= std::min(src.dims[1] - 1, index[1] + lrn.size / 2); ++near[1])
      sum += term(near);
    return sum;
  };
  const auto base = [&](const Dims& index) {
    return lrn.k + scale * over_near(index, [&](const Dims& near) {
                     return std::pow(src.AtBroadcast(near), 2);
                   });
  };
  return ForEach(src.dims, [&](const Dims& index) {
    const double others = over_near(index, [&](const Dims& near) {
      return dy.AtBroadcast(near) * src.AtBroadcast(near) * std::pow(base(near), -beta - 1);
    });
    return dy.AtBroadcast(index) * std::pow(base(index), -beta) -
           2 * scale * beta * src.AtBroadcast(index) * others;
  });
}

namespace {

// The derivative of the reduction of `all` by one of them.
double SlopeOfReduction(network::Reduce::Function function, const Elements& all, size_t one) {
  using Function = network::Reduce::Function;
  double product = 1, equals = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i != one) product *= all[i];
    equals += all[i] == all[one] ? 1 : 0;
  }
  const double x = all[one];
  switch (function) {
    case Function::kSum:
      return 1;
    case Function::kMean:
      return 1 / static_cast<double>(all.size());
    case Function::kMax:
      return x == *std::max_element(all.begin(), all.end()) ? 1 / equals : 0;
    case Function::kMin:
      return x == *std::min_element(all.begin(), all.end()) ? 1 / equals : 0;
    case Function::kProduct:
      return product;
    case Function::kSumOfAbs:
      return (x > 0) - (x < 0);
    case Function::kSumOfSquares:
      return 2 * x;
  }
  return 0;
}

}  // namespace

Elements Compute(const network::ReduceGradient& gradient, const Operands& operands) {
  const Shaped &dy = operands.srcs[0], &src = operands.srcs[1];
  std::vector<Elements> groups(dy.elements.size());
  std::vector<std::pair<int64_t, size_t>> of;  // per element of src: its group, its number there
  ForEachIndex(src.dims, [&](const Dims& index) {
    const int64_t group = Place(dy.dims, BroadcastIndex(dy.dims, index));
    of.emplace_back(group, groups[group].size());
    groups[group].push_back(src.elements[Place(src.dims, index)]);
  });
  Elements dst;
  for (const auto& [group, number] : of) {
    dst.push_back(dy.elements[group] * SlopeOfReduction(gradient.function, groups[group], number));
  }
  return dst;
}

Elements Compute(const network::GatherGradient& gradient, const Operands& operands) {
  const Elements &dy = operands.srcs[0].elements, &indices = operands.srcs[1].elements;
  const Dims& dims = operands.dst;
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    if (d < gradient.axis) outer *= dims[d];
    if (d > gradient.axis) inner *= dims[d];
  }
  const int64_t size = dims[gradient.axis];
  Elements dst = Zeros(dims);
  size_t from = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (double index : indices) {
      const int64_t at = static_cast<int64_t>(index) + (index <= -1 ? size : 0);
      for (int64_t i = 0; i < inner; ++i) dst[(o * size + at) * inner + i] += dy[from++];
    }
  }
  return dst;
}

}  // namespace tilewire::testing
