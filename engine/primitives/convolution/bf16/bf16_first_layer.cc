// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/cache_line.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/planes/bf16_rounding.h"
#include "engine/primitives/convolution/bf16/bf16_pairs.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {
namespace {

// A copy of plain f32 images, rounded to bf16, as a first layer by products of pairs reads it:
// [image][channel][height][row], where a row begins with the padding on its left and neighbours
// along the width are a pair (bf16_rounding.h). With a stride of 2 along the width a window is a
// window of pairs: it begins with one, and its taps, of which an odd last one is joined by a tap
// whose weight is 0, are pairs. So the convolution of the copy has a stride of 1, half as many taps
// and no padding along the width.
//
// Immutable; thread-safe.
class Bf16Rows {
 public:
  // `src`: of f32; without groups and depth, with a stride of 2 and dense taps along the width.
  //   kResourceExhausted  the copy of an image is too large, no memory for code
  static absl::StatusOr<Bf16Rows> Create(absl::string_view name, const Geometry& geometry,
                                         const ActivationStrides& src);

  // The geometry and strides of the convolution of the copy; strides count pairs.
  Geometry CopiedGeometry() const;
  ActivationStrides CopiedStrides() const;
  int64_t ImageBytes() const { return CopiedStrides().image * kPairBytes; }

  // `src` is element (0,...,0) of the first image.
  void Run(const float* src, int64_t images, std::byte* to, const threading::Team& team) const;

  int64_t code_bytes() const { return static_cast<int64_t>(rounding_->code_bytes()); }

 private:
  static constexpr int64_t kPairBytes = 4, kNumberBytes = 2;

  Bf16Rows(const Geometry& geometry, const ActivationStrides& src)
      : geometry_(geometry), src_(src) {}
  int64_t TapPairs() const;    // of a window's row
  int64_t RowNumbers() const;  // of a row of the copy
  void RunRow(const float* src, std::byte* to) const;

  const Geometry geometry_;
  const ActivationStrides src_;
  std::shared_ptr<const Bf16Rounding> rounding_;
};

absl::StatusOr<Bf16Rows> Bf16Rows::Create(absl::string_view name, const Geometry& geometry,
                                          const ActivationStrides& src) {
  Bf16Rows rows(geometry, src);
  if (!CheckedProduct({geometry.ic, geometry.in[1], rows.RowNumbers(), kNumberBytes}))
    return ResourceExhausted("the rounded copy of src is too large");
  ABSL_ASSIGN_OR_RETURN(rows.rounding_, jit::Compile<Bf16Rounding>(name));
  return rows;
}

int64_t Bf16Rows::TapPairs() const { return DivUp(geometry_.kernel[2], kPairNumbers); }

// Src is rounded in whole lines, and windows read to the end of the last one's pairs.
int64_t Bf16Rows::RowNumbers() const {
  const int64_t read = (geometry_.out[2] + TapPairs() - 1) * kPairNumbers;
  const int64_t written = geometry_.pad[2] + RoundUp(geometry_.in[2], kBf16LineNumbers);
  return RoundUp(std::max(read, written), kBf16LineNumbers);
}

Geometry Bf16Rows::CopiedGeometry() const {
  Geometry copied = geometry_;
  copied.kernel[2] = TapPairs();
  copied.in[2] = geometry_.out[2] + TapPairs() - 1;
  copied.stride[2] = 1;
  copied.pad[2] = 0;
  return copied;
}

ActivationStrides Bf16Rows::CopiedStrides() const {
  const int64_t row = RowNumbers() / kPairNumbers;
  ActivationStrides strides;
  strides.spatial = {geometry_.in[1] * row, row, 1};
  strides.channel = geometry_.in[1] * row;
  strides.block = strides.group = strides.image = geometry_.ic * strides.channel;
  return strides;
}

void Bf16Rows::Run(const float* src, int64_t images, std::byte* to,
                   const threading::Team& team) const {
  constexpr int64_t kRowsAtOnce = 16;
  const int64_t height = geometry_.in[1], pieces = DivUp(height, kRowsAtOnce);
  const ActivationStrides copied = CopiedStrides();
  team.ParallelFor(images * geometry_.ic * pieces, [&](int64_t index) {
    const int64_t first = index % pieces * kRowsAtOnce, channel = index / pieces % geometry_.ic;
    const int64_t image = index / pieces / geometry_.ic;
    const float* from = src + image * src_.image + channel * src_.channel;
    std::byte* rows = to + (image * copied.image + channel * copied.channel) * kPairBytes;
    for (int64_t row = first; row < std::min(first + kRowsAtOnce, height); ++row)
      RunRow(from + row * src_.spatial[1], rows + row * copied.spatial[1] * kPairBytes);
  });
}

// Pixels that are not neighbours are gathered first, so many at a time.
void Bf16Rows::RunRow(const float* src, std::byte* to) const {
  constexpr int64_t kAtOnce = 8 * kBf16LineNumbers;
  const int64_t left = geometry_.pad[2], width = geometry_.in[2];
  std::memset(to, 0, left * kNumberBytes);
  const int64_t end = left + RoundUp(width, kBf16LineNumbers);
  std::memset(to + end * kNumberBytes, 0, (RowNumbers() - end) * kNumberBytes);
  to += left * kNumberBytes;
  if (src_.spatial[2] == 1) return rounding_->Round(src, width, to);
  alignas(kLineBytes) float gathered[kAtOnce];
  for (int64_t first = 0; first < width; first += kAtOnce) {
    const int64_t count = std::min(kAtOnce, width - first);
    for (int64_t i = 0; i < count; ++i) gathered[i] = src[(first + i) * src_.spatial[2]];
    rounding_->Round(gathered, count, to + first * kNumberBytes);
  }
}

absl::Status RequirePairsAlongWidth(const Geometry& geometry) {
  constexpr int64_t kMostChannels = 4, kFewestTaps = 3;
  if (geometry.grouped_weights || geometry.ic > kMostChannels)
    return Unimplemented("is for 1 to 4 input channels and no groups");
  if (geometry.in[0] > 1 || geometry.kernel[0] > 1)
    return Unimplemented("is for images without depth");
  if (geometry.stride[2] != kPairNumbers || geometry.tap_step[2] != 1 ||
      geometry.kernel[2] < kFewestTaps)
    return Unimplemented("is for 3 taps and more along the width with a stride of 2");
  if (geometry.batch == 0) return Unimplemented("takes no batch of 0");
  return absl::OkStatus();
}

// "AcDb16a2d"
absl::StatusOr<MemoryDesc> WeightsPairedAlongWidth(const MemoryDesc& weights) {
  return MemoryDesc::CreatePattern(weights.dims(), DataType::kBf16,
                                   weights.rank() == 4 ? "AcDb16a2d" : "ACb16a2c");
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveBf16FirstLayer(const Request<ConvolutionDesc>& request) {
  return ResolveRoundedImage(request, RequirePairsAlongWidth, WeightsPairedAlongWidth);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBf16FirstLayer(
    const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const Geometry geometry = GeometryOf(desc);
  ABSL_ASSIGN_OR_RETURN(
      Bf16Rows rows,
      Bf16Rows::Create(request.facts.name, geometry, StridesOf(desc.src, kPairLanes, geometry.ic)));
  DirectProblem problem = PairsProblemOf(desc, request.attributes);
  problem.weights.ic_block = 0;  // there is one
  problem.tap_channels = static_cast<int>(geometry.ic);
  return CreateRounded(std::move(problem), std::move(rows), InfoOf(request));
}

}  // namespace tilewire::convolution
