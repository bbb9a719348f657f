// SPDX-License-Identifier: Apache-2.0
//
// A patch that reaches beyond the image is copied, with zeros around it, before its transform; a
// tile that dst's last rows or columns cut has an output function that writes the rest only; the
// last output channels, if they do not fill a vector, have functions of their own.
#include "engine/primitives/convolution/winograd/winograd_tiles.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"

namespace tilewire::convolution {
namespace {

constexpr int kMaxSide = 6;
constexpr int kMaxLanes = 16;

// Every displacement and increment in the generated code lies within one of these spans.
absl::Status CheckDisplacements(const WinogradProblem& problem, int64_t v_point, int64_t m_point) {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max() / kFloatBytes;
  const WinogradPlan& plan = problem.plan;
  const std::optional<int64_t> row = CheckedMul(plan.tile(), problem.dst.spatial[1]);
  const std::optional<int64_t> column = CheckedMul(plan.tile(), problem.dst.spatial[2]);
  for (const std::optional<int64_t>& span :
       {row, column, std::optional(problem.dst.block), CheckedMul(plan.points(), v_point),
        CheckedMul(plan.points(), m_point)}) {
    if (!span || *span > kLargest) return Unimplemented("strides exceed 32-bit displacements");
  }
  return absl::OkStatus();
}

// The part of [first, first + side) that lies inside [0, size), counted from `first`.
TapRange Inside(int64_t first, int64_t side, int64_t size) {
  const int64_t begin = std::clamp<int64_t>(-first, 0, side);
  return {begin, std::clamp<int64_t>(size - first, begin, side)};
}

}  // namespace

absl::StatusOr<WinogradTiles> WinogradTiles::Create(absl::string_view name,
                                                    const WinogradProblem& problem,
                                                    const Distances& v, const Distances& m) {
  ABSL_RETURN_IF_ERROR(CheckDisplacements(problem, v.point, m.point));
  WinogradTiles tiles(problem, v, m);
  ABSL_RETURN_IF_ERROR(tiles.Generate(name));
  return tiles;
}

WinogradTiles::WinogradTiles(const WinogradProblem& problem, const Distances& v, const Distances& m)
    : problem_(problem), v_(v), m_(m), slopes_(PaddedSlopes(problem.post_ops, problem.unit)) {}

template <typename Function>
Function WinogradTiles::Keep(std::unique_ptr<const jit::Generator> generator) {
  generators_.push_back(std::move(generator));
  return generators_.back()->entry<Function>();
}

absl::Status WinogradTiles::Generate(absl::string_view name) {
  ABSL_ASSIGN_OR_RETURN(auto input, GenerateWinogradInput(absl::StrCat(name, ".input"),
                                                          {.unit = problem_.unit,
                                                           .tile = problem_.plan.tile(),
                                                           .point_bytes = v_.point * kFloatBytes,
                                                           .block_bytes = v_.block * kFloatBytes}));
  input_ = Keep<WinogradInputFunction>(std::move(input));
  ABSL_RETURN_IF_ERROR(GenerateOutputs(name, /*tail_lanes=*/0, &output_));
  output_tail_ = output_;
  const int tail_lanes = static_cast<int>(problem_.geometry.oc % problem_.unit.lanes());
  return tail_lanes == 0 ? absl::OkStatus() : GenerateOutputs(name, tail_lanes, &output_tail_);
}

absl::Status WinogradTiles::GenerateOutputs(absl::string_view name, int tail_lanes,
                                            OutputFunctions* functions) {
  const WinogradPlan& plan = problem_.plan;
  const int last_rows = static_cast<int>((problem_.geometry.out[1] - 1) % plan.tile() + 1);
  const int last_columns = static_cast<int>((problem_.geometry.out[2] - 1) % plan.tile() + 1);
  for (const bool cut_rows : {false, true}) {
    for (const bool cut_columns : {false, true}) {
      WinogradOutputConfig config{.unit = problem_.unit,
                                  .tile = plan.tile(),
                                  .point_bytes = m_.point * kFloatBytes,
                                  .block_bytes = m_.block * kFloatBytes,
                                  .rows = cut_rows ? last_rows : plan.tile(),
                                  .columns = cut_columns ? last_columns : plan.tile(),
                                  .dst_row_bytes = problem_.dst.spatial[1] * kFloatBytes,
                                  .dst_pixel_bytes = problem_.dst.spatial[2] * kFloatBytes,
                                  .dst_block_bytes = problem_.dst.block * kFloatBytes,
                                  .bias = problem_.has_bias,
                                  .tail_lanes = tail_lanes,
                                  .post_ops = problem_.post_ops,
                                  .pools = problem_.pools};
      WinogradOutputFunction& function = functions->by_cut[cut_rows][cut_columns];
      ABSL_ASSIGN_OR_RETURN(auto output,
                            GenerateWinogradOutput(absl::StrCat(name, ".output"), config));
      function = Keep<WinogradOutputFunction>(std::move(output));
    }
  }
  return absl::OkStatus();
}

int64_t WinogradTiles::code_bytes() const {
  int64_t bytes = 0;
  for (const auto& generator : generators_) bytes += generator->code_bytes();
  return bytes;
}

WinogradTiles::Position WinogradTiles::PositionOf(int64_t tile) const {
  const WinogradPlan& plan = problem_.plan;
  const int64_t in_image = tile % plan.ImageTiles();
  return {tile / plan.ImageTiles(), in_image / plan.tile_columns * plan.tile(),
          in_image % plan.tile_columns * plan.tile()};
}

// With few channels, divisions for every tile would cost noticeable time.
void WinogradTiles::Advance(Position* position) const {
  const WinogradPlan& plan = problem_.plan;
  position->column += plan.tile();
  if (position->column < plan.tile_columns * plan.tile()) return;
  position->column = 0;
  position->row += plan.tile();
  if (position->row < plan.tile_rows * plan.tile()) return;
  position->row = 0;
  ++position->image;
}

void WinogradTiles::TransformInputs(const WinogradOperands& operands, const Range& tiles,
                                    const Range& blocks, float* v) const {
  const float* const src = operands.src + blocks.begin * problem_.src.block;
  Position position = PositionOf(tiles.begin);
  for (int64_t i = 0; i < tiles.size; ++i, Advance(&position)) {
    TransformInput(src + position.image * problem_.src.image, position, blocks, v);
    v += problem_.unit.lanes();
  }
}

// A patch that reaches beyond the image is copied, block after block, and surrounded with zeros.
void WinogradTiles::TransformInput(const float* src, const Position& position, const Range& blocks,
                                   float* v) const {
  const Geometry& geometry = problem_.geometry;
  const int64_t side = problem_.plan.side(), lanes = problem_.unit.lanes();
  const int64_t row_stride = problem_.src.spatial[1];
  const int64_t first_row = position.row - geometry.pad[1];
  const int64_t first_column = position.column - geometry.pad[2];
  const TapRange rows = Inside(first_row, side, geometry.in[1]);
  const TapRange columns = Inside(first_column, side, geometry.in[2]);
  const float* from =
      src + (first_row + rows.begin) * row_stride + (first_column + columns.begin) * lanes;
  if (rows.end - rows.begin == side && columns.end - columns.begin == side) {
    const WinogradInputArgs args = {from, v, row_stride * kFloatBytes,
                                    problem_.src.block * kFloatBytes, blocks.size};
    return input_(&args);
  }
  alignas(64) float patch[kMaxSide * kMaxSide * kMaxLanes] = {};
  for (int64_t block = 0; block < blocks.size; ++block) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      std::memcpy(patch + (row * side + columns.begin) * lanes,
                  from + (row - rows.begin) * row_stride,
                  (columns.end - columns.begin) * lanes * kFloatBytes);
    }
    const WinogradInputArgs args = {patch, v, side * lanes * kFloatBytes, 0, 1};
    input_(&args);
    from += problem_.src.block;
    v += v_.block;
  }
}

void WinogradTiles::TransformOutputs(const WinogradOperands& operands, const Range& tiles,
                                     const Range& blocks, const float* m) const {
  const WinogradPlan& plan = problem_.plan;
  const Geometry& geometry = problem_.geometry;
  const int64_t lanes = problem_.unit.lanes(), pixels = problem_.PixelsOfDst();
  const bool has_tail =
      geometry.oc % lanes != 0 && blocks.begin + blocks.size == plan.output_blocks;
  Position position = PositionOf(tiles.begin);
  for (int64_t i = 0; i < tiles.size; ++i, m += lanes, Advance(&position)) {
    const bool cut_rows = position.row + plan.tile() > geometry.out[1];
    const bool cut_columns = position.column + plan.tile() > geometry.out[2];
    WinogradOutputArgs args;
    args.m = m;
    args.dst = operands.dst + position.image * problem_.dst.image +
               blocks.begin * problem_.dst.block + position.row / pixels * problem_.dst.spatial[1] +
               position.column / pixels * problem_.dst.spatial[2];
    args.bias = operands.bias == nullptr ? nullptr : operands.bias + blocks.begin * lanes;
    args.slopes = slopes_.empty() ? nullptr : slopes_.data() + blocks.begin * lanes;
    const int64_t whole = blocks.size - has_tail;
    if (whole > 0) {
      args.blocks = whole;
      output_.by_cut[cut_rows][cut_columns](&args);
    }
    if (!has_tail) continue;
    args.m += whole * m_.block;
    args.dst += whole * problem_.dst.block;
    if (args.bias != nullptr) args.bias += whole * lanes;
    if (args.slopes != nullptr) args.slopes += whole * lanes;
    args.blocks = 1;
    output_tail_.by_cut[cut_rows][cut_columns](&args);
  }
}

}  // namespace tilewire::convolution
