// SPDX-License-Identifier: Apache-2.0
//
// One convolution of the tests: its shape with the reason why it is there, descriptors,
// reproducible contents, and an execution whose result comes back in logical row-major order, with
// the padded tail checked on the way.
#ifndef TESTS_ENGINE_PRIMITIVES_CONVOLUTION_CONVOLUTION_CASE_H_
#define TESTS_ENGINE_PRIMITIVES_CONVOLUTION_CONVOLUTION_CASE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/aligned_buffer.h"
#include "engine/primitives/convolution/convolution.h"

namespace tilewire::testing {

struct ConvolutionCase {
  const char* why;
  int64_t batch = 1, groups = 1;
  int64_t ic = 1, oc = 1;  // of all groups
  Dims in, kernel;
  Dims strides = {}, dilations = {};  // empty: 1 and 0
  Dims left = {}, right = {};         // padding; empty: 0, and as on the left
  bool bias = true;

  Dims SrcDims() const;
  Dims WeightsDims() const;
  Dims DstDims() const;
  int64_t Products() const;  // that an output sums up
};

// Options that most cases leave as they are; see ConvolutionCase.
struct CaseOptions {
  int64_t groups = 1;
  Dims strides = {}, dilations = {}, left = {}, right = {};
  bool bias = true;
};
// src is [N, C, spatial...].
ConvolutionCase Case(const char* why, const Dims& src, int64_t oc, const Dims& kernel,
                     const CaseOptions& options = {});

// All layouts `any`, or src and dst in the layouts of patterns.
ConvolutionDesc DescOf(const ConvolutionCase& shape, absl::string_view src_pattern = "",
                       absl::string_view dst_pattern = "");

// The same convolution as `dense`, reading and writing the first channels of tensors that have more
// of them.
ConvolutionDesc InLargerTensors(const ConvolutionDesc& desc, const Primitive& dense);

// Logical row-major contents; dst is what a sum post-op finds there.
struct Contents {
  std::vector<float> src, weights, bias, dst;
};
Contents RandomContents(const ConvolutionCase& shape);
// Small integers: every sum is exact in f32, whatever its order.
Contents IntegerContents(const ConvolutionCase& shape);
Contents Magnitudes(Contents contents);  // absolute values of src, weights and bias

Attributes AttributesOf(const std::vector<PostOp>& chain,
                        ScratchpadMode mode = ScratchpadMode::kUser);

// Weights, given in row-major order, in a layout that the primitive chose.
AlignedBuffer PackWeights(const MemoryDesc& desc, const std::vector<float>& values);

// Executes in the layouts that the primitive chose. Padded tails of src and weights are zeros, that
// of dst is garbage and, where `tail_is_zero` is given, checked afterwards; what lies between the
// images of dst must stay as it is.
std::vector<float> Execute(const Primitive& primitive, const Contents& contents,
                           const threading::Team& team, bool* tail_is_zero = nullptr);

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_CONVOLUTION_CONVOLUTION_CASE_H_
