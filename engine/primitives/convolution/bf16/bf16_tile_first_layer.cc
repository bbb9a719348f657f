// SPDX-License-Identifier: Apache-2.0
//
// First layers by products of bf16 numbers on matrix tiles (AMX). Pixels of the rounded copy have
// four channels, and a row of a tile is eight neighbouring pixels: the taps of a row of the window,
// and some more whose weights are 0. So a step of the reduction is a row of taps, and the windows
// of neighbouring outputs overlap in memory.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/planes/bf16_rounding.h"
#include "engine/kernels/tiles/matrix_tile.h"
#include "engine/primitives/convolution/bf16/bf16_pairs.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/integer/integer_driver.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kPixelChannels = 4, kPixelBytes = 2 * kPixelChannels;
constexpr int64_t kStepPixels = kMatrixStepBytes / kPixelBytes;

constexpr int64_t kEight = 8;
using Eight = uint16_t __attribute__((vector_size(16)));
using FourPairs = uint32_t __attribute__((vector_size(16)));

// A copy of a plain f32 image, rounded to bf16, with the padding around it and zeros after each row
// as far as windows read: [height][width][4 channels]. Immutable; thread-safe.
class Bf16Pixels {
 public:
  //   kResourceExhausted  the copy is too large, no memory for code
  static absl::StatusOr<Bf16Pixels> Create(absl::string_view name, const Geometry& geometry,
                                           const ActivationStrides& src) {
    Bf16Pixels pixels(geometry, src);
    if (!CheckedProduct({pixels.Rows(), pixels.RowPixels(), kPixelBytes}))
      return ResourceExhausted("the rounded copy of src is too large");
    ABSL_ASSIGN_OR_RETURN(pixels.rounding_, jit::Compile<Bf16Rounding>(name));
    return pixels;
  }

  int64_t bytes() const { return Rows() * RowPixels() * kPixelBytes; }
  int64_t code_bytes() const { return static_cast<int64_t>(rounding_->code_bytes()); }

  // The convolution of the copy, as the driver of integers counts it: a row of taps is one tap of
  // the channels of a step.
  Geometry CopiedGeometry() const {
    Geometry copied = geometry_;
    copied.ic = kMatrixStepBytes / kQuad;
    copied.kernel[2] = 1;
    copied.in = {1, Rows(), (geometry_.out[2] - 1) * geometry_.stride[2] + 1};
    copied.pad = {0, 0, 0};
    return copied;
  }
  ByteStrides CopiedStrides() const {
    ByteStrides strides;
    strides.spatial = {bytes(), RowPixels() * kPixelBytes, kPixelBytes};
    return strides;
  }

  // `src` is element (0,...,0) of an image.
  void Run(const float* src, std::byte* to, const threading::Team& team) const {
    constexpr int64_t kRowsAtOnce = 16;
    const int64_t row_bytes = RowPixels() * kPixelBytes;
    team.ParallelFor(DivUp(Rows(), kRowsAtOnce), [&](int64_t piece) {
      const int64_t first = piece * kRowsAtOnce;
      for (int64_t row = first; row < std::min(first + kRowsAtOnce, Rows()); ++row)
        RunRow(src, row - geometry_.pad[1], to + row * row_bytes);
    });
  }

 private:
  static constexpr int64_t kAtOnce = 4 * kBf16LineNumbers;  // pixels
  using Numbers = std::array<uint16_t, kAtOnce>;

  Bf16Pixels(const Geometry& geometry, const ActivationStrides& src)
      : geometry_(geometry), src_(src) {}

  int64_t Rows() const {
    return (geometry_.out[1] - 1) * geometry_.stride[1] +
           (geometry_.kernel[1] - 1) * geometry_.tap_step[1] + 1;
  }
  // Pixels are written in whole lines of each channel.
  int64_t RowPixels() const {
    const int64_t read = (geometry_.out[2] - 1) * geometry_.stride[2] + kStepPixels;
    const int64_t written = geometry_.pad[2] + RoundUp(geometry_.in[2], kBf16LineNumbers);
    return RoundUp(std::max(read, written), kStepPixels);
  }

  void RunRow(const float* src, int64_t height, std::byte* to) const {
    if (height < 0 || height >= geometry_.in[1]) {
      std::memset(to, 0, RowPixels() * kPixelBytes);
      return;
    }
    const int64_t left = geometry_.pad[2], width = geometry_.in[2];
    const int64_t end = left + RoundUp(width, kBf16LineNumbers);
    std::memset(to, 0, left * kPixelBytes);
    std::memset(to + end * kPixelBytes, 0, (RowPixels() - end) * kPixelBytes);
    std::array<Numbers, kPixelChannels> channels{};
    for (int64_t first = 0; first < width; first += kAtOnce) {
      const int64_t count = std::min(kAtOnce, width - first);
      for (int64_t c = 0; c < geometry_.ic; ++c) {
        Round(src + c * src_.channel + height * src_.spatial[1] + first * src_.spatial[2], count,
              &channels[c]);
      }
      Interleave(channels, RoundUp(count, kBf16LineNumbers), to + (left + first) * kPixelBytes);
    }
  }

  // Numbers that are not neighbours are gathered first.
  void Round(const float* from, int64_t count, Numbers* to) const {
    std::byte* numbers = reinterpret_cast<std::byte*>(to->data());
    if (src_.spatial[2] == 1) return rounding_->Round(from, count, numbers);
    std::array<float, kAtOnce> gathered;
    for (int64_t i = 0; i < count; ++i) gathered[i] = from[i * src_.spatial[2]];
    rounding_->Round(gathered.data(), count, numbers);
  }

  // Eight pixels at a time: pairs of channels, then pairs of those.
  static void Interleave(const std::array<Numbers, kPixelChannels>& channels, int64_t count,
                         std::byte* to) {
    for (int64_t first = 0; first < count; first += kEight) {
      Eight numbers[kPixelChannels];
      for (int64_t c = 0; c < kPixelChannels; ++c)
        std::memcpy(&numbers[c], &channels[c][first], sizeof(Eight));
      const auto low = [](const Eight& a, const Eight& b) {
        return reinterpret_cast<FourPairs>(__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11));
      };
      const auto high = [](const Eight& a, const Eight& b) {
        return reinterpret_cast<FourPairs>(
            __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15));
      };
      const FourPairs pairs[][2] = {{low(numbers[0], numbers[1]), low(numbers[2], numbers[3])},
                                    {high(numbers[0], numbers[1]), high(numbers[2], numbers[3])}};
      FourPairs pixels[kPixelChannels];
      for (int half : {0, 1}) {
        const auto& [a, b] = pairs[half];
        pixels[2 * half] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        pixels[2 * half + 1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      }
      std::memcpy(to + first * kPixelBytes, pixels, sizeof(pixels));
    }
  }

  const Geometry geometry_;
  const ActivationStrides src_;
  std::shared_ptr<const Bf16Rounding> rounding_;
};

absl::Status RequireShortRows(const Geometry& geometry) {
  constexpr int64_t kFewestTaps = 3;
  if (geometry.grouped_weights || geometry.ic > kPixelChannels)
    return Unimplemented("is for 1 to 4 input channels and no groups");
  if (geometry.in[0] > 1 || geometry.kernel[0] > 1)
    return Unimplemented("is for images without depth");
  if (geometry.tap_step[2] != 1 || geometry.kernel[2] < kFewestTaps ||
      geometry.kernel[2] > kStepPixels)
    return Unimplemented("is for 3 to 8 dense taps along the width");
  if (geometry.batch == 0) return Unimplemented("takes no batch of 0");
  return absl::OkStatus();
}

// "ABcD8d2b16a2b"
absl::StatusOr<MemoryDesc> WeightsOfRows(const MemoryDesc& weights) {
  return MemoryDesc::CreatePattern(weights.dims(), DataType::kBf16,
                                   weights.rank() == 4 ? "ABcD8d2b16a2b" : "ABC8c2b16a2b");
}

IntegerProblem ProblemOf(const ConvolutionDesc& desc, const Attributes& attributes,
                         const Bf16Pixels& pixels) {
  const VectorUnit unit = VectorUnit::Of(cpu::Isa::kAmx);
  IntegerProblem problem{.geometry = pixels.CopiedGeometry(), .epilogue = {.unit = unit}};
  problem.on_matrix_tiles = problem.is_bf16 = true;
  problem.block_quads = kMatrixStepBytes / kQuad;
  problem.src = pixels.CopiedStrides();
  problem.dst = StridesOfBytes(desc.dst, unit.lanes(), problem.geometry.oc);
  problem.weights_oc_block = desc.weights.stride(0) * SizeOf(DataType::kBf16);
  problem.weights_ic_block = desc.weights.stride(1) * SizeOf(DataType::kBf16);
  problem.epilogue.bias = !desc.bias.IsZero();
  problem.epilogue.dst_type = desc.dst.data_type();
  problem.epilogue.packed_channels = desc.dst.IsPlain();
  problem.epilogue.post_ops = attributes.post_ops;
  return problem;
}

// A driver and the copy that it reads, of one image at a time.
struct CopiedDriver {
  void Run(const DrivenRun& run) const {
    const MemoryDesc& src_desc = run.primitive.Desc(kArgSrc);
    const MemoryDesc& dst_desc = run.primitive.Desc(kArgDst);
    const auto* src = run.First<const float>(kArgSrc);
    IntegerDriver::Operands operands = {.src = run.scratchpad,
                                        .weights = run.First<const std::byte>(kArgWeights),
                                        .bias = run.First<const std::byte>(kArgBias),
                                        .scales = nullptr,
                                        .compensation = nullptr,
                                        .dst = run.First<std::byte>(kArgDst)};
    for (int64_t image = 0; image < src_desc.dim(0); ++image) {
      copy.Run(src + image * src_desc.stride(0), run.scratchpad, run.team);
      driver.Run(operands, 1, run.team);
      operands.dst += dst_desc.stride(0) * SizeOf(dst_desc.data_type());
    }
  }
  int64_t code_bytes() const { return driver.code_bytes() + copy.code_bytes(); }

  IntegerDriver driver;
  Bf16Pixels copy;
};

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveBf16TileFirstLayer(const Request<ConvolutionDesc>& request) {
  return ResolveRoundedImage(request, RequireShortRows, WeightsOfRows);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBf16TileFirstLayer(
    const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const Geometry geometry = GeometryOf(desc);
  PrimitiveInfo info = InfoOf(request);
  ABSL_ASSIGN_OR_RETURN(
      Bf16Pixels pixels,
      Bf16Pixels::Create(info.name, geometry, StridesOf(desc.src, kMatrixRows, geometry.ic)));
  ABSL_ASSIGN_OR_RETURN(
      IntegerDriver driver,
      IntegerDriver::Create(info.name, ProblemOf(desc, request.attributes, pixels)));
  info.scratchpad_bytes = pixels.bytes();
  return MakeDriven(std::move(info), CopiedDriver{std::move(driver), std::move(pixels)});
}

}  // namespace tilewire::convolution
