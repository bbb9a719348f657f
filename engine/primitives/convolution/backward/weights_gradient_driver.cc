// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/weights_gradient_driver.h"

#include <algorithm>
#include <array>

#include "absl/algorithm/container.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/threading/ranges.h"
#include "engine/threading/slots.h"
#include "engine/threading/stop.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kLargeBytes = 512 * 1024;             // gradients that have owners
constexpr int64_t kMostImageBytes = int64_t{16} << 20;  // of the gradients of images at once
constexpr int64_t kOcBlocksOfOwner = 6, kOcBlocksOfImage = 12;
constexpr int64_t kFewestOwners = 32, kFewestParts = 8;
constexpr int64_t kFewestImagesOfThread = 4;
constexpr int64_t kFloatsOfLine = 16, kFloatsAtOnce = 4096;

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

}  // namespace

WeightsGradientDriver::WeightsGradientDriver(const WeightsGradientProblem& problem)
    : problem_(problem), tiles_(problem), bands_(problem, tiles_.MostBlocks()) {
  const Geometry& geometry = problem_.geometry;
  for (int d = 0; d < 3; ++d) {
    for (int64_t tap = 0; tap < geometry.kernel[d]; ++tap)
      outputs_[d].push_back(OutputsOf(geometry, d, tap));
  }
  by_image_ = problem_.weights.floats * kFloatBytes <= kLargeBytes;
  by_image_ ? ChooseImages() : ChooseOwners();
}

absl::StatusOr<WeightsGradientDriver> WeightsGradientDriver::Create(
    absl::string_view name, const WeightsGradientProblem& problem) {
  WeightsGradientDriver driver(problem);
  ABSL_RETURN_IF_ERROR(driver.Compile(name));
  return driver;
}

// The largest parts that leave owners enough: what an owner reads is read again by others.
void WeightsGradientDriver::ChooseOwners() {
  oc_at_once_ = kOcBlocksOfOwner;
  ic_at_once_ = IcBlocks();
  while (oc_at_once_ > tiles_.MostBlocks() && Parts() < kFewestOwners)
    oc_at_once_ -= tiles_.MostBlocks();
  while (ic_at_once_ > 1 && Parts() < kFewestOwners) ic_at_once_ = DivUp(ic_at_once_, 2);
}

void WeightsGradientDriver::ChooseImages() {
  const int64_t outputs = problem_.geometry.groups * OcBlocks() * problem_.unit.lanes();
  const int64_t batch = problem_.geometry.batch;
  bias_floats_ = problem_.has_bias ? outputs : 0;
  image_floats_ = RoundUp(problem_.weights.floats + bias_floats_, kFloatsOfLine);
  images_at_once_ = std::clamp<int64_t>(kMostImageBytes / (image_floats_ * kFloatBytes), 1,
                                        std::max<int64_t>(1, batch));
  ic_at_once_ = IcBlocks();
  oc_at_once_ = kOcBlocksOfImage;
  while (oc_at_once_ > tiles_.MostBlocks() && images_at_once_ * Parts() < kFewestParts)
    oc_at_once_ -= tiles_.MostBlocks();
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
  return static_cast<int>(std::min<int64_t>(left, tiles_.MostBlocks()));
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
      for (int64_t channels : {ChannelsOf(0), ChannelsOf(IcBlocks() - 1)})
        ABSL_RETURN_IF_ERROR(tiles_.Compile(name, blocks, tail, channels));
      block += blocks;
    }
  }
  return absl::OkStatus();
}

int64_t WeightsGradientDriver::scratchpad_bytes() const {
  return by_image_ ? images_at_once_ * image_floats_ * kFloatBytes : 0;
}

void WeightsGradientDriver::Run(const Operands& operands, std::byte* scratchpad,
                                const threading::Team& team) const {
  by_image_ ? RunImages(operands, nullptr, reinterpret_cast<float*>(scratchpad), team)
            : RunOwners(operands, team);
}

bool WeightsGradientDriver::TakesCopies(const threading::Team& team) const {
  return by_image_ && problem_.geometry.batch >= kFewestImagesOfThread * team.threads();
}

void WeightsGradientDriver::RunOnCopies(const Operands& operands, const CopiedImages& src,
                                        std::byte* scratchpad, const threading::Team& team) const {
  RunImages(operands, &src, reinterpret_cast<float*>(scratchpad), team);
}

void WeightsGradientDriver::RunOwners(const Operands& operands, const threading::Team& team) const {
  team.ParallelFor(Parts(), [&](int64_t index) {
    Part part = PartAt(index, operands);
    part.images = {0, problem_.geometry.batch};
    part.begins_at_zero = !problem_.adds;
    RunPart(part);
  });
}

// `sums` are those of the image.
WeightsGradientDriver::Part WeightsGradientDriver::PartOfImage(int64_t index, int64_t image,
                                                               const Operands& operands,
                                                               float* sums) const {
  Operands own = operands;
  own.diff_weights = sums;
  own.diff_bias = sums + problem_.weights.floats;
  Part part = PartAt(index, own);
  part.images = {image, 1};
  return part;
}

void WeightsGradientDriver::RunImages(const Operands& operands, const CopiedImages* src,
                                      float* sums, const threading::Team& team) const {
  const int64_t batch = problem_.geometry.batch, parts = Parts();
  int64_t first = 0;
  const auto sums_of = [&](int64_t image) { return sums + (image - first) * image_floats_; };
  const auto run_copy = [&](int64_t image, int64_t slot) {
    float* const copy = src->copies + slot * problem_.src.image;
    src->make(image, copy);
    for (int64_t index = 0; index < parts; ++index) {
      Part part = PartOfImage(index, image, operands, sums_of(image));
      part.operands.src = copy;
      part.src_image = image;
      RunPart(part);
    }
  };
  do {
    const Range images = {first, std::min(images_at_once_, batch - first)};
    if (src != nullptr) {
      threading::ParallelForInSlots(
          team, images.size, team.threads(),
          [&](int64_t index, int64_t slot) { run_copy(first + index, slot); });
    } else {
      team.ParallelFor(images.size * parts, [&](int64_t index) {
        const int64_t image = first + index / parts;
        RunPart(PartOfImage(index % parts, image, operands, sums_of(image)));
      });
    }
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
  const int64_t first = part.images.begin * bands_.OfImage();
  const int64_t end = first + part.images.size * bands_.OfImage();
  const bool replaces = part.begins_at_zero && first < end && FirstBandReplaces();
  if (part.begins_at_zero && !replaces) ZeroWeights(part);
  if (part.begins_at_zero && problem_.has_bias && part.ic_blocks.begin == 0) ZeroBias(part);
  for (int64_t index = first; index < end && !threading::Stopped(); ++index) {
    RunBand(part, {bands_.At(index), index + 1 < end ? bands_.ToNext(index) : Distance{},
                   replaces && index == first});
  }
}

// Whether every band has a sum for every element, so that zeros need not be written before.
bool WeightsGradientDriver::FirstBandReplaces() const {
  const Geometry& geometry = problem_.geometry;
  const int64_t lanes = problem_.unit.lanes();
  return geometry.kernel == Spatial{1, 1, 1} && geometry.oc % lanes == 0 &&
         geometry.ic % lanes == 0 && bands_.OfImage() > 0 &&
         absl::c_all_of(std::array{0, 1, 2}, [&](int d) {
           return outputs_[d][0].begin == 0 && outputs_[d][0].end == geometry.out[d];
         });
}

void WeightsGradientDriver::ZeroWeights(const Part& part) const {
  const WeightsGradientProblem::Weights& strides = problem_.weights;
  float* const weights = part.operands.diff_weights + part.group * strides.group +
                         part.ic_blocks.begin * strides.ic_block;
  for (int64_t i = 0; i < part.oc_blocks.size; ++i) {
    float* const block = weights + (part.oc_blocks.begin + i) * strides.oc_block;
    std::fill(block, block + part.ic_blocks.size * strides.ic_block, 0.0f);
  }
}

void WeightsGradientDriver::ZeroBias(const Part& part) const {
  const Geometry& geometry = problem_.geometry;
  const int64_t lanes = problem_.unit.lanes(), first = part.oc_blocks.begin * lanes;
  const int64_t end = std::min(geometry.oc, first + part.oc_blocks.size * lanes);
  float* const bias = part.operands.diff_bias + part.group * geometry.oc;
  std::fill(bias + first, bias + end, 0.0f);
}

// Blocks of src whose bands stay in the second cache while all blocks of diff_dst pass.
void WeightsGradientDriver::RunBand(const Part& part, const Band& band) const {
  const int64_t end = part.ic_blocks.begin + part.ic_blocks.size;
  const int64_t at_once = bands_.BlocksInCache();
  for (int64_t block = part.ic_blocks.begin; block < end; block += at_once)
    RunBlocks(part, band, {block, std::min(at_once, end - block)});
}

// A few blocks of diff_dst stay in the first cache while those of src pass.
void WeightsGradientDriver::RunBlocks(const Part& part, const Band& band,
                                      const Range& ic_blocks) const {
  const WeightsGradientProblem& p = problem_;
  const float* const src =
      part.operands.src + (band.image - part.src_image) * p.src.image + part.group * p.src.group;
  const float* const diff_dst = part.operands.diff_dst + band.image * p.dst.image +
                                part.group * p.dst.group + band.depth * p.dst.spatial[0];
  float* const weights = part.operands.diff_weights + part.group * p.weights.group;
  const int64_t end = part.oc_blocks.begin + part.oc_blocks.size;
  for (int64_t block = part.oc_blocks.begin; block < end;) {
    Place place;
    place.blocks = BlocksAt(part.oc_blocks, block);
    place.tail = HasTail(block, place.blocks);
    place.is_last = block + place.blocks == end;
    place.replaces = band.replaces;
    place.diff_dst = diff_dst + block * p.dst.block;
    if (p.has_bias && ic_blocks.begin == 0) RunBias(part, band, place, block);
    for (int64_t i = 0; i < ic_blocks.size; i += place.src_blocks) {
      const int64_t ic_block = ic_blocks.begin + i;
      place.src = src + ic_block * p.src.block;
      place.diff_weights = weights + block * p.weights.oc_block + ic_block * p.weights.ic_block;
      place.channels = ChannelsOf(ic_block);
      LookAhead(part, band, ic_blocks, i, &place);
      RunTaps(band, place);
    }
    block += place.blocks;
  }
}

// Sets how many blocks of src, from block `i` of `ic_blocks` on, one call takes, of windows of one
// tap; and where it fetches meanwhile: the block of src that is next, and the next band of the
// blocks of diff_dst, one for each of the last blocks of src, or, where there is one of these only,
// for each row of taps from the middle one on.
void WeightsGradientDriver::LookAhead(const Part& part, const Band& band, const Range& ic_blocks,
                                      int64_t i, Place* place) const {
  const int64_t src_block = problem_.src.block, last = ic_blocks.size - 1;
  const int64_t parts_end = part.ic_blocks.begin + part.ic_blocks.size;
  const bool last_blocks = ic_blocks.begin + ic_blocks.size == parts_end;
  place->ahead = {.src = src_block};
  if (i == last && !place->is_last) place->ahead.src = -last * src_block;
  if (i == last && place->is_last && last_blocks)
    place->ahead.src = band.next.src - (part.ic_blocks.size - 1) * src_block;
  const bool fetches_dst = last_blocks && i < place->blocks;
  if (fetches_dst) place->ahead.dst = band.next.dst + i * problem_.dst.block;
  place->dst_ahead_step = fetches_dst ? problem_.dst.block : 0;
  place->blocks_by_rows = fetches_dst && part.ic_blocks.size == 1 ? place->blocks : 1;
  place->src_blocks = 1;
  if (problem_.geometry.kernel != Spatial{1, 1, 1}) return;
  const int64_t end = fetches_dst ? std::min<int64_t>(last, place->blocks) : last;
  place->src_blocks = std::max<int64_t>(1, end - i);
}

void WeightsGradientDriver::RunBias(const Part& part, const Band& band, const Place& place,
                                    int64_t block) const {
  WeightsGradientTiles::Call call = CallAt(place, band.rows, band.pixels);
  call.diff_weights =
      part.operands.diff_bias + part.group * problem_.geometry.oc + block * problem_.unit.lanes();
  tiles_.RunBias(call);
}

// Rows and pixels of diff_dst; src and diff_weights are still those of the place.
WeightsGradientTiles::Call WeightsGradientDriver::CallAt(const Place& place, const TapRange& rows,
                                                         const TapRange& pixels) const {
  const Spatial& strides = problem_.dst.spatial;
  return {.src = place.src,
          .diff_dst = place.diff_dst + rows.begin * strides[1] + pixels.begin * strides[2],
          .diff_weights = place.diff_weights,
          .blocks = place.blocks,
          .tail = place.tail,
          .rows = rows.end - rows.begin,
          .pixels = pixels.end - pixels.begin};
}

void WeightsGradientDriver::RunTaps(const Band& band, const Place& place) const {
  const Geometry& geometry = problem_.geometry;
  for (int64_t kd = 0; kd < geometry.kernel[0]; ++kd) {
    const TapRange& depths = outputs_[0][kd];
    if (band.depth < depths.begin || band.depth >= depths.end) continue;
    Place at = place;
    at.src += (band.depth * geometry.stride[0] + kd * geometry.tap_step[0] - geometry.pad[0]) *
              problem_.src.spatial[0];
    at.diff_weights += kd * problem_.weights.taps[0];
    for (int64_t kh = 0; kh < geometry.kernel[1]; ++kh) RunRowOfTaps(band, at, kh);
  }
}

void WeightsGradientDriver::RunRowOfTaps(const Band& band, const Place& place, int64_t tap) const {
  const Geometry& geometry = problem_.geometry;
  const TapRange rows = Common(band.rows, outputs_[1][tap]);
  if (rows.begin >= rows.end) return;
  Place at = place;
  at.src += (rows.begin * geometry.stride[1] + tap * geometry.tap_step[1] - geometry.pad[1]) *
            problem_.src.spatial[1];
  at.diff_weights += tap * problem_.weights.taps[1];
  const int64_t from_middle = tap - geometry.kernel[1] / 2;
  if (from_middle != 0) {
    const bool fetches = from_middle > 0 && from_middle < at.blocks_by_rows;
    const int64_t block = at.ahead.dst + from_middle * problem_.dst.block;
    at.ahead = {.src = 0, .dst = fetches ? block : 0};
    at.dst_ahead_step = 0;
  }
  const int64_t at_once = tiles_.TapsAtOnce();
  for (int64_t kw = 0; kw < geometry.kernel[2]; kw += at_once) {
    RunTapsOfRow(at, rows, band.pixels, {kw, std::min(kw + at_once, geometry.kernel[2])});
  }
}

// Pixels that all of the taps reach, and then those at the borders that only some do.
void WeightsGradientDriver::RunTapsOfRow(const Place& place, const TapRange& rows,
                                         const TapRange& pixels, const TapRange& taps) const {
  TapRange common = pixels;
  for (int64_t tap = taps.begin; tap < taps.end; ++tap) common = Common(common, outputs_[2][tap]);
  const bool together = taps.end - taps.begin > 1 && common.begin < common.end;
  if (together) RunPixels(place, rows, common, taps);
  for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
    const TapRange all = Common(pixels, outputs_[2][tap]), one = {tap, tap + 1};
    if (together) {
      RunPixels(place, rows, {all.begin, common.begin}, one);
      RunPixels(place, rows, {common.end, all.end}, one);
    } else {
      RunPixels(place, rows, all, one);
    }
  }
}

// One tap, or as many as a tile has.
void WeightsGradientDriver::RunPixels(const Place& place, const TapRange& rows,
                                      const TapRange& pixels, const TapRange& taps) const {
  if (pixels.begin >= pixels.end) return;
  const Geometry& geometry = problem_.geometry;
  const int64_t pixel =
      pixels.begin * geometry.stride[2] + taps.begin * geometry.tap_step[2] - geometry.pad[2];
  WeightsGradientTiles::Call call = CallAt(place, rows, pixels);
  call.src_blocks = place.src_blocks;
  call.replaces = place.replaces;
  call.src += pixel * problem_.src.spatial[2];
  call.diff_weights += taps.begin * problem_.weights.taps[2];
  const int64_t middle = geometry.kernel[2] / 2;
  if (taps.begin <= middle && middle < taps.end) {
    call.ahead = place.ahead;
    call.dst_ahead_step = place.dst_ahead_step;
  }
  const auto count = static_cast<int>(taps.end - taps.begin);
  count == 1 ? tiles_.RunTap(call, place.channels) : tiles_.RunTaps(call, count);
}

}  // namespace tilewire::convolution
