// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/planes/plane_product.h"

#include <algorithm>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/cores.h"
#include "engine/threading/slots.h"
#include "engine/threading/stop.h"

namespace tilewire {
namespace {

// Bytes of planes of weights: a core's share of its caches; and of its second one, for weights that
// are split in every run and read for several items.
constexpr int64_t kChunkBytes = 4 << 20, kSplitChunkBytes = 1 << 20;
// Strips are cut into about so many pieces for each thread, as cores are not equally fast at all
// times, but outputs only as far as there are fewer: every piece splits its strips.
constexpr int64_t kPiecesOfThread = 8, kFewestPiecesOfThread = 2;
constexpr int64_t kMostRows = 512, kFewestStrips = 2;  // of a piece
constexpr int64_t kLineAlignment = 64;

constexpr uint64_t LowLanes(int64_t count) { return (uint64_t{1} << count) - 1; }

}  // namespace

PlaneProduct::PlaneProduct(const PlaneProductShape& shape, std::vector<PlaneWeights> weights,
                           std::vector<Item> items)
    : shape_(shape),
      layout_(shape.WeightsLayout(static_cast<int64_t>(weights.size()))),
      weights_(std::move(weights)),
      items_(std::move(items)) {
  first_items_.assign(weights_.size() + 1, 0);
  for (const Item& item : items_) ++first_items_[item.weights + 1];
  for (size_t w = 1; w < first_items_.size(); ++w) first_items_[w] += first_items_[w - 1];
  for (size_t w = 0; shape_.weights_are_split && w < weights_.size(); ++w)
    weights_[w].offset = layout_.GroupOffset(static_cast<int64_t>(w) * Groups());
  const int64_t pieces = static_cast<int64_t>(std::max(items_.size(), weights_.size()));
  slots_ = std::min<int64_t>(cpu::GrantedCores(), pieces * shape_.Strips() * Groups());
}

int64_t PlaneProduct::ChunkGroups() const {
  const int64_t bytes = shape_.weights_are_split ? kChunkBytes : kSplitChunkBytes;
  return std::max<int64_t>(1, bytes / GroupBytes());
}

// Whole weights, or a part of the outputs of one.
int64_t PlaneProduct::Chunks() const {
  const int64_t weights = static_cast<int64_t>(weights_.size());
  if (Groups() > ChunkGroups()) return weights * DivUp(Groups(), ChunkGroups());
  return DivUp(weights, ChunkGroups() / Groups());
}

PlaneProduct::Chunk PlaneProduct::ChunkAt(int64_t index) const {
  const int64_t weights = static_cast<int64_t>(weights_.size());
  if (Groups() > ChunkGroups()) {
    const int64_t parts = DivUp(Groups(), ChunkGroups());
    return {{index / parts, 1}, SplitEvenly(Groups(), parts)[index % parts]};
  }
  const int64_t at_once = ChunkGroups() / Groups();
  return {{index * at_once, std::min(at_once, weights - index * at_once)}, {0, Groups()}};
}

// The bytes that a chunk shares: planes of its groups, and a byte for each that says whether some
// number is beyond.
int64_t PlaneProduct::SharedBytes() const {
  if (shape_.weights_are_split) return 0;
  const int64_t all = static_cast<int64_t>(weights_.size()) * Groups();
  const int64_t groups = std::min(all, ChunkGroups());
  return groups * GroupBytes() + RoundUp(groups, kLineAlignment);
}

int64_t PlaneProduct::SlotBytes() const { return lines_->bytes() + f32_rows_->bytes(); }

int64_t PlaneProduct::scratchpad_bytes() const { return SharedBytes() + slots_ * SlotBytes(); }

absl::StatusOr<std::unique_ptr<const PlaneProduct>> PlaneProduct::Create(
    absl::string_view name, const PlaneProductShape& shape, std::vector<PlaneWeights> weights,
    std::vector<Item> items) {
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.weights < b.weights; });
  std::unique_ptr<PlaneProduct> product(
      new PlaneProduct(shape, std::move(weights), std::move(items)));
  ABSL_RETURN_IF_ERROR(product->Compile(name));
  return product;
}

absl::Status PlaneProduct::Compile(absl::string_view name) {
  ABSL_ASSIGN_OR_RETURN(lines_, PlaneLines::Create(name, shape_));
  ABSL_ASSIGN_OR_RETURN(f32_rows_, F32Rows::Create(name, shape_));
  code_bytes_ = lines_->code_bytes() + f32_rows_->code_bytes();
  if (!shape_.weights_are_split) {
    ABSL_ASSIGN_OR_RETURN(split_, jit::Compile<PlaneSplit>(name, shape_.planes));
    code_bytes_ += static_cast<int64_t>(split_->code_bytes());
  }
  const PlaneStrips& strips = shape_.strips;
  for (int last : {0, 1}) {
    if (strips.AreShared()) places_[last] = PlacesOf(last == 0 ? 0 : shape_.Strips() - 1);
  }
  const int64_t rest = strips.AreShared() ? kPlaneLanes : (shape_.rows - 1) % kPlaneRows + 1;
  for (const bool last_group : {false, true}) {
    if (!last_group && Groups() == 1) continue;
    for (const bool is_rest : {false, true}) {
      if (!is_rest && shape_.rows <= kPlaneRows && !strips.AreShared()) continue;
      ABSL_ASSIGN_OR_RETURN(
          tiles_[last_group][is_rest],
          GeneratePlaneTile(name,
                            {.planes = shape_.planes,
                             .epilogue = EpilogueOf(last_group, is_rest ? rest : kPlaneRows),
                             .steps = lines_->Steps(),
                             .row_bytes = shape_.ReadsInPlace() ? shape_.src_row : kPlaneLineBytes,
                             .plane_bytes = strips.lines * kPlaneLineBytes,
                             .reads_whole_tiles = !shape_.ReadsInPlace(),
                             .rows = strips.AreShared() ? TileEndParts::Pixels::kInPlaces
                                                        : TileEndParts::Pixels::kInRuns}));
      code_bytes_ += static_cast<int64_t>(tiles_[last_group][is_rest]->code_bytes());
    }
  }
  return absl::OkStatus();
}

EpilogueConfig PlaneProduct::EpilogueOf(bool last_group, int64_t rows) const {
  const int64_t blocks = last_group ? (layout_.Blocks() - 1) % kPlaneBlocks + 1 : kPlaneBlocks;
  return {.unit = VectorUnit::Of(cpu::Isa::kAmx),
          .blocks = static_cast<int>(blocks),
          .pixels = static_cast<int>(rows),
          .dst_pixel_bytes = shape_.dst_row,
          .dst_block_bytes = shape_.dst_block,
          .bias = shape_.bias,
          .tail_lanes = last_group ? static_cast<int>(shape_.outputs % kPlaneLanes) : 0,
          .post_ops = shape_.post_ops,
          .dst_type = shape_.dst_type,
          .packed_channels = shape_.packed_dst,
          .pads_line = blocks < kPlaneBlocks};
}

// As many as its tiles read, to the end of the last one.
std::vector<int32_t> PlaneProduct::PlacesOf(int64_t strip) const {
  const PlaneStrips& strips = shape_.strips;
  const int64_t lines = strips.LinesOf(shape_.RowsOfStrip(strip));
  std::vector<int32_t> places(RoundUp(lines, int64_t{kPlaneRows}), -1);
  for (int64_t line = 0; line < lines; ++line) {
    if (line % strips.row_lines < strips.row_outputs)
      places[line] = static_cast<int32_t>(strips.RowsBefore(line) * shape_.dst_row);
  }
  return places;
}

void PlaneProduct::Run(const PlaneOperands& operands, std::byte* scratchpad,
                       const threading::Team& team) const {
  const int64_t chunks = Chunks();
  for (int64_t i = 0; i < chunks && !threading::Stopped(); ++i)
    RunChunk(operands, ChunkAt(i), scratchpad, team);
}

// The groups of a chunk follow each other in split weights, too.
PlaneProduct::ChunkPlanes PlaneProduct::PlanesOf(const PlaneOperands& operands, const Chunk& chunk,
                                                 std::byte* scratchpad,
                                                 const threading::Team& team) const {
  if (shape_.weights_are_split) {
    const int64_t first = chunk.weights.begin * Groups() + chunk.groups.begin;
    const std::byte* beyond = operands.weights + layout_.BeyondOffset() + first;
    return {operands.weights + layout_.GroupOffset(first),
            reinterpret_cast<const uint8_t*>(beyond)};
  }
  std::byte* const slots = scratchpad + SharedBytes();
  const int64_t count = chunk.weights.size * chunk.groups.size;
  auto* const beyond = reinterpret_cast<uint8_t*>(scratchpad + count * GroupBytes());
  threading::ParallelForInSlots(team, count, slots_, [&](int64_t i, int64_t slot) {
    const int64_t weights = chunk.weights.begin + i / chunk.groups.size;
    const int64_t group = chunk.groups.begin + i % chunk.groups.size;
    beyond[i] = SplitGroup(operands, weights, group, slots + slot * SlotBytes() + lines_->bytes(),
                           scratchpad + i * GroupBytes());
  });
  return {scratchpad, beyond};
}

// Pieces are long, as the end of the last tile of each runs alone, but several for each thread.
void PlaneProduct::RunChunk(const PlaneOperands& operands, const Chunk& chunk,
                            std::byte* scratchpad, const threading::Team& team) const {
  const ChunkPlanes planes = PlanesOf(operands, chunk, scratchpad, team);
  std::byte* const slots = scratchpad + SharedBytes();
  const int64_t first = first_items_[chunk.weights.begin];
  const int64_t items = first_items_[chunk.weights.begin + chunk.weights.size] - first;
  if (items * shape_.rows == 0) return;
  const bool shares = team.threads() > 1;
  const int64_t fewest = shares ? kFewestPiecesOfThread * team.threads() : 1;
  const int64_t wanted = shares ? kPiecesOfThread * team.threads() : 1;
  const int64_t most = std::max<int64_t>(1, kMostRows / shape_.strips.rows);
  const int64_t all = items * shape_.Strips();
  const int64_t least = std::clamp<int64_t>(all / fewest, 1, std::min(most, kFewestStrips));
  const int64_t at_once = std::clamp(all / wanted, least, most);
  const std::vector<Range> strips = SplitEvenly(shape_.Strips(), DivUp(shape_.Strips(), at_once));
  const auto runs = static_cast<int64_t>(strips.size());
  const std::vector<Range> groups = SplitEvenly(
      chunk.groups.size, std::clamp<int64_t>(DivUp(fewest, items * runs), 1, chunk.groups.size));
  const auto parts = static_cast<int64_t>(groups.size());
  threading::ParallelForInSlots(team, items * runs * parts, slots_, [&](int64_t i, int64_t slot) {
    const Item& item = items_[first + i / parts / runs];
    const Range& part = groups[i % parts];
    const int64_t before = (item.weights - chunk.weights.begin) * chunk.groups.size + part.begin;
    MultiplyPiece({.operands = operands,
                   .item = item,
                   .strips = strips[i / parts % runs],
                   .groups = {chunk.groups.begin + part.begin, part.size},
                   .planes = {planes.lines + before * GroupBytes(), planes.beyond + before},
                   .slot = slots + slot * SlotBytes()});
  });
}

// Returns whether some number is beyond planes.
bool PlaneProduct::SplitGroup(const PlaneOperands& operands, int64_t weights, int64_t group,
                              std::byte* copy, std::byte* to) const {
  bool beyond = false;
  const int64_t end = std::min((group + 1) * kPlaneBlocks, layout_.Blocks());
  for (int64_t block = group * kPlaneBlocks; block < end; ++block) {
    const WeightsBlock from =
        f32_rows_->BlockOf(operands.weights + weights_[weights].offset, block, copy);
    std::byte* const lines = to + block % kPlaneBlocks * kPlaneBlockBytes;
    if (!SplitWeights(*split_, layout_, from, lines)) continue;
    beyond = true;
    if (shape_.src_type == DataType::kBf16) HoldBeyond(layout_, from, lines);
  }
  return beyond;
}

void PlaneProduct::MultiplyPiece(const Piece& piece) const {
  MatrixTiles tiles;
  for (int64_t strip = 0; strip < piece.strips.size && !threading::Stopped(); ++strip) {
    const std::vector<Tile> of_strip = TilesOf(piece, piece.strips.begin + strip);
    for (int64_t i = 0; i < piece.groups.size && !threading::Stopped(); ++i) {
      for (const Tile& tile : of_strip) MultiplyTile(piece, tile, i, &tiles);
    }
  }
  FinishMatrixTiles(&tiles);
}

// Splits a strip.
std::vector<PlaneProduct::Tile> PlaneProduct::TilesOf(const Piece& piece, int64_t strip) const {
  const PlaneStrips& strips = shape_.strips;
  const PlaneRows& src = *piece.operands.src;
  const int64_t product = piece.item.product;
  const int64_t first = strip * strips.rows, rows = shape_.RowsOfStrip(strip);
  const bool has_beyond =
      !shape_.ReadsInPlace() && lines_->Split(src, product, first, rows, piece.slot);
  std::vector<Tile> tiles;
  for (int64_t line = 0; line < strips.LinesOf(rows); line += kPlaneRows) {
    const int64_t before = strips.RowsBefore(line);
    const int64_t end = std::min(rows, strips.RowsBefore(line + kPlaneRows));
    if (end == before) continue;
    Tile tile = {.strip = strip,
                 .line = line,
                 .row = first + before,
                 .src = nullptr,
                 .rows = static_cast<int>(end - before),
                 .beyond = 0};
    if (has_beyond) tile.beyond = lines_->BeyondRows(src, product, tile.row, tile.rows);
    tile.src = SourceOf(piece, tile);
    tiles.push_back(tile);
  }
  return tiles;
}

const std::byte* PlaneProduct::SourceOf(const Piece& piece, const Tile& tile) const {
  if (!shape_.ReadsInPlace()) return piece.slot + tile.line * kPlaneLineBytes;
  const std::byte* first = nullptr;
  piece.operands.src->ForEachRun(piece.item.product, tile.row, tile.rows, /*tap=*/0,
                                 [&](const PlaneRows::Run& run) { first = run.src; });
  return first;
}

int PlaneProduct::KindOf(const Tile& tile) const {
  const int64_t left = shape_.rows - tile.strip * shape_.strips.rows;
  if (!shape_.strips.AreShared()) return left <= kPlaneRows ? 1 : 0;
  return shape_.strips.LinesOf(shape_.RowsOfStrip(tile.strip)) - tile.line <= kPlaneLanes ? 1 : 0;
}

void PlaneProduct::MultiplyTile(const Piece& piece, const Tile& tile, int64_t i,
                                MatrixTiles* tiles) const {
  const int64_t group = piece.groups.begin + i, block = group * kPlaneBlocks;
  std::byte* const f32_memory = piece.slot + lines_->bytes();
  const bool all_in_f32 = shape_.src_type == DataType::kF32 && piece.planes.beyond[i] != 0;
  const auto rows_of_weights = static_cast<uint32_t>(all_in_f32 ? LowLanes(tile.rows) : 0);
  const F32Rows::Rows rows = {.operands = piece.operands,
                              .product = piece.item.product,
                              .first = tile.row,
                              .count = tile.rows,
                              .selected = rows_of_weights | tile.beyond,
                              .weights = weights_[piece.item.weights],
                              .dst = piece.operands.dst + piece.item.dst};
  if (rows.selected != 0) f32_rows_->Multiply(rows, group, f32_memory);
  IntegerTileArgs args = {};
  args.src = tile.src;
  args.weights = piece.planes.lines + i * GroupBytes();
  args.bias = reinterpret_cast<const std::byte*>(f32_rows_->BiasOf(rows, block));
  args.dst = f32_rows_->DstOf(rows, 0, block);
  args.tiles = tiles;
  if (shape_.strips.AreShared()) {
    args.dst -= (tile.row - tile.strip * shape_.strips.rows) * shape_.dst_row;
    args.places = places_[tile.strip + 1 == shape_.Strips()].data() + tile.line;
  }
  tiles_[group + 1 == Groups()][KindOf(tile)]->entry<IntegerTileFunction>()(&args);
  if (rows.selected == 0) return;
  EndMatrixTile(tiles);
  f32_rows_->Store(rows, group, f32_memory);
}

}  // namespace tilewire
