// SPDX-License-Identifier: Apache-2.0
//
// The way through a network that a primitive computes: forward, or backward from the gradient of
// its result to those of its sources. Numbers are MKL-DNN 1.0's. Pure; thread-safe.
//
//   64   forward_training   as inference, and saves what backward reads (kArgWorkspace, statistics)
//   96   forward_inference
//   128  backward           every gradient: normalizations and prelu, whose sums are shared
//   160  backward_data      of sources
//   192  backward_weights   of weights, and of the bias with them
//
// Source: tests/engine/rows.txt A13.
#ifndef ENGINE_PRIMITIVES_PROPAGATION_H_
#define ENGINE_PRIMITIVES_PROPAGATION_H_

#include <cstdint>
#include <initializer_list>

#include "absl/strings/string_view.h"

namespace tilewire {

enum class PropKind : uint8_t {
  kForwardTraining = 64,
  kForwardInference = 96,
  kBackward = 128,
  kBackwardData = 160,
  kBackwardWeights = 192,
};
absl::string_view PropKindName(PropKind kind);  // "forward_inference"

constexpr bool IsBackward(PropKind kind) { return kind >= PropKind::kBackward; }

// Some of the kinds.
class PropKinds {
 public:
  constexpr PropKinds(std::initializer_list<PropKind> kinds) {
    for (PropKind kind : kinds) bits_ |= Bit(kind);
  }
  constexpr bool Has(PropKind kind) const { return (bits_ & Bit(kind)) != 0; }

 private:
  static constexpr uint8_t Bit(PropKind kind) {
    return static_cast<uint8_t>(1 << (static_cast<int>(kind) / 32 - 2));
  }
  uint8_t bits_ = 0;
};
inline constexpr PropKinds kForwardKinds = {PropKind::kForwardTraining,
                                            PropKind::kForwardInference};

inline constexpr PropKinds kForwardAndBackwardData = {
    PropKind::kForwardTraining, PropKind::kForwardInference, PropKind::kBackwardData};

// The propagation of a descriptor; inference for those of operations that have no other.
template <typename Desc>
constexpr PropKind PropKindOf(const Desc& desc) {
  if constexpr (requires { desc.prop_kind; }) return desc.prop_kind;
  return PropKind::kForwardInference;
}

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_PROPAGATION_H_
