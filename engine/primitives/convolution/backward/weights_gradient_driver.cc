// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/weights_gradient_driver.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/threading/ranges.h"
#include "engine/threading/stop.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kBandBytes = 24 * 1024;               // a part of the first cache
constexpr int64_t kLargeBytes = 512 * 1024;             // gradients that have owners
constexpr int64_t kMostImageBytes = int64_t{16} << 20;  // of the gradients of images at once
constexpr int64_t kMostOcBlocks = 12, kMostIcBlocks = 8;
constexpr int64_t kFewestOwners = 32, kFewestParts = 8;
constexpr int64_t kFloatsOfLine = 16, kFloatsAtOnce = 4096;
constexpr float kOne = 1;  // the source whose products with diff_dst are the gradient of the bias

// The outputs whose tap lies inside src, along one dimension.
TapRange OutputsOf(const Geometry& geometry, int d, int64_t tap) {
  const int64_t stride = geometry.stride[d];
  const int64_t first = tap * geometry.tap_step[d] - geometry.pad[d];  // what output 0 reads
  const int64_t begin = first >= 0 ? 0 : std::min(geometry.out[d], DivUp(-first, stride));
  const int64_t room = geometry.in[d] - first;
  const int64_t end = room <= 0 ? 0 : std::min(geometry.out[d], DivUp(room, stride));
  return {begin, std::max(begin, end)};
}

TapRange Common(const TapRange& a, const TapRange& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

// Every displacement and increment of the generated code lies within one of these spans.
absl::Status RequireNearPixels(const WeightsGradientProblem& problem) {
  constexpr int64_t kLargestSpan = std::numeric_limits<int32_t>::max() / kFloatBytes / 2;
  const Geometry& geometry = problem.geometry;
  const int64_t lanes = problem.unit.lanes();
  for (const std::optional<int64_t>& span :
       {CheckedMul(problem.src.channel, lanes),
        CheckedMul(geometry.stride[2], problem.src.spatial[2]),
        CheckedMul(geometry.stride[1], problem.src.spatial[1]),
        CheckedMul(problem.dst.block, WeightsGradientGenerator::kMostBlocks),
        CheckedMul(problem.dst.spatial[2], 1), CheckedMul(problem.dst.spatial[1], 1),
        CheckedMul(problem.weights.oc_block, WeightsGradientGenerator::kMostBlocks)}) {
    if (!span || *span > kLargestSpan) return Unimplemented("strides exceed 32-bit displacements");
  }
  return absl::OkStatus();
}

}  // namespace

WeightsGradientDriver::WeightsGradientDriver(const WeightsGradientProblem& problem)
    : problem_(problem) {
  const Geometry& geometry = problem_.geometry;
  for (int d = 0; d < 3; ++d) {
    for (int64_t tap = 0; tap < geometry.kernel[d]; ++tap)
      outputs_[d].push_back(OutputsOf(geometry, d, tap));
  }
  ChooseBands();
  by_image_ = problem_.weights.floats * kFloatBytes <= kLargeBytes;
  by_image_ ? ChooseImages() : ChooseOwners();
}

absl::StatusOr<WeightsGradientDriver> WeightsGradientDriver::Create(
    absl::string_view name, const WeightsGradientProblem& problem) {
  ABSL_RETURN_IF_ERROR(RequireNearPixels(problem));
  WeightsGradientDriver driver(problem);
  ABSL_RETURN_IF_ERROR(driver.Compile(name));
  return driver;
}

void WeightsGradientDriver::ChooseBands() {
  const Geometry& geometry = problem_.geometry;
  const int64_t src_pixels = std::min(geometry.stride[1], geometry.kernel[1]) * geometry.stride[2];
  const int64_t pixel =
      problem_.unit.bytes() * (WeightsGradientGenerator::kMostBlocks + src_pixels);
  const int64_t pixels = std::max<int64_t>(1, kBandBytes / pixel);
  band_pixels_ = DivUp(geometry.out[2], DivUp(geometry.out[2], pixels));
  band_rows_ = std::clamp<int64_t>(pixels / geometry.out[2], 1, geometry.out[1]);
}

// The largest parts that leave owners enough: what an owner reads is read again by others.
void WeightsGradientDriver::ChooseOwners() {
  oc_at_once_ = kMostOcBlocks;
  ic_at_once_ = kMostIcBlocks;
  while (oc_at_once_ > WeightsGradientGenerator::kMostBlocks && Parts() < kFewestOwners)
    oc_at_once_ -= WeightsGradientGenerator::kMostBlocks;
  while (ic_at_once_ > 1 && Parts() < kFewestOwners) ic_at_once_ /= 2;
}

void WeightsGradientDriver::ChooseImages() {
  const int64_t outputs = problem_.geometry.groups * OcBlocks() * problem_.unit.lanes();
  const int64_t batch = problem_.geometry.batch;
  bias_floats_ = problem_.has_bias ? outputs : 0;
  image_floats_ = RoundUp(problem_.weights.floats + bias_floats_, kFloatsOfLine);
  images_at_once_ = std::clamp<int64_t>(kMostImageBytes / (image_floats_ * kFloatBytes), 1,
                                        std::max<int64_t>(1, batch));
  ic_at_once_ = IcBlocks();
  oc_at_once_ = kMostOcBlocks;
  while (oc_at_once_ > WeightsGradientGenerator::kMostBlocks &&
         images_at_once_ * Parts() < kFewestParts)
    oc_at_once_ -= WeightsGradientGenerator::kMostBlocks;
}

int64_t WeightsGradientDriver::OcBlocks() const {
  return DivUp(problem_.geometry.oc, problem_.unit.lanes());
}

int64_t WeightsGradientDriver::IcBlocks() const {
  return DivUp(problem_.geometry.ic, problem_.unit.lanes());
}

int64_t WeightsGradientDriver::ChannelsOf(int64_t ic_block) const {
  const int64_t lanes = problem_.unit.lanes();
  return std::min(lanes, problem_.geometry.ic - ic_block * lanes);
}

// How many blocks the tile that begins with `block` has: two and two rather than three and one.
int WeightsGradientDriver::BlocksAt(const Range& oc_blocks, int64_t block) const {
  const int64_t left = oc_blocks.begin + oc_blocks.size - block;
  if (left == 4) return 2;
  return static_cast<int>(std::min<int64_t>(left, WeightsGradientGenerator::kMostBlocks));
}

bool WeightsGradientDriver::HasTail(int64_t block, int blocks) const {
  return block + blocks == OcBlocks() && problem_.geometry.oc % problem_.unit.lanes() != 0;
}

int64_t WeightsGradientDriver::Parts() const {
  return problem_.geometry.groups * DivUp(OcBlocks(), oc_at_once_) * DivUp(IcBlocks(), ic_at_once_);
}

WeightsGradientDriver::Part WeightsGradientDriver::PartAt(int64_t index,
                                                          const Operands& operands) const {
  const int64_t ic_parts = DivUp(IcBlocks(), ic_at_once_);
  const int64_t oc_parts = DivUp(OcBlocks(), oc_at_once_);
  const int64_t ic = index % ic_parts * ic_at_once_;
  const int64_t oc = index / ic_parts % oc_parts * oc_at_once_;
  Part part{.operands = operands};
  part.oc_blocks = {oc, std::min(oc_at_once_, OcBlocks() - oc)};
  part.ic_blocks = {ic, std::min(ic_at_once_, IcBlocks() - ic)};
  part.group = index / ic_parts / oc_parts;
  return part;
}

absl::Status WeightsGradientDriver::Compile(absl::string_view name) {
  const int64_t parts = DivUp(OcBlocks(), oc_at_once_) * DivUp(IcBlocks(), ic_at_once_);
  for (int64_t p = 0; p < parts; ++p) {
    const Range oc_blocks = PartAt(p, {}).oc_blocks;
    for (int64_t block = oc_blocks.begin; block < oc_blocks.begin + oc_blocks.size;) {
      const int blocks = BlocksAt(oc_blocks, block);
      const bool tail = HasTail(block, blocks);
      const int most = WeightsGradientGenerator::MostChannels(problem_.unit, blocks);
      for (int64_t channels : {ChannelsOf(0), ChannelsOf(IcBlocks() - 1)}) {
        if (channels >= most) ABSL_RETURN_IF_ERROR(CompileTile(name, blocks, most, tail));
        const int rest = static_cast<int>(channels % most);
        if (rest != 0) ABSL_RETURN_IF_ERROR(CompileTile(name, blocks, rest, tail));
      }
      if (problem_.has_bias) ABSL_RETURN_IF_ERROR(CompileBiasTile(name, blocks, tail));
      block += blocks;
    }
  }
  return absl::OkStatus();
}

absl::Status WeightsGradientDriver::CompileTile(absl::string_view name, int blocks, int channels,
                                                bool tail) {
  Tile& tile = tiles_[blocks - 1][channels - 1][tail];
  if (tile != nullptr) return absl::OkStatus();
  const WeightsGradientProblem& p = problem_;
  WeightsGradientTile config{.unit = p.unit};
  config.blocks = blocks;
  config.channels = channels;
  config.tail_lanes = tail ? static_cast<int>(p.geometry.oc % p.unit.lanes()) : 0;
  config.src_channel = p.src.channel * kFloatBytes;
  config.src_pixel = p.geometry.stride[2] * p.src.spatial[2] * kFloatBytes;
  config.src_row = p.geometry.stride[1] * p.src.spatial[1] * kFloatBytes;
  config.dst_block = p.dst.block * kFloatBytes;
  config.dst_pixel = p.dst.spatial[2] * kFloatBytes;
  config.dst_row = p.dst.spatial[1] * kFloatBytes;
  config.weights_block = p.weights.oc_block * kFloatBytes;
  config.weights_channel = p.weights.channel * kFloatBytes;
  ABSL_ASSIGN_OR_RETURN(tile, jit::Compile<WeightsGradientGenerator>(name, config));
  return absl::OkStatus();
}

absl::Status WeightsGradientDriver::CompileBiasTile(absl::string_view name, int blocks, bool tail) {
  Tile& tile = bias_tiles_[blocks - 1][tail];
  if (tile != nullptr) return absl::OkStatus();
  const WeightsGradientProblem& p = problem_;
  WeightsGradientTile config{.unit = p.unit};
  config.blocks = blocks;
  config.tail_lanes = tail ? static_cast<int>(p.geometry.oc % p.unit.lanes()) : 0;
  config.dst_block = p.dst.block * kFloatBytes;
  config.dst_pixel = p.dst.spatial[2] * kFloatBytes;
  config.dst_row = p.dst.spatial[1] * kFloatBytes;
  config.weights_block = p.unit.bytes();
  ABSL_ASSIGN_OR_RETURN(tile, jit::Compile<WeightsGradientGenerator>(name, config));
  return absl::OkStatus();
}

int64_t WeightsGradientDriver::scratchpad_bytes() const {
  return by_image_ ? images_at_once_ * image_floats_ * kFloatBytes : 0;
}

int64_t WeightsGradientDriver::code_bytes() const {
  int64_t bytes = 0;
  const auto count = [&bytes](const Tile& tile) {
    if (tile != nullptr) bytes += static_cast<int64_t>(tile->code_bytes());
  };
  for (const auto& of_blocks : tiles_) {
    for (const auto& of_channels : of_blocks) std::ranges::for_each(of_channels, count);
  }
  for (const auto& of_blocks : bias_tiles_) std::ranges::for_each(of_blocks, count);
  return bytes;
}

void WeightsGradientDriver::Run(const Operands& operands, std::byte* scratchpad,
                                const threading::Team& team) const {
  by_image_ ? RunImages(operands, reinterpret_cast<float*>(scratchpad), team)
            : RunOwners(operands, team);
}

void WeightsGradientDriver::RunOwners(const Operands& operands, const threading::Team& team) const {
  team.ParallelFor(Parts(), [&](int64_t index) {
    Part part = PartAt(index, operands);
    part.images = {0, problem_.geometry.batch};
    part.begins_at_zero = !problem_.adds;
    RunPart(part);
  });
}

void WeightsGradientDriver::RunImages(const Operands& operands, float* sums,
                                      const threading::Team& team) const {
  const int64_t batch = problem_.geometry.batch, parts = Parts();
  int64_t first = 0;
  do {
    const Range images = {first, std::min(images_at_once_, batch - first)};
    team.ParallelFor(images.size * parts, [&](int64_t index) {
      Operands own = operands;
      own.diff_weights = sums + index / parts * image_floats_;
      own.diff_bias = own.diff_weights + problem_.weights.floats;
      Part part = PartAt(index % parts, own);
      part.images = {images.begin + index / parts, 1};
      RunPart(part);
    });
    AddImages(sums, images, operands, team);
    first += images_at_once_;
  } while (first < batch && !threading::Stopped());
}

// A batch without images has a gradient of zero.
void WeightsGradientDriver::AddImages(const float* sums, Range images, const Operands& operands,
                                      const threading::Team& team) const {
  const bool continues = problem_.adds || images.begin > 0;
  const auto add = [&](float* to, int64_t begin, int64_t end, const float* from) {
    int64_t i = 0;
    if (!continues) {
      if (images.size == 0) return (void)std::fill(to + begin, to + end, 0.0f);
      std::copy(from + begin, from + end, to + begin);
      i = 1;
    }
    for (; i < images.size; ++i) {
      const float* const image = from + i * image_floats_;
      for (int64_t f = begin; f < end; ++f) to[f] += image[f];
    }
  };
  threading::ParallelForRanges(
      team, problem_.weights.floats, kFloatsAtOnce,
      [&](int64_t begin, int64_t end) { add(operands.diff_weights, begin, end, sums); });
  if (!problem_.has_bias) return;
  const Geometry& geometry = problem_.geometry;
  add(operands.diff_bias, 0, geometry.groups * geometry.oc, sums + problem_.weights.floats);
}

void WeightsGradientDriver::RunPart(const Part& part) const {
  const Geometry& geometry = problem_.geometry;
  if (part.begins_at_zero) ZeroPart(part);
  for (int64_t n = part.images.begin; n < part.images.begin + part.images.size; ++n) {
    for (int64_t depth = 0; depth < geometry.out[0]; ++depth) {
      for (int64_t row = 0; row < geometry.out[1]; row += band_rows_) {
        for (int64_t pixel = 0; pixel < geometry.out[2]; pixel += band_pixels_) {
          RunBand(part, n,
                  {depth,
                   {row, std::min(geometry.out[1], row + band_rows_)},
                   {pixel, std::min(geometry.out[2], pixel + band_pixels_)}});
          if (threading::Stopped()) return;
        }
      }
    }
  }
}

void WeightsGradientDriver::ZeroPart(const Part& part) const {
  const WeightsGradientProblem::Weights& strides = problem_.weights;
  const Geometry& geometry = problem_.geometry;
  float* const weights = part.operands.diff_weights + part.group * strides.group +
                         part.ic_blocks.begin * strides.ic_block;
  for (int64_t i = 0; i < part.oc_blocks.size; ++i) {
    float* const block = weights + (part.oc_blocks.begin + i) * strides.oc_block;
    std::fill(block, block + part.ic_blocks.size * strides.ic_block, 0.0f);
  }
  if (!problem_.has_bias || part.ic_blocks.begin != 0) return;
  const int64_t lanes = problem_.unit.lanes(), first = part.oc_blocks.begin * lanes;
  const int64_t end = std::min(geometry.oc, first + part.oc_blocks.size * lanes);
  float* const bias = part.operands.diff_bias + part.group * geometry.oc;
  std::fill(bias + first, bias + end, 0.0f);
}

// A few blocks of diff_dst stay in the first cache while those of src pass.
void WeightsGradientDriver::RunBand(const Part& part, int64_t image, const Band& band) const {
  const WeightsGradientProblem& p = problem_;
  const float* const src = part.operands.src + image * p.src.image + part.group * p.src.group;
  const float* const diff_dst = part.operands.diff_dst + image * p.dst.image +
                                part.group * p.dst.group + band.depth * p.dst.spatial[0];
  float* const weights = part.operands.diff_weights + part.group * p.weights.group;
  const int64_t end = part.oc_blocks.begin + part.oc_blocks.size;
  for (int64_t block = part.oc_blocks.begin; block < end;) {
    Place place;
    place.blocks = BlocksAt(part.oc_blocks, block);
    place.tail = HasTail(block, place.blocks);
    place.diff_dst = diff_dst + block * p.dst.block;
    if (p.has_bias && part.ic_blocks.begin == 0) RunBias(part, band, place, block);
    for (int64_t i = 0; i < part.ic_blocks.size; ++i) {
      const int64_t ic_block = part.ic_blocks.begin + i;
      place.src = src + ic_block * p.src.block;
      place.diff_weights = weights + block * p.weights.oc_block + ic_block * p.weights.ic_block;
      RunTaps(band, place, ChannelsOf(ic_block));
    }
    block += place.blocks;
  }
}

void WeightsGradientDriver::RunBias(const Part& part, const Band& band, const Place& place,
                                    int64_t block) const {
  const Spatial& strides = problem_.dst.spatial;
  const WeightsGradientArgs args = {
      .src = &kOne,
      .diff_dst = place.diff_dst + band.rows.begin * strides[1] + band.pixels.begin * strides[2],
      .diff_weights = part.operands.diff_bias + part.group * problem_.geometry.oc +
                      block * problem_.unit.lanes(),
      .rows = band.rows.end - band.rows.begin,
      .pixels = band.pixels.end - band.pixels.begin};
  bias_tiles_[place.blocks - 1][place.tail]->entry<WeightsGradientGenerator::Function>()(&args);
}

void WeightsGradientDriver::RunTaps(const Band& band, const Place& place, int64_t channels) const {
  const Geometry& geometry = problem_.geometry;
  for (int64_t kd = 0; kd < geometry.kernel[0]; ++kd) {
    const TapRange& depths = outputs_[0][kd];
    if (band.depth < depths.begin || band.depth >= depths.end) continue;
    Place at = place;
    at.src += (band.depth * geometry.stride[0] + kd * geometry.tap_step[0] - geometry.pad[0]) *
              problem_.src.spatial[0];
    at.diff_weights += kd * problem_.weights.taps[0];
    for (int64_t kh = 0; kh < geometry.kernel[1]; ++kh) RunRowOfTaps(band, at, channels, kh);
  }
}

void WeightsGradientDriver::RunRowOfTaps(const Band& band, const Place& place, int64_t channels,
                                         int64_t tap) const {
  const Geometry& geometry = problem_.geometry;
  const TapRange rows = Common(band.rows, outputs_[1][tap]);
  if (rows.begin >= rows.end) return;
  const int64_t row =
      rows.begin * geometry.stride[1] + tap * geometry.tap_step[1] - geometry.pad[1];
  for (int64_t kw = 0; kw < geometry.kernel[2]; ++kw) {
    const TapRange pixels = Common(band.pixels, outputs_[2][kw]);
    if (pixels.begin >= pixels.end) continue;
    const int64_t pixel =
        pixels.begin * geometry.stride[2] + kw * geometry.tap_step[2] - geometry.pad[2];
    Place at = place;
    at.src += row * problem_.src.spatial[1] + pixel * problem_.src.spatial[2];
    at.diff_dst += rows.begin * problem_.dst.spatial[1] + pixels.begin * problem_.dst.spatial[2];
    at.diff_weights += tap * problem_.weights.taps[1] + kw * problem_.weights.taps[2];
    RunTile(at, rows, pixels, channels);
  }
}

void WeightsGradientDriver::RunTile(const Place& place, const TapRange& rows,
                                    const TapRange& pixels, int64_t channels) const {
  const int64_t most = WeightsGradientGenerator::MostChannels(problem_.unit, place.blocks);
  const auto& tiles = tiles_[place.blocks - 1];
  WeightsGradientArgs args = {.src = place.src,
                              .diff_dst = place.diff_dst,
                              .diff_weights = place.diff_weights,
                              .rows = rows.end - rows.begin,
                              .pixels = pixels.end - pixels.begin};
  for (int64_t c = 0; c < channels; c += most) {
    const int64_t count = std::min(most, channels - c);
    tiles[count - 1][place.tail]->entry<WeightsGradientGenerator::Function>()(&args);
    args.src += count * problem_.src.channel;
    args.diff_weights += count * problem_.weights.channel;
  }
}

}  // namespace tilewire::convolution
