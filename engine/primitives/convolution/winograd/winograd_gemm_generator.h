// SPDX-License-Identifier: Apache-2.0
//
// Generates the matrix product of a Winograd convolution for one point and one panel of output
// channels:
//
//   m[tile][oc] = sum over ic of v[tile][ic] * u[ic][oc]
//
// Tiles come in groups of `tiles`. A group's products with the whole panel stay in registers over
// a chain of additions, which is in the order of the input channels for every tile. A sum is one
// chain, or several that are added to m in their order: a short chain rounds less.
//
//   v  [group][input block][tile][lane]
//   u  [input channel][output block][lane]; see winograd_layout.h
//   m  [group][output block][tile][lane]
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_GEMM_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_GEMM_GENERATOR_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"

namespace tilewire::convolution {

struct WinogradGemmConfig {
  jit::VectorUnit unit;
  int tiles = 1;             // of a group
  int blocks = 1;            // vectors of output channels
  int tail_lanes = 0;        // channels of the last of them; 0: all
  int64_t input_blocks = 1;  // vectors of input channels
  int64_t chain_blocks = 0;  // as many of them in a chain; 0: all
  int64_t groups = 1;  // of most calls: sets the pace at which the next weights are prefetched
};

struct WinogradGemmArgs {
  const float* v;
  const float* u;
  float* m;
  jit::LoopCount groups;
};
using WinogradGemmFunction = void (*)(const WinogradGemmArgs*);

//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateWinogradGemm(
    absl::string_view name, const WinogradGemmConfig& config);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_GEMM_GENERATOR_H_
