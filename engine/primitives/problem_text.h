// SPDX-License-Identifier: Apache-2.0
//
// What a descriptor says beyond its tensors, in words, for verbose lines and errors. The fields
// that descriptors share by name are found here, so that a new primitive needs nothing of its own.
#ifndef ENGINE_PRIMITIVES_PROBLEM_TEXT_H_
#define ENGINE_PRIMITIVES_PROBLEM_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

namespace problem_text {

template <typename T>
std::string Word(const T& value) {
  if constexpr (requires { AlgorithmName(value); }) {
    return std::string(AlgorithmName(value));
  } else if constexpr (requires { value.algorithm; }) {  // an EltwiseOp
    return absl::StrCat(jit::EltwiseAlgorithmName(value.algorithm), ":", value.alpha, ":",
                        value.beta);
  } else if constexpr (requires { value.begin(); }) {
    return absl::StrJoin(value, "x");
  } else {
    return absl::StrCat(value);
  }
}

template <typename T>
void Append(absl::string_view name, const T& value, std::string* text) {
  absl::StrAppend(text, text->empty() ? "" : " ", name, ":", Word(value));
}

}  // namespace problem_text

// "algorithm:max kernel:3x3 strides:2x2 padding_left:1x1 padding_right:1x1"
template <typename Desc>
std::string ProblemText(const Desc& desc) {
  std::string text;
  using problem_text::Append;
  if constexpr (requires { desc.algorithm; }) Append("algorithm", desc.algorithm, &text);
  if constexpr (requires { desc.op; }) Append("algorithm", desc.op, &text);
  if constexpr (requires { desc.axis; }) Append("axis", desc.axis, &text);
  if constexpr (requires { desc.group_size; }) Append("group_size", desc.group_size, &text);
  if constexpr (requires { desc.kernel; }) Append("kernel", desc.kernel, &text);
  if constexpr (requires { desc.strides; }) Append("strides", desc.strides, &text);
  if constexpr (requires { desc.dilations; }) Append("dilations", desc.dilations, &text);
  if constexpr (requires { desc.padding_left; }) Append("padding_left", desc.padding_left, &text);
  if constexpr (requires { desc.padding_right; })
    Append("padding_right", desc.padding_right, &text);
  if constexpr (requires { desc.local_size; }) Append("local_size", desc.local_size, &text);
  if constexpr (requires { desc.alpha; }) Append("alpha", desc.alpha, &text);
  if constexpr (requires { desc.beta; }) Append("beta", desc.beta, &text);
  if constexpr (requires { desc.k; }) Append("k", desc.k, &text);
  if constexpr (requires { desc.p; }) Append("p", desc.p, &text);
  if constexpr (requires { desc.eps; }) Append("eps", desc.eps, &text);
  if constexpr (requires { desc.epsilon; }) Append("epsilon", desc.epsilon, &text);
  if constexpr (requires { desc.use_global_stats; })
    Append("use_global_stats", desc.use_global_stats, &text);
  if constexpr (requires { desc.use_scale_shift; })
    Append("use_scale_shift", desc.use_scale_shift, &text);
  if constexpr (requires { desc.fuse_relu; }) Append("fuse_relu", desc.fuse_relu, &text);
  if constexpr (requires { desc.fill; }) Append("fill", desc.fill, &text);
  if constexpr (requires { desc.scales; }) Append("scales", desc.scales, &text);
  return text;
}

// The propagation of a descriptor that has one; "" for the others.
template <typename Desc>
absl::string_view PropText(const Desc& desc) {
  if constexpr (requires { desc.prop_kind; }) return PropKindName(desc.prop_kind);
  return "";
}

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_PROBLEM_TEXT_H_
