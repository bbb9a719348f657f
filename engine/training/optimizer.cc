// SPDX-License-Identifier: Apache-2.0
//
// Elements are taken 16 at a time, a number that compilers know, so that they make vectors of them.
#include "engine/training/optimizer.h"

#include <emmintrin.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/training/blocks.h"

namespace tilewire::training {
namespace {

constexpr int64_t kAtOnce = 16;

// The roots of 1 or of kAtOnce numbers. The library's function may set errno, which keeps compilers
// from making vectors of it.
template <int64_t count>
void Roots(const float* squares, float* roots) {
  if constexpr (count % 4 == 0) {
    for (int64_t k = 0; k < count; k += 4)
      _mm_storeu_ps(roots + k, _mm_sqrt_ps(_mm_loadu_ps(squares + k)));
  } else {
    for (int64_t k = 0; k < count; ++k) roots[k] = std::sqrt(squares[k]);
  }
}

template <typename Bounds>
struct PlainSgd {
  Bounds bounds;
  float rate, decay;

  template <int64_t count>
  void Take(float* __restrict w, const float* __restrict g, float*, float*) const {
    for (int64_t k = 0; k < count; ++k) w[k] -= rate * (bounds(g[k]) + decay * w[k]);
  }
};

template <typename Bounds>
struct MomentumSgd {
  Bounds bounds;
  float rate, decay;
  float kept, taken;      // v = kept v + taken g
  float direct, through;  // w -= rate (direct g + through v)

  template <int64_t count>
  void Take(float* __restrict w, const float* __restrict g, float* __restrict v, float*) const {
    for (int64_t k = 0; k < count; ++k) {
      const float decayed = bounds(g[k]) + decay * w[k];
      v[k] = kept * v[k] + taken * decayed;
      w[k] -= rate * (direct * decayed + through * v[k]);
    }
  }
};

template <typename Bounds>
struct Adam {
  Bounds bounds;
  float decay, shrink;  // of Adam; what AdamW leaves of w
  float beta1, rest1, beta2, rest2;
  float rate, root, epsilon;  // rate / (1 - beta1^t), sqrt(1 - beta2^t)

  template <int64_t count>
  void Take(float* __restrict w, const float* __restrict g, float* __restrict m,
            float* __restrict v) const {
    float roots[count];
    for (int64_t k = 0; k < count; ++k) {
      w[k] *= shrink;
      const float decayed = bounds(g[k]) + decay * w[k];
      m[k] = beta1 * m[k] + rest1 * decayed;
      v[k] = beta2 * v[k] + rest2 * decayed * decayed;
    }
    Roots<count>(v, roots);
    for (int64_t k = 0; k < count; ++k) w[k] -= rate * m[k] / (roots[k] / root + epsilon);
  }
};

template <typename Bounds>
MomentumSgd<Bounds> MomentumOf(const OptimizerSpec& optimizer, int64_t step, const Bounds& bounds) {
  const auto momentum = static_cast<float>(optimizer.momentum);
  MomentumSgd<Bounds> rule{.bounds = bounds, .kept = momentum, .direct = 0, .through = 1};
  rule.taken = step == 1 ? 1 : static_cast<float>(1 - optimizer.dampening);
  if (optimizer.nesterov) rule.direct = 1, rule.through = momentum;
  return rule;
}

template <typename Bounds>
Adam<Bounds> AdamOf(const OptimizerSpec& optimizer, int64_t step, const Bounds& bounds) {
  const auto t = static_cast<double>(step);
  return {.bounds = bounds,
          .decay = 0,
          .shrink = 1,
          .beta1 = static_cast<float>(optimizer.beta1),
          .rest1 = static_cast<float>(1 - optimizer.beta1),
          .beta2 = static_cast<float>(optimizer.beta2),
          .rest2 = static_cast<float>(1 - optimizer.beta2),
          .rate = 0,
          .root = static_cast<float>(std::sqrt(1 - std::pow(optimizer.beta2, t))),
          .epsilon = static_cast<float>(optimizer.epsilon)};
}

// Runs rule_of(parameter) over its elements, for all parameters.
template <typename RuleOf>
void ForAll(absl::Span<const OptimizedParameter> parameters, const threading::Team& team,
            const RuleOf& rule_of) {
  std::vector<int64_t> sizes;
  for (const OptimizedParameter& one : parameters)
    sizes.push_back(static_cast<int64_t>(one.value.size()));
  Blocks(sizes).ForEach(team, [&](int64_t, size_t array, int64_t first, int64_t count) {
    const OptimizedParameter& one = parameters[array];
    const auto rule = rule_of(one);
    float* const w = one.value.data() + first;
    const float* const g = one.gradient.data() + first;
    const auto state = [&](int i) {
      return one.state[i].empty() ? nullptr : one.state[i].data() + first;
    };
    float *const a = state(0), *const b = state(1);
    const auto from = [](float* begin, int64_t i) { return begin == nullptr ? begin : begin + i; };
    int64_t i = 0;
    for (; i + kAtOnce <= count; i += kAtOnce)
      rule.template Take<kAtOnce>(w + i, g + i, from(a, i), from(b, i));
    for (; i < count; ++i) rule.template Take<1>(w + i, g + i, from(a, i), from(b, i));
  });
}

template <typename Bounds>
void TakeBoundedStep(const OptimizerSpec& optimizer, int64_t step,
                     absl::Span<const OptimizedParameter> parameters, const Bounds& bounds,
                     const threading::Team& team) {
  if (optimizer.kind == OptimizerSpec::Kind::kSgd && optimizer.momentum == 0) {
    ForAll(parameters, team, [&](const OptimizedParameter& one) {
      return PlainSgd<Bounds>{bounds, static_cast<float>(one.rate),
                              static_cast<float>(one.weight_decay)};
    });
  } else if (optimizer.kind == OptimizerSpec::Kind::kSgd) {
    ForAll(parameters, team, [&](const OptimizedParameter& one) {
      MomentumSgd<Bounds> rule = MomentumOf(optimizer, step, bounds);
      rule.rate = static_cast<float>(one.rate);
      rule.decay = static_cast<float>(one.weight_decay);
      return rule;
    });
  } else {
    const double unbiased = 1 - std::pow(optimizer.beta1, static_cast<double>(step));
    const bool decays_apart = optimizer.kind == OptimizerSpec::Kind::kAdamW;
    ForAll(parameters, team, [&](const OptimizedParameter& one) {
      Adam<Bounds> rule = AdamOf(optimizer, step, bounds);
      rule.rate = static_cast<float>(one.rate / unbiased);
      if (decays_apart) {
        rule.shrink = static_cast<float>(1 - one.rate * one.weight_decay);
      } else {
        rule.decay = static_cast<float>(one.weight_decay);
      }
      return rule;
    });
  }
}

}  // namespace

int StateCount(const OptimizerSpec& optimizer) {
  if (optimizer.kind != OptimizerSpec::Kind::kSgd) return 2;
  return optimizer.momentum > 0 ? 1 : 0;
}

void TakeStep(const OptimizerSpec& optimizer, int64_t step,
              absl::Span<const OptimizedParameter> parameters, const GradientBounds& bounds,
              const threading::Team& team) {
  WithBounds(bounds,
             [&](const auto& form) { TakeBoundedStep(optimizer, step, parameters, form, team); });
}

}  // namespace tilewire::training
