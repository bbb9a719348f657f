// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/strided_tile.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/matmul/batches.h"
#include "engine/primitives/matmul/implementations.h"
#include "engine/threading/stop.h"

namespace tilewire::matmul {
namespace {

constexpr int64_t kFewRows = 32;       // of src: copying the weights would not pay
constexpr int64_t kRowsPerTask = 128;  // of dst: a piece of work for one thread
constexpr int kBlocks = 3;             // vectors of columns in a whole tile
constexpr int kMaxRows = 8;

struct Tiling {
  VectorUnit unit;
  int64_t columns;  // of a panel
  int64_t panels;
  bool copies;   // all panels, not only a last one with a tail
  int64_t tail;  // columns of the last panel where it is not whole, else 0
  int64_t max_rows;
  int64_t copied() const { return copies ? panels : tail == 0 ? 0 : 1; }
};

Tiling TilingOf(const MatmulDesc& desc, const PostOps& post_ops, const VectorUnit& unit) {
  const Shape shape = ShapeOf(desc);
  Tiling tiling{.unit = unit};
  tiling.columns = kBlocks * unit.lanes();
  tiling.panels = DivUp(shape.n, tiling.columns);
  tiling.tail = shape.n % tiling.columns;
  const bool row_major = shape.n == 1 || desc.weights.stride(desc.weights.rank() - 1) == 1;
  tiling.copies = !row_major || shape.m > kFewRows;
  tiling.max_rows =
      StridedTile::MaxRows(unit, post_ops, kBlocks, unit.registers() >= 32 ? kMaxRows : 4);
  return tiling;
}

// Immutable.
class Tiles final : public Primitive {
 public:
  using Generators = std::map<std::pair<bool, int64_t>, std::unique_ptr<const StridedTile>>;

  Tiles(PrimitiveInfo primitive_info, const MatmulDesc& desc, const Tiling& tiling, bool has_sum,
        Generators generators)
      : Primitive(std::move(primitive_info)),
        desc_(desc),
        shape_(ShapeOf(desc)),
        tiling_(tiling),
        has_sum_(has_sum),
        generators_(std::move(generators)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    if (desc_.dst.ElementCount() == 0) return;
    auto* copies = reinterpret_cast<float*>(scratchpad);
    const int64_t copied = tiling_.copied(), first = tiling_.panels - copied;
    team.ParallelFor(shape_.weights_batch * copied, [&](int64_t i) {
      CopyPanel(Weights(args, i / copied), first + i % copied, copies + i * PanelElements());
    });
    const int64_t pieces = DivUp(shape_.m, kRowsPerTask);
    team.ParallelFor(shape_.batch * tiling_.panels * pieces, [&](int64_t task) {
      const int64_t row = task % pieces * kRowsPerTask;
      const int64_t panel = task / pieces % tiling_.panels;
      const int64_t b = task / pieces / tiling_.panels;
      const int64_t end = std::min(shape_.m, row + kRowsPerTask);
      const float* weights = Weights(args, WeightsOf(desc_, b)) + panel * tiling_.columns;
      if (panel >= first) {
        weights = copies + (WeightsOf(desc_, b) * copied + panel - first) * PanelElements();
      }
      for (int64_t m = row; m < end; m += tiling_.max_rows) {
        RunTile(args, weights, b, panel, m, std::min(tiling_.max_rows, end - m));
        if (threading::Stopped()) return;
      }
    });
  }

  int64_t PanelElements() const { return shape_.k * tiling_.columns; }

  void CopyPanel(const float* weights, int64_t panel, float* to) const {
    const int64_t column = panel * tiling_.columns;
    const int64_t count = std::min(tiling_.columns, shape_.n - column);
    const int64_t k_stride = StrideOf(desc_.weights, 1), n_stride = StrideOf(desc_.weights, 0);
    for (int64_t k = 0; k < shape_.k && !threading::Stopped(); ++k, to += tiling_.columns) {
      const float* from = weights + k * k_stride + column * n_stride;
      if (n_stride == 1) {
        std::memcpy(to, from, count * sizeof(float));
      } else {
        for (int64_t i = 0; i < count; ++i) to[i] = from[i * n_stride];
      }
      std::fill(to + count, to + tiling_.columns, 0.0f);
    }
  }

  void RunTile(const ExecuteArgs& args, const float* weights, int64_t b, int64_t panel, int64_t row,
               int64_t rows) const {
    const bool tail = tiling_.tail != 0 && panel == tiling_.panels - 1;
    const int64_t stride = StrideOf(desc_.dst, 1), column = panel * tiling_.columns;
    float tile[kMaxRows * kBlocks * 16];
    float* dst = args.Get<float>(kArgDst) + desc_.dst.offset0() + BatchOffset(desc_, desc_.dst, b) +
                 row * stride + column;
    StridedTileArgs tile_args;
    tile_args.src = args.Get<const float>(kArgSrc) + desc_.src.offset0() +
                    BatchOffset(desc_, desc_.src, b) + row * StrideOf(desc_.src, 1);
    tile_args.weights = weights;
    tile_args.bias = desc_.bias.IsZero()
                         ? nullptr
                         : args.Get<const float>(kArgBias) + desc_.bias.offset0() + column;
    tile_args.dst = tail ? tile : dst;
    const auto run = generators_.at({tail, rows})->entry<StridedTile::Function>();
    if (!tail) return run(&tile_args);
    for (int64_t r = 0; has_sum_ && r < rows; ++r) {
      float* line = tile + r * tiling_.columns;
      std::memcpy(line, dst + r * stride, tiling_.tail * sizeof(float));
      std::fill(line + tiling_.tail, line + tiling_.columns, 0.0f);
    }
    run(&tile_args);
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(dst + r * stride, tile + r * tiling_.columns, tiling_.tail * sizeof(float));
    }
  }

  const float* Weights(const ExecuteArgs& args, int64_t index) const {
    return args.Get<const float>(kArgWeights) + desc_.weights.offset0() +
           WeightsOffset(desc_, index);
  }

  const MatmulDesc desc_;
  const Shape shape_;
  const Tiling tiling_;
  const bool has_sum_;
  const Generators generators_;  // by (tail, rows)
};

StridedTileConfig ConfigOf(const MatmulDesc& desc, const Tiling& tiling, const PostOps& post_ops,
                           bool tail, int64_t rows) {
  constexpr int64_t kFloatBytes = sizeof(float);
  const int64_t columns = tail ? tiling.tail : tiling.columns;
  const bool copied = tiling.copies || tail;
  const VectorUnit& unit = tiling.unit;
  StridedTileConfig config{.epilogue = {.unit = unit}};
  config.k = ShapeOf(desc).k;
  config.src_row_bytes = StrideOf(desc.src, 1) * kFloatBytes;
  config.src_k_bytes = StrideOf(desc.src, 0) * kFloatBytes;
  config.weights_k_bytes = (copied ? tiling.columns : StrideOf(desc.weights, 1)) * kFloatBytes;
  EpilogueConfig& epilogue = config.epilogue;
  epilogue.blocks = static_cast<int>(DivUp(columns, unit.lanes()));
  epilogue.pixels = static_cast<int>(rows);
  epilogue.dst_block_bytes = unit.bytes();
  epilogue.dst_pixel_bytes = (tail ? tiling.columns : StrideOf(desc.dst, 1)) * kFloatBytes;
  epilogue.bias = !desc.bias.IsZero();
  epilogue.tail_lanes = static_cast<int>(columns % unit.lanes());
  epilogue.post_ops = post_ops;
  return config;
}

absl::Status RequireStrides(const MemoryDesc& md) {
  if (!md.IsPlain()) return absl::UnimplementedError(absl::StrCat(md.ToString(), " has blocks"));
  for (int back = 0; back < 2; ++back) {
    // Displacements of a few rows and steps are 32-bit immediates.
    if (StrideOf(md, back) > std::numeric_limits<int32_t>::max() / 64) {
      return absl::UnimplementedError("strides over 25 bits");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MatmulDesc> ResolveTiles(const MatmulDesc& desc, const Attributes& attributes,
                                        const ImplementationFacts& facts) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias, desc.dst));
  ABSL_ASSIGN_OR_RETURN(MatmulDesc resolved, ResolveReference(desc, attributes, facts));
  for (const MemoryDesc* md : {&resolved.src, &resolved.weights, &resolved.dst}) {
    ABSL_RETURN_IF_ERROR(RequireStrides(*md));
  }
  const int last = resolved.dst.rank() - 1;
  if (resolved.dst.dim(last) > 1 && resolved.dst.stride(last) != 1) {
    return absl::UnimplementedError("elements of a row of dst do not follow each other");
  }
  const MemoryDesc& bias = resolved.bias;
  if (bias.IsZero()) return resolved;
  const int64_t n = resolved.dst.dim(last);
  if (bias.ElementCount() != n || bias.dim(last) != n || (n > 1 && bias.stride(last) != 1) ||
      !bias.IsPlain()) {
    return absl::UnimplementedError("bias is not one dense row");
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateTiles(const MatmulDesc& desc,
                                                       const Attributes& attributes,
                                                       const ImplementationFacts& facts) {
  const PostOps& post_ops = attributes.post_ops;
  const Tiling tiling = TilingOf(desc, post_ops, VectorUnit::Of(facts.isa));
  const Shape shape = ShapeOf(desc);
  PrimitiveInfo info = InfoOf(desc, attributes, facts);
  const auto bytes = CheckedProduct(
      {shape.weights_batch, tiling.copied(), shape.k, tiling.columns, int64_t{sizeof(float)}});
  if (!bytes) return absl::UnimplementedError("the copied weights overflow a size");
  info.scratchpad_bytes = *bytes;
  Tiles::Generators generators;
  for (bool tail : {false, true}) {
    if (tail ? tiling.tail == 0 : shape.n < tiling.columns) continue;
    // Rows of the last tile of a task: tasks start at multiples of kRowsPerTask.
    const int64_t piece = std::min(shape.m, kRowsPerTask), last = shape.m % kRowsPerTask;
    for (int64_t rows : {std::min(piece, tiling.max_rows), piece % tiling.max_rows,
                         last % tiling.max_rows, std::min(last, tiling.max_rows)}) {
      if (rows == 0 || generators.count({tail, rows}) > 0) continue;
      ABSL_ASSIGN_OR_RETURN(
          auto generator,
          jit::Compile<StridedTile>(facts.name, ConfigOf(desc, tiling, post_ops, tail, rows)));
      info.code_bytes += static_cast<int64_t>(generator->code_bytes());
      generators[{tail, rows}] = std::move(generator);
    }
  }
  return std::make_unique<Tiles>(std::move(info), desc, tiling, post_ops.HasSum(),
                                 std::move(generators));
}

}  // namespace tilewire::matmul
