// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/cores.h"
#include "engine/kernels/products/softmax_rows.h"
#include "engine/kernels/products/strided_tile.h"
#include "engine/primitives/attention/block_plan.h"
#include "engine/primitives/attention/implementations.h"
#include "engine/primitives/attention/matrix_copy.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/threading/slots.h"
#include "engine/threading/stop.h"

namespace tilewire::attention {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

// Elements from one query's row of a mask to the next one's.
int64_t RowStep(const MemoryDesc& mask) { return mask.dim(2) == 1 ? 0 : mask.stride(2); }

// The differences between the code of tiles.
struct TileKind {
  bool of_values;  // else of scores
  int blocks;
  bool last;  // panel
  int64_t rows;
  auto operator<=>(const TileKind&) const = default;
};

using Tiles = std::map<TileKind, std::unique_ptr<const StridedTile>>;

struct BlocksDriver {
  // Some queries of one head.
  struct Block {
    int64_t batch, head, row, rows;
    const float *keys, *values;  // panels; values may be where they are
    float* scores;
    std::array<const float*, StridedTileArgs::kMostAddends> masks;  // that are read in place
  };

  void Run(const DrivenRun& run) const {
    auto* floats = reinterpret_cast<float*>(run.scratchpad);
    threading::ParallelForInSlots(run.team, plan.pieces(), slots, [&](int64_t piece, int64_t slot) {
      RunPiece(run, piece, floats + slot * plan.slot_elements());
    });
  }
  size_t code_bytes() const {
    size_t bytes = softmax->code_bytes();
    for (const auto& [kind, tile] : tiles) bytes += tile->code_bytes();
    return bytes;
  }

  void RunPiece(const DrivenRun& run, int64_t piece, float* slot) const {
    const int64_t chunk = piece % plan.chunks, group = piece / plan.chunks % plan.groups;
    const int64_t batch = piece / plan.chunks / plan.groups;
    float *keys = slot, *values = keys + plan.key_elements();
    CopyPanels(run, AttentionDesc::kKeys, batch, group, plan.score_panels, keys);
    if (!plan.values_in_place)
      CopyPanels(run, AttentionDesc::kValues, batch, group, plan.value_panels, values);
    const float* from =
        plan.values_in_place ? Element(run, AttentionDesc::kValues, batch, group, 0) : values;
    const int64_t end = std::min(plan.queries, (chunk + 1) * plan.piece_rows);
    const int64_t heads = plan.heads_per_group();
    for (int64_t head = group * heads; head < (group + 1) * heads; ++head) {
      for (int64_t row = chunk * plan.piece_rows; row < end; row += plan.block_rows) {
        if (threading::Stopped()) return;
        RunBlock(run, {batch,
                       head,
                       row,
                       std::min(plan.block_rows, end - row),
                       keys,
                       from,
                       values + plan.value_elements(),
                       {}});
      }
    }
  }

  // Keys: rows are elements of a key, columns are keys. Values: rows are values.
  void CopyPanels(const DrivenRun& run, int src, int64_t batch, int64_t group,
                  const std::vector<Panel>& panels, float* to) const {
    const MemoryDesc& md = desc.srcs[src];
    const int of_rows = src == AttentionDesc::kKeys ? 3 : 2, of_columns = 5 - of_rows;
    const int64_t column_stride = md.stride(of_columns);
    const float* from = Element(run, src, batch, group, 0);
    for (const Panel& panel : panels) {
      const int64_t width = panel.blocks * plan.lanes, rows = md.dim(of_rows);
      const int64_t count = std::min(width, md.dim(of_columns) - panel.column);
      CopyMatrix(
          {from + panel.column * column_stride, rows, count, md.stride(of_rows), column_stride}, to,
          width);
      for (int64_t row = 0; row < rows; ++row, to += width) std::fill(to + count, to + width, 0.0f);
    }
  }

  const float* Element(const DrivenRun& run, int src, int64_t b, int64_t h, int64_t m) const {
    const MemoryDesc& md = desc.srcs[src];
    return run.First<const float>(kArgMultipleSrc + src) + b * md.stride(0) + h * md.stride(1) +
           m * md.stride(2);
  }

  void RunBlock(const DrivenRun& run, Block block) const {
    const int64_t stride = plan.score_stride;
    for (size_t i = AttentionDesc::kFirstMask; i < desc.srcs.size(); ++i) {
      const float* mask = MaskOf(run, i, block);
      if (plan.masks_in_place) {
        block.masks[i - AttentionDesc::kFirstMask] = mask;
      } else {
        LoadMask(i, mask, block);
      }
    }
    const MemoryDesc &queries = desc.srcs[AttentionDesc::kQueries], &dst = desc.dst;
    RunTiles(/*of_values=*/false, block,
             Element(run, AttentionDesc::kQueries, block.batch, block.head, block.row),
             queries.stride(2), block.scores, stride);
    if (desc.causal) HideLaterKeys(block);
    softmax->entry<SoftmaxRows::Function>()(block.scores, block.scores, block.rows);
    float* to = run.First<float>(kArgDst) + block.batch * dst.stride(0) +
                block.head * dst.stride(1) + block.row * dst.stride(2);
    RunTiles(/*of_values=*/true, block, block.scores, stride, to, dst.stride(2));
  }

  void RunTiles(bool of_values, const Block& block, const float* src, int64_t src_stride,
                float* dst, int64_t dst_stride) const {
    const std::vector<Panel>& panels = of_values ? plan.value_panels : plan.score_panels;
    const float* weights = of_values ? block.values : block.keys;
    const int64_t depth = of_values ? plan.keys : plan.depth;
    for (const Panel& panel : panels) {
      const auto whole = TileOf(of_values, panel, plan.tile_rows);
      const auto rest = TileOf(of_values, panel, block.rows % plan.tile_rows);
      for (int64_t row = 0; row < block.rows; row += plan.tile_rows) {
        const int64_t rows = std::min(plan.tile_rows, block.rows - row);
        StridedTileArgs args = {src + row * src_stride, weights, nullptr,
                                dst + row * dst_stride + panel.column};
        if (!of_values && plan.masks_in_place) SetMasks(block, row, panel.column, &args);
        (rows == plan.tile_rows ? whole : rest)(&args);
      }
      weights += (of_values && plan.values_in_place ? 1 : depth) * panel.blocks * plan.lanes;
    }
  }

  void SetMasks(const Block& block, int64_t row, int64_t column, StridedTileArgs* args) const {
    for (size_t i = AttentionDesc::kFirstMask; i < desc.srcs.size(); ++i) {
      const size_t mask = i - AttentionDesc::kFirstMask;
      args->addends[mask] = block.masks[mask] + row * RowStep(desc.srcs[i]) + column;
    }
  }

  // Nothing where no block has so many rows.
  StridedTile::Function TileOf(bool of_values, const Panel& panel, int64_t rows) const {
    const Panel& last = of_values ? plan.value_panels.back() : plan.score_panels.back();
    const auto tile = tiles.find({of_values, panel.blocks, &panel == &last, rows});
    return tile == tiles.end() ? nullptr : tile->second->entry<StridedTile::Function>();
  }

  // Its first row for the block.
  const float* MaskOf(const DrivenRun& run, size_t i, const Block& block) const {
    const Dims index = MaskIndex(desc.srcs[i].dims(), {block.batch, block.head, block.row, 0});
    return Element(run, static_cast<int>(i), index[0], index[1], index[2]);
  }

  // The scores begin as the sum of the masks, to which the products are added.
  void LoadMask(size_t i, const float* mask, const Block& block) const {
    const MemoryDesc& md = desc.srcs[i];
    const int64_t keys = plan.keys, step = md.dim(3) == 1 ? 0 : md.stride(3);
    for (int64_t r = 0; r < block.rows; ++r, mask += RowStep(md)) {
      float* line = block.scores + r * plan.score_stride;
      if (i == AttentionDesc::kFirstMask) {
        std::fill(line + keys, line + plan.score_stride, 0.0f);
        CopyMatrix({mask, 1, keys, 0, step}, line, 0);
      } else {
        AddRow(mask, step, keys, line);
      }
    }
  }

  void HideLaterKeys(const Block& block) const {
    for (int64_t r = 0; r < block.rows; ++r) {
      float* line = block.scores + r * plan.score_stride;
      const int64_t first = std::min(plan.keys, block.row + r + 1);
      std::fill(line + first, line + plan.keys, -std::numeric_limits<float>::infinity());
    }
  }

  AttentionDesc desc;
  BlockPlan plan;
  int64_t slots;
  Tiles tiles;
  std::unique_ptr<const SoftmaxRows> softmax;
};

StridedTileConfig ConfigOf(const AttentionDesc& desc, const BlockPlan& plan, const VectorUnit& unit,
                           const TileKind& kind, const PostOps& post_ops) {
  const MemoryDesc& queries = desc.srcs[AttentionDesc::kQueries];
  StridedTileConfig config{.epilogue = {.unit = unit}};
  config.k = kind.of_values ? plan.keys : plan.depth;
  config.src_row_bytes = (kind.of_values ? plan.score_stride : queries.stride(2)) * kFloatBytes;
  config.src_k_bytes = (kind.of_values ? 1 : queries.stride(3)) * kFloatBytes;
  config.weights_k_bytes = kind.of_values && plan.values_in_place
                               ? desc.srcs[AttentionDesc::kValues].stride(2) * kFloatBytes
                               : kind.blocks * int64_t{unit.bytes()};
  EpilogueConfig& epilogue = config.epilogue;
  epilogue.blocks = kind.blocks;
  epilogue.pixels = static_cast<int>(kind.rows);
  epilogue.dst_block_bytes = unit.bytes();
  epilogue.dst_pixel_bytes =
      (kind.of_values ? desc.dst.stride(2) : plan.score_stride) * kFloatBytes;
  if (!kind.of_values) {
    epilogue.post_ops = post_ops;
    if (plan.masks_in_place && kind.last)
      config.addend_tail = static_cast<int>(plan.keys % unit.lanes());
    for (size_t i = AttentionDesc::kFirstMask; plan.masks_in_place && i < desc.srcs.size(); ++i)
      config.addend_row_bytes.push_back(RowStep(desc.srcs[i]) * kFloatBytes);
  } else if (kind.last) {
    epilogue.tail_lanes = static_cast<int>(plan.columns % unit.lanes());
    epilogue.packed_channels = true;
  }
  return config;
}

// Refuses tensors beyond the reach of a tile's 32-bit displacements.
absl::Status RequireNear(const MemoryDesc& md) {
  constexpr int64_t kFarthest = std::numeric_limits<int32_t>::max() / 64;
  if (!md.IsPlain()) return Unimplemented(md.ToString(), " has blocks");
  if (md.stride(2) > kFarthest || md.stride(3) > kFarthest || md.dim(2) > kFarthest)
    return Unimplemented("rows over 25 bits apart");
  return absl::OkStatus();
}

absl::StatusOr<PostOps> ScorePostOps(const AttentionDesc& desc, const BlockPlan& plan) {
  PostOps post_ops;
  if (desc.scale != 1) {
    ABSL_RETURN_IF_ERROR(
        post_ops.Append(EltwisePostOp{{EltwiseAlgorithm::kLinear, desc.scale, 0}}));
  }
  if (desc.srcs.size() > AttentionDesc::kFirstMask && !plan.masks_in_place)
    ABSL_RETURN_IF_ERROR(post_ops.Append(SumPostOp{}));
  return post_ops;
}

absl::StatusOr<Tiles> CompileTiles(const AttentionDesc& desc, const BlockPlan& plan,
                                   const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(const PostOps post_ops, ScorePostOps(desc, plan));
  Tiles tiles;
  for (const bool of_values : {false, true}) {
    const std::vector<Panel>& panels = of_values ? plan.value_panels : plan.score_panels;
    for (const Panel& panel : panels) {
      for (int64_t rows : {std::min(plan.tile_rows, plan.queries), plan.queries % plan.tile_rows}) {
        const TileKind kind{of_values, panel.blocks, &panel == &panels.back(), rows};
        if (rows == 0 || tiles.count(kind) > 0) continue;
        ABSL_ASSIGN_OR_RETURN(
            tiles[kind],
            jit::Compile<StridedTile>(
                facts.name, ConfigOf(desc, plan, VectorUnit::Of(facts.isa), kind, post_ops)));
      }
    }
  }
  return tiles;
}

}  // namespace

absl::StatusOr<AttentionDesc> ResolveBlocks(const Request<AttentionDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(AttentionDesc resolved, ResolveReference(request));
  for (const MemoryDesc& src : resolved.srcs) {
    ABSL_RETURN_IF_ERROR(RequireNear(src));
    if (src.ElementCount() == 0) return Unimplemented("nothing to add up");
  }
  ABSL_RETURN_IF_ERROR(RequireNear(resolved.dst));
  if (resolved.dst.ElementCount() == 0) return Unimplemented("nothing to compute");
  if (resolved.dst.dim(3) > 1 && resolved.dst.stride(3) != 1)
    return Unimplemented("elements of a row of dst do not follow each other");
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBlocks(const Request<AttentionDesc>& request) {
  const AttentionDesc& desc = request.desc;
  const BlockPlan plan(desc, VectorUnit::Of(request.facts.isa));
  const int64_t slots = std::min<int64_t>(plan.pieces(), cpu::GrantedCores());
  const auto bytes = CheckedProduct({slots, plan.slot_elements(), kFloatBytes});
  if (!bytes) return Unimplemented("the blocks overflow a size");
  ABSL_ASSIGN_OR_RETURN(Tiles tiles, CompileTiles(desc, plan, request.facts));
  ABSL_ASSIGN_OR_RETURN(
      auto softmax, jit::Compile<SoftmaxRows>(request.facts.name, VectorUnit::Of(request.facts.isa),
                                              plan.keys, plan.score_stride));
  PrimitiveInfo info = InfoOf(request);
  info.scratchpad_bytes = *bytes;
  return MakeDriven(std::move(info),
                    BlocksDriver{desc, plan, slots, std::move(tiles), std::move(softmax)});
}

}  // namespace tilewire::attention
