// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

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

constexpr int64_t kFewRows = 32;                // of src: copying the weights would not pay
constexpr int64_t kRowsPerTask = 128;           // of dst: a piece of work for one thread
constexpr int64_t kFewestProducts = 32 * 1024;  // of a piece of work, where there are as many
constexpr int64_t kMostPlaces = 4096;  // products of a batch whose places are kept in a table
constexpr int kMaxRows = 8;

struct Tiling {
  VectorUnit unit;
  int64_t columns = 0;  // of a panel
  int64_t panels = 0;
  bool copies = false;  // the panels
  int64_t tail = 0;     // columns of the last panel where it is not whole, else 0
  int64_t max_rows = 0;
  int64_t copied() const { return copies ? panels : 0; }
};

// Vectors of columns in a tile: more where rows are too few for sums that hide the latency of
// additions.
int MostBlocks(const VectorUnit& unit, int64_t rows) {
  const bool many_registers = unit.registers() >= 32;
  if (rows == 1) return many_registers ? 8 : 6;
  if (rows == 2) return many_registers ? 6 : 4;
  return 3;
}

Tiling TilingOf(const MatmulDesc& desc, const PostOps& post_ops, const VectorUnit& unit) {
  const Shape shape = ShapeOf(desc);
  Tiling tiling{.unit = unit};
  const int64_t vectors = DivUp(shape.n, unit.lanes());
  tiling.panels = DivUp(vectors, MostBlocks(unit, shape.m));
  const int blocks = static_cast<int>(DivUp(vectors, std::max<int64_t>(1, tiling.panels)));
  tiling.columns = std::max(blocks, 1) * unit.lanes();
  tiling.panels = DivUp(shape.n, tiling.columns);
  tiling.tail = shape.n % tiling.columns;
  const bool row_major = shape.n == 1 || desc.weights.stride(desc.weights.rank() - 1) == 1;
  tiling.copies = !row_major || shape.m > kFewRows;
  tiling.max_rows = StridedTile::MaxRows(
      unit, post_ops, std::max(blocks, 1), unit.registers() >= 32 ? kMaxRows : 4,
      /*masks_weights=*/!tiling.copies && shape.n % unit.lanes() != 0);
  return tiling;
}

// The sizes of the dimensions before `end` in one, and the step along it; nullopt where they do not
// continue each other.
std::optional<std::pair<int64_t, int64_t>> RowsOf(const MemoryDesc& md, int end) {
  int64_t count = 1, step = 0;
  for (int d = end - 1; d >= 0; --d) {
    if (md.dim(d) == 1) continue;
    if (count == 1) step = md.stride(d);
    if (md.stride(d) != count * step) return std::nullopt;
    count *= md.dim(d);
  }
  return std::pair(count, step);
}

// Products with one matrix of weights as one product of all their rows, without offset0, where the
// rows of src and dst are evenly spaced.
MatmulDesc OneProduct(const MatmulDesc& desc) {
  const Shape shape = ShapeOf(desc);
  const int rank = desc.dst.rank();
  if (shape.weights_batch != 1 || shape.batch <= 1 || desc.dst.ElementCount() == 0) return desc;
  const auto src = RowsOf(desc.src, rank - 1), dst = RowsOf(desc.dst, rank - 1);
  if (!src || !dst || src->first != dst->first) return desc;
  const auto matrix = [&](const MemoryDesc& md, int64_t rows, int64_t step) {
    return MemoryDesc::CreateStrided({rows, md.dim(rank - 1)}, DataType::kF32,
                                     {step, md.stride(rank - 1)});
  };
  const int64_t k_step = desc.weights.stride(rank - 2);
  const auto one_src = matrix(desc.src, src->first, src->second);
  const auto one_dst = matrix(desc.dst, dst->first, dst->second);
  const auto weights = matrix(desc.weights, shape.k, k_step);
  const auto bias =
      desc.bias.IsZero() ? absl::StatusOr<MemoryDesc>(desc.bias) : matrix(desc.bias, 1, shape.n);
  if (!one_src.ok() || !one_dst.ok() || !weights.ok() || !bias.ok()) return desc;
  return MatmulDesc{.src = *one_src, .weights = *weights, .bias = *bias, .dst = *one_dst};
}

// Immutable.
class Tiles final : public Primitive {
 public:
  // By whether the panel has a tail, and by rows; null where there is none.
  using Generators = std::array<std::array<std::unique_ptr<const StridedTile>, kMaxRows + 1>, 2>;

  // `product` is what is computed from the elements at offset0 of `desc` on.
  Tiles(PrimitiveInfo primitive_info, const MatmulDesc& desc, const MatmulDesc& product,
        const Tiling& tiling, Generators generators)
      : Primitive(std::move(primitive_info)),
        given_(desc),
        desc_(product),
        shape_(ShapeOf(product)),
        tiling_(tiling),
        pieces_(DivUp(shape_.m, kRowsPerTask)),
        generators_(std::move(generators)) {
    const int64_t products = std::min(shape_.m, kRowsPerTask) * tiling.columns * shape_.k;
    pieces_at_once_ = std::max<int64_t>(1, kFewestProducts / std::max<int64_t>(1, products));
    for (int64_t b = 0; b < shape_.batch && shape_.batch <= kMostPlaces; ++b)
      places_.push_back(PlaceOf(b));
  }

 private:
  // A product of the batch: elements before its matrices, and the number of its weights.
  struct Place {
    int64_t src, dst, weights;
  };

  Place PlaceOf(int64_t b) const {
    return {BatchOffset(desc_, desc_.src, b), BatchOffset(desc_, desc_.dst, b),
            WeightsOf(desc_, b)};
  }

  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    if (desc_.dst.ElementCount() == 0) return;
    auto* copies = reinterpret_cast<float*>(scratchpad);
    const int64_t copied = tiling_.copied();
    team.ParallelFor(shape_.weights_batch * copied, [&](int64_t i) {
      CopyPanel(Weights(args, i / copied), i % copied, copies + i * PanelElements());
    });
    const int64_t all = shape_.batch * tiling_.panels * pieces_;
    team.ParallelFor(DivUp(all, pieces_at_once_), [&](int64_t task) {
      const int64_t first = task * pieces_at_once_;
      for (int64_t i = first; i < std::min(all, first + pieces_at_once_); ++i)
        RunPiece(args, copies, i);
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

  // Some rows of a panel of one product.
  void RunPiece(const ExecuteArgs& args, const float* copies, int64_t piece) const {
    const int64_t row = piece % pieces_ * kRowsPerTask;
    const int64_t panel = piece / pieces_ % tiling_.panels, b = piece / pieces_ / tiling_.panels;
    const Place place = places_.empty() ? PlaceOf(b) : places_[b];
    const int64_t column = panel * tiling_.columns, end = std::min(shape_.m, row + kRowsPerTask);
    const int64_t src_row = StrideOf(desc_.src, 1), dst_row = StrideOf(desc_.dst, 1);
    StridedTileArgs tile;
    tile.weights = tiling_.copies
                       ? copies + (place.weights * tiling_.panels + panel) * PanelElements()
                       : Weights(args, place.weights) + column;
    tile.bias = given_.bias.IsZero()
                    ? nullptr
                    : args.Get<const float>(kArgBias) + given_.bias.offset0() + column;
    const auto& generators = generators_[tiling_.tail != 0 && panel == tiling_.panels - 1];
    const float* src = args.Get<const float>(kArgSrc) + given_.src.offset0() + place.src;
    float* dst = args.Get<float>(kArgDst) + given_.dst.offset0() + place.dst + column;
    for (int64_t m = row; m < end; m += tiling_.max_rows) {
      tile.src = src + m * src_row;
      tile.dst = dst + m * dst_row;
      generators[std::min(tiling_.max_rows, end - m)]->entry<StridedTile::Function>()(&tile);
      if (threading::Stopped()) return;
    }
  }

  const float* Weights(const ExecuteArgs& args, int64_t index) const {
    return args.Get<const float>(kArgWeights) + given_.weights.offset0() +
           WeightsOffset(desc_, index);
  }

  const MatmulDesc given_, desc_;
  const Shape shape_;
  const Tiling tiling_;
  const int64_t pieces_;       // of the rows of a product
  int64_t pieces_at_once_;     // of any panels and products, in a piece of work
  std::vector<Place> places_;  // of all products, or empty
  const Generators generators_;
};

StridedTileConfig ConfigOf(const MatmulDesc& desc, const Tiling& tiling, const PostOps& post_ops,
                           bool tail, int64_t rows) {
  constexpr int64_t kFloatBytes = sizeof(float);
  const int64_t columns = tail ? tiling.tail : tiling.columns;
  const VectorUnit& unit = tiling.unit;
  StridedTileConfig config{.epilogue = {.unit = unit}};
  config.k = ShapeOf(desc).k;
  config.src_row_bytes = StrideOf(desc.src, 1) * kFloatBytes;
  config.src_k_bytes = StrideOf(desc.src, 0) * kFloatBytes;
  config.weights_k_bytes =
      (tiling.copies ? tiling.columns : StrideOf(desc.weights, 1)) * kFloatBytes;
  EpilogueConfig& epilogue = config.epilogue;
  epilogue.blocks = static_cast<int>(DivUp(columns, unit.lanes()));
  epilogue.pixels = static_cast<int>(rows);
  epilogue.dst_block_bytes = unit.bytes();
  epilogue.dst_pixel_bytes = StrideOf(desc.dst, 1) * kFloatBytes;
  epilogue.bias = !desc.bias.IsZero();
  epilogue.tail_lanes = static_cast<int>(columns % unit.lanes());
  epilogue.packed_channels = true;
  epilogue.post_ops = post_ops;
  if (!tiling.copies) config.weights_tail = epilogue.tail_lanes;
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

absl::StatusOr<Tiles::Generators> GenerateTiles(const MatmulDesc& desc, const Tiling& tiling,
                                                const PostOps& post_ops, absl::string_view name,
                                                int64_t* code_bytes) {
  const Shape shape = ShapeOf(desc);
  Tiles::Generators generators;
  for (bool tail : {false, true}) {
    if (tail ? tiling.tail == 0 : shape.n < tiling.columns) continue;
    // Rows of the last tile of a task: tasks start at multiples of kRowsPerTask.
    const int64_t piece = std::min(shape.m, kRowsPerTask), last = shape.m % kRowsPerTask;
    for (int64_t rows : {std::min(piece, tiling.max_rows), piece % tiling.max_rows,
                         last % tiling.max_rows, std::min(last, tiling.max_rows)}) {
      auto& generator = generators[tail][rows];
      if (rows == 0 || generator != nullptr) continue;
      ABSL_ASSIGN_OR_RETURN(
          generator, jit::Compile<StridedTile>(name, ConfigOf(desc, tiling, post_ops, tail, rows)));
      *code_bytes += static_cast<int64_t>(generator->code_bytes());
    }
  }
  return generators;
}

}  // namespace

absl::StatusOr<MatmulDesc> ResolveTiles(const MatmulDesc& desc, const Attributes& attributes,
                                        const ImplementationFacts& facts) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias, desc.dst));
  ABSL_ASSIGN_OR_RETURN(const MatmulDesc resolved, ResolveReference(desc, attributes, facts));
  const MatmulDesc product = OneProduct(resolved);
  for (const MemoryDesc* md : {&resolved.src, &resolved.weights, &resolved.dst, &product.src,
                               &product.weights, &product.dst}) {
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
  const MatmulDesc product = OneProduct(desc);
  const Tiling tiling = TilingOf(product, attributes.post_ops, VectorUnit::Of(facts.isa));
  const Shape shape = ShapeOf(product);
  PrimitiveInfo info = InfoOf(desc, attributes, facts);
  const auto bytes = CheckedProduct(
      {shape.weights_batch, tiling.copied(), shape.k, tiling.columns, int64_t{sizeof(float)}});
  if (!bytes) return absl::UnimplementedError("the copied weights overflow a size");
  info.scratchpad_bytes = *bytes;
  ABSL_ASSIGN_OR_RETURN(
      Tiles::Generators generators,
      GenerateTiles(product, tiling, attributes.post_ops, facts.name, &info.code_bytes));
  return std::make_unique<Tiles>(std::move(info), desc, product, tiling, std::move(generators));
}

}  // namespace tilewire::matmul
