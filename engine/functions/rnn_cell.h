// SPDX-License-Identifier: Apache-2.0
//
// The cells of recurrent networks: their kinds, directions and functions. With H the size of the
// state, * for elements, and gates in this order:
//
//   vanilla_rnn  f                  h' = f(x Wl + h Wi + b)
//   lstm         i, f, c, o         i = f(...), f = f(...), o = f(...), each of x Wl + h Wi + b of
//                                   its own gate; c' = f * c + i * g(...), h' = o * h(c')
//   gru          u, r, o            u = f(...), r = f(...), o = g(x Wl + (r * h) Wi + b),
//                                   h' = u * h + (1 - u) * o
//   lbr_gru      u, r, o and a      o = g(x Wl + r * (h Wi + b') + b): "linear before reset"
//                fourth bias b'
//
// Pure functions; thread-safe. Source: MKL-DNN 1.0, "RNN"; ONNX's operators LSTM, GRU and RNN.
#ifndef ENGINE_FUNCTIONS_RNN_CELL_H_
#define ENGINE_FUNCTIONS_RNN_CELL_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/functions/function.h"

namespace tilewire::functions {

enum class RnnCell : uint8_t { kVanillaRnn, kLstm, kGru, kLbrGru };
enum class RnnDirection : uint8_t {
  kLeftToRight,
  kRightToLeft,
  kBidirectionalConcat,  // results side by side
  kBidirectionalSum
};

inline absl::string_view AlgorithmName(RnnCell cell) {
  constexpr absl::string_view kNames[] = {"vanilla_rnn", "lstm", "gru", "lbr_gru"};
  return kNames[static_cast<int>(cell)];
}
inline absl::string_view AlgorithmName(RnnDirection direction) {
  constexpr absl::string_view kNames[] = {"left2right", "right2left", "bidirectional_concat",
                                          "bidirectional_sum"};
  return kNames[static_cast<int>(direction)];
}

constexpr int GatesOf(RnnCell cell) {
  return cell == RnnCell::kVanillaRnn ? 1 : cell == RnnCell::kLstm ? 4 : 3;
}
constexpr int BiasGatesOf(RnnCell cell) { return cell == RnnCell::kLbrGru ? 4 : GatesOf(cell); }
// f; f and g; f, g and h.
constexpr int ActivationsOf(RnnCell cell) {
  return cell == RnnCell::kVanillaRnn ? 1 : cell == RnnCell::kLstm ? 3 : 2;
}
constexpr int DirectionsOf(RnnDirection direction) {
  return direction < RnnDirection::kBidirectionalConcat ? 1 : 2;
}
// The size of an element of the result, in states.
constexpr int StatesPerResult(RnnDirection direction) {
  return direction == RnnDirection::kBidirectionalConcat ? 2 : 1;
}

using RnnActivation = EltwiseOp;  // a function of a cell, one that has code

}  // namespace tilewire::functions

#endif  // ENGINE_FUNCTIONS_RNN_CELL_H_
