// SPDX-License-Identifier: Apache-2.0
//
// Products of u8 and s8 by tiles. A run packs the weights, copies rows of src where it has to, and
// then multiplies: a task is the rows of a piece times the columns of a tile.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/products/byte_sum.h"
#include "engine/kernels/tiles/matrix_tile.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/matmul/batches.h"
#include "engine/primitives/matmul/implementations.h"
#include "engine/primitives/matmul/integer_operands.h"
#include "engine/primitives/matmul/integer_plan.h"
#include "engine/threading/stop.h"

namespace tilewire::matmul {
namespace {

constexpr int64_t kRowsOfPiece = 192;  // whole tiles of 6 and of 32
constexpr int kOnes = 0;               // the generator of a row of ones: that of dst has rows

// Immutable.
class IntegerTiles final : public Primitive {
 public:
  using Generators = std::map<std::pair<bool, int>, std::unique_ptr<const jit::Generator>>;

  IntegerTiles(PrimitiveInfo primitive_info, const MatmulDesc& desc, const IntegerPlan& plan,
               float scale, Generators generators)
      : Primitive(std::move(primitive_info)),
        desc_(desc),
        plan_(plan),
        scale_(scale),
        scales_(plan.kind.columns(), scale),
        ones_(plan.k, 0),
        generators_(std::move(generators)) {
    std::fill_n(ones_.begin(), plan.shape.k, uint8_t{1});
  }

 private:
  // State that a task's calls share: nothing but on matrix tiles.
  class Calls {
   public:
    explicit Calls(bool is_matrix) {
      if (is_matrix) tiles_.emplace();
    }
    ~Calls() {
      if (tiles_) FinishMatrixTiles(&*tiles_);
    }
    Calls(const Calls&) = delete;

    void Call(const jit::Generator& generator, IntegerTileArgs* args) {
      args->tiles = tiles_ ? &*tiles_ : nullptr;
      generator.entry<IntegerTileFunction>()(args);
    }

   private:
    std::optional<MatrixTiles> tiles_;
  };

  // The memory and numbers of a run beside its arguments.
  struct Memory {
    uint8_t* bytes;
    const float* scales;                     // of the columns of a tile
    int32_t src_zero = 0, weights_zero = 0;  // of the bytes that tiles read
  };

  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    const Shape& shape = plan_.shape;
    const Memory memory = MemoryOf(args, scratchpad);
    team.ParallelFor(shape.weights_batch * plan_.groups, [&](int64_t i) {
      PackGroup(args, memory, i / plan_.groups, i % plan_.groups);
    });
    const int64_t pieces = DivUp(shape.m, kRowsOfPiece);
    if (plan_.copies_src || plan_.weights.has_zero()) {
      team.ParallelFor(plan_.src_batch * pieces, [&](int64_t i) {
        PrepareRows(args, memory, i / pieces, i % pieces * kRowsOfPiece);
      });
    }
    team.ParallelFor(shape.batch * plan_.groups * pieces, [&](int64_t task) {
      const int64_t row = task % pieces * kRowsOfPiece, i = task / pieces;
      RunPiece(args, memory, i / plan_.groups, i % plan_.groups, row);
    });
  }

  // With the ranges of this run.
  Memory MemoryOf(const ExecuteArgs& args, std::byte* scratchpad) const {
    Memory memory = {reinterpret_cast<uint8_t*>(scratchpad), scales_.data(), plan_.src.zero,
                     plan_.weights.zero};
    if (!plan_.src.has_range) return memory;
    const auto* src = First<const float>(args, kArgQuantizationRange);
    const auto* weights = First<const float>(args, kArgWeightsRange);
    memory.src_zero += static_cast<int32_t>(src[1]);
    memory.weights_zero += static_cast<int32_t>(weights[1]);
    auto* const scales = reinterpret_cast<float*>(memory.bytes + plan_.scales_at);
    std::fill_n(scales, plan_.kind.columns(), src[0] * weights[0] * scale_);
    memory.scales = scales;
    return memory;
  }

  // The weights of a group of columns, and what is added to these columns.
  void PackGroup(const ExecuteArgs& args, const Memory& memory, int64_t index,
                 int64_t group) const {
    const MemoryDesc& md = desc_.weights;
    const Shape& shape = plan_.shape;
    const ByteMatrix weights = {
        First<const uint8_t>(args, kArgWeights) + WeightsOffset(desc_, index),
        shape.k,
        shape.n,
        StrideOf(md, 1),
        StrideOf(md, 0),
        plan_.weights.flip};
    const int64_t column = group * plan_.kind.columns();
    uint8_t* to = memory.bytes + index * plan_.WeightsBytes() + column * plan_.k;
    PackQuads(weights, column, std::min(shape.n, column + plan_.kind.columns()),
              plan_.kind.unit.lanes(), plan_.k, to);
    if (!plan_.src.has_zero()) return;
    int32_t* sums = Columns(memory, index) + column;
    IntegerTileArgs tile = TileArgs(memory, ones_.data(), to);
    tile.dst = reinterpret_cast<std::byte*>(sums);
    Calls(plan_.kind.is_matrix).Call(*generators_.at({IsLast(group), kOnes}), &tile);
    const auto zero = static_cast<uint32_t>(memory.src_zero);
    const uint32_t both = static_cast<uint32_t>(shape.k) * zero * memory.weights_zero;
    for (int64_t i = 0; i < plan_.kind.columns(); ++i)
      sums[i] = static_cast<int32_t>(both - zero * static_cast<uint32_t>(sums[i]));
  }

  // Copies of rows of src, and what is added to the rows of dst.
  void PrepareRows(const ExecuteArgs& args, const Memory& memory, int64_t index,
                   int64_t row) const {
    const Shape& shape = plan_.shape;
    const int64_t end = std::min(shape.m, row + kRowsOfPiece);
    const MemoryDesc& md = desc_.src;
    const ByteMatrix src = {Given(args, index), shape.m,         shape.k,
                            StrideOf(md, 1),    StrideOf(md, 0), plan_.src.flip};
    for (; row < end && !threading::Stopped(); ++row) {
      const uint8_t* from = src.first + row * src.row_stride;
      if (plan_.copies_src) {
        uint8_t* to = memory.bytes + plan_.src_at + (index * shape.m + row) * plan_.k;
        CopyRow(src, row, plan_.k, to);
        from = to;
      }
      if (!plan_.weights.has_zero()) continue;
      const auto sum = static_cast<uint32_t>(SumOfBytes(from, shape.k, plan_.src_is_signed));
      Rows(memory, index)[row] = static_cast<int32_t>(-memory.weights_zero * sum);
    }
  }

  void RunPiece(const ExecuteArgs& args, const Memory& memory, int64_t b, int64_t group,
                int64_t row) const {
    const Shape& shape = plan_.shape;
    const int64_t column = group * plan_.kind.columns(), w = WeightsOf(desc_, b);
    const int64_t s = MatrixOf(desc_, desc_.src, b), end = std::min(shape.m, row + kRowsOfPiece);
    const RowsInMemory src = Source(args, memory, s);
    const int64_t dst_bytes = SizeOf(desc_.dst.data_type());
    const int64_t dst_row = StrideOf(desc_.dst, 1) * dst_bytes;
    std::byte* const dst =
        First<std::byte>(args, kArgDst) + (BatchOffset(desc_, desc_.dst, b) + column) * dst_bytes;
    IntegerTileArgs tile =
        TileArgs(memory, nullptr, memory.bytes + w * plan_.WeightsBytes() + column * plan_.k);
    if (plan_.src.has_zero()) tile.compensation = Columns(memory, w) + column;
    const auto whole = generators_.find({IsLast(group), plan_.max_rows});
    Calls calls(plan_.kind.is_matrix);
    for (; row < end && !threading::Stopped(); row += plan_.max_rows) {
      const int rows = static_cast<int>(std::min<int64_t>(plan_.max_rows, end - row));
      tile.src = reinterpret_cast<const std::byte*>(src.first + row * src.stride);
      if (plan_.weights.has_zero()) tile.pixel_compensation = Rows(memory, s) + row;
      tile.dst = dst + row * dst_row;
      calls.Call(rows == plan_.max_rows ? *whole->second : *generators_.at({IsLast(group), rows}),
                 &tile);
    }
  }

  IntegerTileArgs TileArgs(const Memory& memory, const uint8_t* src, const uint8_t* weights) const {
    IntegerTileArgs tile = {};
    tile.src = reinterpret_cast<const std::byte*>(src);
    tile.weights = reinterpret_cast<const std::byte*>(weights);
    tile.scales = memory.scales;
    tile.loops = ProductLoopArgs(plan_.k);
    return tile;
  }

  bool IsLast(int64_t group) const { return group == plan_.groups - 1; }
  const uint8_t* Given(const ExecuteArgs& args, int64_t index) const {
    return First<const uint8_t>(args, kArgSrc) + MatrixOffset(desc_.src, index);
  }
  // The rows of a matrix of src that tiles read.
  struct RowsInMemory {
    const uint8_t* first;
    int64_t stride;
  };
  RowsInMemory Source(const ExecuteArgs& args, const Memory& memory, int64_t index) const {
    if (!plan_.copies_src) return {Given(args, index), StrideOf(desc_.src, 1)};
    return {memory.bytes + plan_.src_at + index * plan_.shape.m * plan_.k, plan_.k};
  }
  int32_t* Columns(const Memory& memory, int64_t index) const {
    return reinterpret_cast<int32_t*>(memory.bytes + plan_.columns_at) +
           index * plan_.PaddedColumns();
  }
  int32_t* Rows(const Memory& memory, int64_t index) const {
    return reinterpret_cast<int32_t*>(memory.bytes + plan_.rows_at) + index * plan_.shape.m;
  }

  const MatmulDesc desc_;
  const IntegerPlan plan_;
  const float scale_;
  const std::vector<float> scales_;  // of the columns of a tile: the scale, without ranges
  std::vector<uint8_t> ones_;        // a row of src
  const Generators generators_;      // by (last group, rows)
};

// The tile for `rows` rows of dst.
IntegerTileConfig TileConfig(const MatmulDesc& desc, const Attributes& attributes,
                             const IntegerPlan& plan, bool last, int rows) {
  const int lanes = plan.kind.unit.lanes();
  const int64_t group = plan.kind.columns(), dst_bytes = SizeOf(desc.dst.data_type());
  const int64_t columns = last ? (plan.shape.n - 1) % group + 1 : group;
  IntegerTileConfig config{
      .epilogue = {.unit = plan.kind.unit,
                   .blocks = static_cast<int>(DivUp(columns, lanes)),
                   .pixels = rows,
                   .dst_pixel_bytes = StrideOf(desc.dst, 1) * dst_bytes,
                   .dst_block_bytes = lanes * dst_bytes,
                   .tail_lanes = static_cast<int>(columns % lanes),
                   .post_ops = attributes.post_ops,
                   .dst_type = desc.dst.data_type(),
                   .compensation = plan.src.has_zero(),
                   .pixel_compensation = plan.weights.has_zero(),
                   .keeps_integers = KeepsSums(desc, attributes),
                   .scales = !attributes.output_scales.IsDefault() || plan.src.has_range,
                   .packed_channels = true},
      .signed_src = plan.src_is_signed};
  const int64_t src_row = plan.copies_src ? plan.k : StrideOf(desc.src, 1);
  SetProductLoops(plan.kind, plan.k, src_row, &config);
  return config;
}

// The tile for a row of ones, whose products are the sums of columns.
IntegerTileConfig OnesConfig(const IntegerPlan& plan, IntegerTileConfig config) {
  const VectorUnit& unit = plan.kind.unit;
  config.epilogue = {.unit = unit,
                     .blocks = config.epilogue.blocks,
                     .pixels = 1,
                     .dst_block_bytes = unit.bytes(),
                     .keeps_integers = true};
  config.signed_src = false;
  SetProductLoops(plan.kind, plan.k, plan.k, &config);
  return config;
}

absl::StatusOr<IntegerTiles::Generators> GenerateIntegerTiles(const MatmulDesc& desc,
                                                              const Attributes& attributes,
                                                              const IntegerPlan& plan,
                                                              absl::string_view name) {
  IntegerTiles::Generators generators;
  const int64_t piece = std::min(plan.shape.m, kRowsOfPiece);
  const int64_t last_piece = (plan.shape.m - 1) % kRowsOfPiece + 1;
  const int most = plan.max_rows;
  const int64_t all_rows[] = {std::min<int64_t>(piece, most), piece % most, last_piece % most,
                              std::min<int64_t>(last_piece, most)};
  for (bool last : {false, true}) {
    if (!last && plan.groups == 1) continue;
    for (int64_t rows : all_rows) {
      if (rows == 0) continue;
      auto& generator = generators[{last, static_cast<int>(rows)}];
      if (generator != nullptr) continue;
      ABSL_ASSIGN_OR_RETURN(generator, GenerateProductTile(plan.kind, name,
                                                           TileConfig(desc, attributes, plan, last,
                                                                      static_cast<int>(rows))));
    }
    if (!plan.src.has_zero()) continue;
    ABSL_ASSIGN_OR_RETURN(
        (generators[{last, kOnes}]),
        GenerateProductTile(plan.kind, name,
                            OnesConfig(plan, TileConfig(desc, attributes, plan, last, 1))));
  }
  return generators;
}

// Every offset inside a tile is a 32-bit immediate.
absl::Status RequireNearRows(const MatmulDesc& desc, const IntegerPlan& plan) {
  constexpr int64_t kMaxOffset = std::numeric_limits<int32_t>::max() / 64;
  if (plan.k > kMaxOffset || StrideOf(desc.src, 1) > kMaxOffset ||
      StrideOf(desc.dst, 1) > kMaxOffset / 4) {
    return Unimplemented("strides over 31 bits");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MatmulDesc> ResolveIntegerTiles(const Request<MatmulDesc>& request) {
  const MatmulDesc& desc = request.desc;
  constexpr int64_t kFewestRows = 8, kFewestProducts = 32;
  if (!IsInteger(desc)) return Unimplemented("takes u8 and s8 only");
  ABSL_RETURN_IF_ERROR(RequireInteger(desc, request.attributes));
  ABSL_ASSIGN_OR_RETURN(MatmulDesc resolved, WithPlainTensors(desc));
  for (const MemoryDesc* md : {&resolved.src, &resolved.weights, &resolved.dst}) {
    if (!md->IsPlain()) return Unimplemented(md->ToString(), " has blocks");
  }
  const Shape shape = ShapeOf(resolved);
  if (resolved.dst.ElementCount() == 0 || shape.k == 0) return Unimplemented("nothing to compute");
  if (shape.n > 1 && StrideOf(resolved.dst, 0) != 1)
    return Unimplemented("elements of a row of dst do not follow each other");
  const IntegerPlan plan(resolved, request.attributes.post_ops, request.facts.isa);
  if (plan.kind.is_matrix && (shape.m < kFewestRows || shape.k < kFewestProducts))
    return Unimplemented("is for 8 rows of 32 products and more");
  if (!plan.scratchpad_bytes) return Unimplemented("the copies overflow a size");
  ABSL_RETURN_IF_ERROR(RequireNearRows(resolved, plan));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateIntegerTiles(const Request<MatmulDesc>& request) {
  const MatmulDesc& desc = request.desc;
  const IntegerPlan plan(desc, request.attributes.post_ops, request.facts.isa);
  PrimitiveInfo info = InfoOf(request);
  info.scratchpad_bytes = *plan.scratchpad_bytes;
  ABSL_ASSIGN_OR_RETURN(IntegerTiles::Generators generators,
                        GenerateIntegerTiles(desc, request.attributes, plan, request.facts.name));
  for (const auto& [key, generator] : generators) info.code_bytes += generator->code_bytes();
  return std::make_unique<IntegerTiles>(std::move(info), desc, plan,
                                        request.attributes.output_scales.scales[0],
                                        std::move(generators));
}

}  // namespace tilewire::matmul
