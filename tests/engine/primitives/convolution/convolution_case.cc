// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/convolution/convolution_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/reorder/reorder.h"
#include "gtest/gtest.h"
#include "tests/support/padded_tail.h"
#include "tests/support/random_tensor.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

Dims OrFill(const Dims& values, size_t size, int64_t value) {
  return values.empty() ? Dims(size, value) : values;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

int64_t ElementsIn(const AlignedBuffer& buffer, DataType type) {
  return static_cast<int64_t>(buffer.size()) / SizeOf(type);
}

// Packs the values. Memory that belongs to other tensors, between the images of this one, is NaN.
AlignedBuffer PackWithTail(const MemoryDesc& desc, const std::vector<float>& values, float tail) {
  AlignedBuffer buffer = *AlignedBuffer::Allocate(desc.SizeBytes());
  const DataType type = desc.data_type();
  const auto store = [&](int64_t at, float value) { StoreElement(type, value, buffer.data(), at); };
  const SeparableOffsets offsets(desc);
  const bool dense = desc.IsDense();
  for (int64_t i = 0; i < ElementsIn(buffer, type); ++i) store(i, dense ? tail : kNan);
  if (!dense)
    ForEachIndex(desc.padded_dims(),
                 [&](const Dims& index) { store(offsets.Offset(index), tail); });
  const float* from = values.data();
  ForEachIndex(desc.dims(), [&](const Dims& index) { store(offsets.Offset(index), *from++); });
  return buffer;
}

std::vector<float> UnpackFloats(const MemoryDesc& desc, const AlignedBuffer& buffer) {
  std::vector<float> values;
  const SeparableOffsets offsets(desc);
  ForEachIndex(desc.dims(), [&](const Dims& index) {
    values.push_back(LoadElement(desc.data_type(), buffer.data(), offsets.Offset(index)));
  });
  return values;
}

void ExpectUntouchedBetweenElements(const MemoryDesc& desc, const AlignedBuffer& buffer) {
  if (desc.IsDense()) return;
  const DataType type = desc.data_type();
  std::vector<bool> others(ElementsIn(buffer, type), true);
  const SeparableOffsets offsets(desc);
  ForEachIndex(desc.padded_dims(),
               [&](const Dims& index) { others[offsets.Offset(index)] = false; });
  for (size_t i = 0; i < others.size(); ++i) {
    ASSERT_TRUE(!others[i] || std::isnan(LoadElement(type, buffer.data(), i)))
        << "wrote to element " << i << " of the buffer";
  }
}

MemoryDesc WithLargerImages(const MemoryDesc& desc) {
  Dims strides = desc.strides();
  strides[0] += 3 * strides[1];
  return *desc.WithStrides(strides);
}

}  // namespace

Dims ConvolutionCase::SrcDims() const {
  Dims dims = {batch, ic};
  dims.insert(dims.end(), in.begin(), in.end());
  return dims;
}

Dims ConvolutionCase::WeightsDims() const {
  Dims dims = groups > 1 ? Dims{groups, oc / groups, ic / groups} : Dims{oc, ic};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  return dims;
}

Dims ConvolutionCase::DstDims() const {
  Dims dims = {batch, oc};
  const Dims step = OrFill(strides, in.size(), 1), dilation = OrFill(dilations, in.size(), 0);
  const Dims before = OrFill(left, in.size(), 0), after = right.empty() ? before : right;
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t extent = (kernel[i] - 1) * (dilation[i] + 1) + 1;
    dims.push_back((in[i] + before[i] + after[i] - extent) / step[i] + 1);
  }
  return dims;
}

int64_t ConvolutionCase::Products() const { return ic / groups * *ElementCount(kernel); }

ConvolutionCase Case(const char* why, const Dims& src, int64_t oc, const Dims& kernel,
                     const CaseOptions& options) {
  return {.why = why,
          .batch = src[0],
          .groups = options.groups,
          .ic = src[1],
          .oc = oc,
          .in = Dims(src.begin() + 2, src.end()),
          .kernel = kernel,
          .strides = options.strides,
          .dilations = options.dilations,
          .left = options.left,
          .right = options.right,
          .bias = options.bias};
}

ConvolutionDesc DescOf(const ConvolutionCase& shape, absl::string_view src_pattern,
                       absl::string_view dst_pattern) {
  const auto tensor = [](const Dims& dims, absl::string_view pattern) {
    return pattern.empty() ? *MemoryDesc::CreateAny(dims, DataType::kF32)
                           : *MemoryDesc::CreatePattern(dims, DataType::kF32, pattern);
  };
  ConvolutionDesc desc;
  desc.src = tensor(shape.SrcDims(), src_pattern);
  desc.weights = tensor(shape.WeightsDims(), "");
  desc.dst = tensor(shape.DstDims(), dst_pattern);
  if (shape.bias) desc.bias = *MemoryDesc::CreateAny({shape.oc}, DataType::kF32);
  const size_t spatial = shape.in.size();
  desc.strides = OrFill(shape.strides, spatial, 1);
  desc.dilations = OrFill(shape.dilations, spatial, 0);
  desc.padding_left = OrFill(shape.left, spatial, 0);
  desc.padding_right = shape.right.empty() ? desc.padding_left : shape.right;
  return desc;
}

ConvolutionDesc InLargerTensors(const ConvolutionDesc& desc, const Primitive& dense) {
  ConvolutionDesc parts = desc;
  parts.src = WithLargerImages(dense.Desc(kArgSrc));
  parts.weights = dense.Desc(kArgWeights);
  parts.dst = WithLargerImages(dense.Desc(kArgDst));
  return parts;
}

Contents RandomContents(const ConvolutionCase& shape) {
  return {.src = RandomFloats(*ElementCount(shape.SrcDims()), 1),
          .weights = RandomFloats(*ElementCount(shape.WeightsDims()), 2),
          .bias = RandomFloats(shape.bias ? shape.oc : 0, 3),
          .dst = RandomFloats(*ElementCount(shape.DstDims()), 4)};
}

Contents IntegerContents(const ConvolutionCase& shape) {
  return {.src = RandomIntegers(*ElementCount(shape.SrcDims()), 1),
          .weights = RandomIntegers(*ElementCount(shape.WeightsDims()), 2),
          .bias = RandomIntegers(shape.bias ? shape.oc : 0, 3),
          .dst = RandomIntegers(*ElementCount(shape.DstDims()), 4)};
}

Contents Magnitudes(Contents contents) {
  for (std::vector<float>* values : {&contents.src, &contents.weights, &contents.bias}) {
    for (float& value : *values) value = std::abs(value);
  }
  return contents;
}

Attributes AttributesOf(const std::vector<PostOp>& chain, ScratchpadMode mode) {
  Attributes attributes;
  attributes.scratchpad_mode = mode;
  for (const PostOp& entry : chain) EXPECT_TRUE(attributes.post_ops.Append(entry).ok());
  return attributes;
}

AlignedBuffer PackWeights(const MemoryDesc& desc, const std::vector<float>& values) {
  if (desc.format_kind() == FormatKind::kBlocked && desc.data_type() == DataType::kF32)
    return PackWithTail(desc, values, 0);
  const absl::string_view order = absl::string_view("abcdef").substr(0, desc.rank());
  const MemoryDesc plain = *MemoryDesc::CreatePattern(desc.dims(), DataType::kF32, order);
  const AlignedBuffer from = PackWithTail(plain, values, 0);
  AlignedBuffer to = *AlignedBuffer::Allocate(desc.SizeBytes());
  ExecuteArgs args;
  args.Set(kArgSrc, from.data()).Set(kArgDst, to.data());
  const auto reorder = CreateReorder({plain, desc}, {}, {});
  EXPECT_THAT(reorder, IsOk());
  if (reorder.ok()) {
    EXPECT_THAT((*reorder)->Execute(args, threading::Team::Serial()), IsOk());
  }
  return to;
}

std::vector<float> Execute(const Primitive& primitive, const Contents& contents,
                           const threading::Team& team, bool* tail_is_zero) {
  const AlignedBuffer src = PackWithTail(primitive.Desc(kArgSrc), contents.src, 0);
  const AlignedBuffer weights = PackWeights(primitive.Desc(kArgWeights), contents.weights);
  AlignedBuffer bias;
  const AlignedBuffer dst = PackWithTail(primitive.Desc(kArgDst), contents.dst, kNan);
  const AlignedBuffer scratchpad = *AlignedBuffer::Allocate(primitive.ScratchpadDesc().SizeBytes());
  ExecuteArgs args;
  args.Set(kArgSrc, src.data()).Set(kArgWeights, weights.data()).Set(kArgDst, dst.data());
  if (!contents.bias.empty()) {
    bias = PackWithTail(primitive.Desc(kArgBias), contents.bias, 0);
    args.Set(kArgBias, bias.data());
  }
  if (scratchpad.size() > 0) args.Set(kArgScratchpad, scratchpad.data());
  if (!primitive.Execute(args, team).ok()) return {};
  ExpectUntouchedBetweenElements(primitive.Desc(kArgDst), dst);
  if (tail_is_zero != nullptr) *tail_is_zero = PaddingIsZero(primitive.Desc(kArgDst), dst.data());
  return UnpackFloats(primitive.Desc(kArgDst), dst);
}

}  // namespace tilewire::testing
