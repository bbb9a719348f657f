// SPDX-License-Identifier: Apache-2.0
//
// The formula of a layer of a recurrent network (engine/functions/rnn_cell.h), as plain loops over
// row-major tensors of any kind of number: of doubles, or of numbers that know how far rounding may
// have taken them (tests/engine/primitives/rnn). A kind of number has +, - and *, a constructor
// from double, and the functions
//
//   Number SumOf(const std::vector<Number>& terms);
//   Number FunctionOf(const functions::RnnActivation& activation, double clip, const Number& x);
//
// which are here for doubles.
#ifndef TESTS_SUPPORT_RNN_FORMULA_H_
#define TESTS_SUPPORT_RNN_FORMULA_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "engine/functions/rnn_cell.h"

namespace tilewire::testing {

inline double SumOf(const std::vector<double>& terms) {
  return std::accumulate(terms.begin(), terms.end(), 0.0);
}
inline double FunctionOf(const functions::RnnActivation& activation, double clip, double x) {
  if (clip > 0) x = std::clamp(x, -clip, clip);
  return functions::EltwiseScalar(activation, static_cast<float>(x));
}

struct RnnProblem {
  functions::RnnCell cell;
  functions::RnnDirection direction;
  std::vector<functions::RnnActivation> activations;
  double clip = 0;
  bool couples_gates = false;
  int64_t steps, sequences, inputs, states;
};

// Row-major; [T,N,I], [D,N,H], [D,N,H], [D,I,G,H], [D,H,G,H], [D,3,H], [D,G or G + 1,H], [N]. What
// may be left out is empty then.
template <typename Number>
struct RnnSources {
  std::vector<Number> layer, iter, iter_c, weights_layer, weights_iter, peephole, bias;
  std::vector<int64_t> lengths;
};

// [T,N,H or 2H], [D,N,H], [D,N,H].
template <typename Number>
struct RnnResults {
  std::vector<Number> layer, iter, iter_c;
};

template <typename Number>
class RnnFormula {
 public:
  using Numbers = std::vector<Number>;

  RnnFormula(const RnnProblem& problem, const RnnSources<Number>& sources)
      : p_(problem), s_(sources), gates_(functions::GatesOf(problem.cell)) {}

  RnnResults<Number> Run() {
    const int directions = functions::DirectionsOf(p_.direction);
    width_ = p_.states * functions::StatesPerResult(p_.direction);
    results_.layer.assign(p_.steps * p_.sequences * width_, Number(0));
    for (int d = 0; d < directions; ++d) {
      for (int64_t n = 0; n < p_.sequences; ++n) RunSequence(d, n);
    }
    return results_;
  }

 private:
  void RunSequence(int d, int64_t n) {
    const bool back = d == 1 || p_.direction == functions::RnnDirection::kRightToLeft;
    const bool beside = p_.direction == functions::RnnDirection::kBidirectionalConcat;
    const int64_t length = s_.lengths.empty() ? p_.steps : s_.lengths[n];
    d_ = d;
    n_ = n;
    h_ = Initial(s_.iter);
    c_ = Initial(s_.iter_c);
    for (int64_t s = 0; s < length; ++s) {
      t_ = back ? length - 1 - s : s;
      Step();
      for (int64_t j = 0; j < p_.states; ++j) {
        Number& to =
            results_.layer[(t_ * p_.sequences + n) * width_ + (beside ? d * p_.states : 0) + j];
        to = to + h_[j];
      }
    }
    results_.iter.insert(results_.iter.end(), h_.begin(), h_.end());
    results_.iter_c.insert(results_.iter_c.end(), c_.begin(), c_.end());
  }

  Numbers Initial(const Numbers& from) const {
    if (from.empty()) return Numbers(p_.states, Number(0));
    const auto begin = from.begin() + (d_ * p_.sequences + n_) * p_.states;
    return Numbers(begin, begin + p_.states);
  }

  void Step() {
    using functions::RnnCell;
    const Numbers h = h_;
    Numbers u(h), kept(h), reset(h);
    for (int64_t j = 0; j < p_.states; ++j) {
      if (p_.cell == RnnCell::kLstm) StepLstm(h, j);
      if (p_.cell == RnnCell::kVanillaRnn) h_[j] = F(0, Sum(0, j, h));
      if (gates_ != 3) continue;
      u[j] = F(0, Sum(0, j, h));
      reset[j] = F(0, Sum(1, j, h));
      kept[j] = reset[j] * h[j];
    }
    for (int64_t j = 0; gates_ == 3 && j < p_.states; ++j) {
      const Number o = p_.cell == RnnCell::kGru
                           ? F(1, Sum(2, j, kept))
                           : F(1, Sum(2, j, {}) + reset[j] * (SumOf(Terms(2, j, h)) + Bias(3, j)));
      h_[j] = u[j] * h[j] + (Number(1) - u[j]) * o;
    }
  }

  void StepLstm(const Numbers& h, int64_t j) {
    const Number i = F(0, Sum(0, j, h) + Peephole(0, j, c_[j]));
    const Number f = p_.couples_gates ? Number(1) - i : F(0, Sum(1, j, h) + Peephole(1, j, c_[j]));
    c_[j] = f * c_[j] + i * F(1, Sum(2, j, h));
    h_[j] =
        F(0, Sum(3, j, h) + Peephole(2, j, c_[j])) * FunctionOf(Activation(2), /*clip=*/0, c_[j]);
  }

  // x Wl + state Wi + b of one gate; without the state where it is empty.
  Number Sum(int gate, int64_t j, const Numbers& state) const {
    Numbers terms = Terms(gate, j, state);
    for (int64_t i = 0; i < p_.inputs; ++i) {
      terms.push_back(s_.layer[(t_ * p_.sequences + n_) * p_.inputs + i] *
                      s_.weights_layer[At(p_.inputs, i, gate) + j]);
    }
    terms.push_back(Bias(gate, j));
    return SumOf(terms);
  }

  Numbers Terms(int gate, int64_t j, const Numbers& state) const {
    Numbers terms;
    for (size_t i = 0; i < state.size(); ++i)
      terms.push_back(state[i] * s_.weights_iter[At(p_.states, static_cast<int64_t>(i), gate) + j]);
    return terms;
  }

  int64_t At(int64_t inputs, int64_t i, int gate) const {
    return ((d_ * inputs + i) * gates_ + gate) * p_.states;
  }
  Number Bias(int gate, int64_t j) const {
    if (s_.bias.empty()) return Number(0);
    return s_.bias[(d_ * functions::BiasGatesOf(p_.cell) + gate) * p_.states + j];
  }
  Number Peephole(int gate, int64_t j, const Number& c) const {
    if (s_.peephole.empty()) return Number(0);
    return s_.peephole[(d_ * 3 + gate) * p_.states + j] * c;
  }
  // The activation of a gate's sum.
  Number F(int which, const Number& x) const { return FunctionOf(Activation(which), p_.clip, x); }
  const functions::RnnActivation& Activation(int which) const {
    return p_.activations[d_ * functions::ActivationsOf(p_.cell) + which];
  }

  const RnnProblem& p_;
  const RnnSources<Number>& s_;
  const int gates_;
  int64_t width_ = 0, t_ = 0, n_ = 0;
  int d_ = 0;
  Numbers h_, c_;
  RnnResults<Number> results_;
};

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_RNN_FORMULA_H_
