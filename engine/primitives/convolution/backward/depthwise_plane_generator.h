// SPDX-License-Identifier: Apache-2.0
//
// Generates the gradients of the weights and bias of a depthwise convolution for a vector of
// channels of one image:
//
//   diff_weights[tap] += sum over the outputs that the tap reaches of src * diff_dst
//   diff_bias         += sum over all outputs of diff_dst
//
// Registers hold the sums of all taps while rows and pixels pass once, each of which knows which
// taps lie inside src. A sum is a chain that begins at zero, in row-major order of the outputs.
//
// Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_PLANE_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_PLANE_GENERATOR_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/tiles/tap_runs.h"

namespace tilewire::convolution {

// Neighbouring outputs along a dimension, and the taps that lie inside src for each of them.
struct OutputSegment {
  TapRange outputs, taps;
};

// Strides are in bytes.
struct DepthwisePlane {
  VectorUnit unit;
  std::vector<OutputSegment> rows, pixels;  // all outputs, in their order
  int taps_of_row = 1, tap_rows = 1;
  int64_t src_pixel = 0, src_row = 0, src_tap = 0, src_tap_row = 0;
  int64_t dst_pixel = 0, dst_row = 0;
  int64_t weights_tap = 0, weights_tap_row = 0;
  bool has_bias = false;
  int tail_lanes = 0;  // channels of diff_bias; 0: all lanes
};

struct DepthwisePlaneArgs {
  const float* src;  // where tap (0, 0) of output (0, 0) reads, be it outside src
  const float* diff_dst;
  float *diff_weights, *diff_bias;
  int64_t src_ahead = 0, dst_ahead = 0;  // bytes to what is fetched for later
};

class DepthwisePlaneGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const DepthwisePlaneArgs*);
  // Whether the registers hold the sums of so many taps, and of a bias.
  static bool Holds(const VectorUnit& unit, int64_t taps) { return taps + 3 <= unit.registers(); }

  DepthwisePlaneGenerator(absl::string_view name, const DepthwisePlane& plane)
      : Generator(name),
        plane_(plane),
        tail_(this, plane.unit, {.spare = rax, .opmask = k2, .vector = Taps() + 1}) {}

 private:
  void Emit() override;
  void EmitRow(const TapRange& rows);
  void EmitPixels(const TapRange& rows, const OutputSegment& segment);
  void EmitPixel(const TapRange& rows, const TapRange& taps, int pixel);
  void FetchAhead();
  void AddSums();

  static constexpr int kPixelsAtOnce = 2;

  int Taps() const { return plane_.tap_rows * plane_.taps_of_row; }
  Xbyak::Xmm Sum(int64_t row, int64_t tap) const {
    return plane_.unit.Vector(static_cast<int>(row * plane_.taps_of_row + tap));
  }
  Xbyak::Xmm BiasSum() const { return plane_.unit.Vector(Taps()); }
  Xbyak::Xmm Dst() const { return plane_.unit.Vector(Taps() + 2); }

  const DepthwisePlane plane_;
  const Xbyak::Reg64 args_ = rdi, src_row_ = rsi, dst_row_ = rdx, src_ = rcx, dst_ = r8;
  const Xbyak::Reg64 rows_ = r9, pixels_ = r10, to_ = r11, src_ahead_ = rbx, dst_ahead_ = rbp;
  jit::TailMask tail_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_PLANE_GENERATOR_H_
