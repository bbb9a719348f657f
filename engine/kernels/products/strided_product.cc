// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/products/strided_product.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

#include "engine/base/cache_line.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/products/dot_tile.h"
#include "engine/threading/stop.h"

namespace tilewire {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);
constexpr int64_t kFloatsOfLine = 16;
constexpr int64_t kRowsOfPiece = 128;     // of dst
constexpr int64_t kColumnsOfPiece = 256;  // about so many, where weights are read in parts
// Parts of K, where a piece has few rows and where it has more: so many pages of memory, and a part
// of the second cache.
constexpr int64_t kPartOfFewRows = 32, kPartOfRows = 64;
constexpr int64_t kFewRows = 4;
// Where weights come from memory and rows are few: rows of weights that are read side by side, as
// many as the core follows, how far ahead of themselves, and the columns of a piece, which are
// pages of memory then.
constexpr int64_t kPartOfManyWeights = 8, kFewestOfManyWeights = int64_t{1} << 22;
constexpr int kManyWeightsAhead = 512;  // bytes
constexpr int64_t kPiecesOfManyWeights = 4;
constexpr int64_t kFewestColumnsOfMany = 2048, kMostColumnsOfMany = 8192;
constexpr int64_t kFewestForDots = 64;     // of K: fewer products would not pay for adding lanes
constexpr int64_t kMostRowsThatWait = 32;  // for weights from memory; more hide it
// Where dst is what takes time: the most products of an element, the fewest elements of dst, and
// the weights of a piece, half of the first cache.
constexpr int64_t kMostProductsOfMuch = 64, kFewestElementsOfMuch = int64_t{1} << 20;
// The least dst that goes past the caches: more than the last one may keep, or, where nothing is
// about to read it, than the second one does.
constexpr int64_t kFewestElementsPastCaches = int64_t{1} << 22;
constexpr int64_t kFewestElementsReadLate = int64_t{1} << 20;
constexpr int64_t kWeightsOfMuch = 4096;

// Vectors of columns in a tile: more where rows are too few for sums that hide the latency of
// additions.
int MostBlocks(const VectorUnit& unit, int64_t rows) {
  const bool many_registers = unit.registers() >= 32;
  if (rows == 1) return many_registers ? 8 : 6;
  if (rows == 2) return many_registers ? 6 : 4;
  return 3;
}

// Past the caches. `floats` fill whole lines.
void StreamRow(const float* from, int64_t floats, float* to) {
  for (int64_t i = 0; i < floats; i += 4) _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
}

}  // namespace

// Strides are compared whatever the sizes: a product must not be computed otherwise because it has
// one row or one column.
StridedProduct::Form StridedProduct::FormOf(const Shape& shape) {
  const bool weights_rows = shape.weights_n == 1;
  if (weights_rows) return Form::kRows;
  const bool dots = shape.weights_k == 1 && shape.src_k == 1 && shape.src_row != 1;
  return dots && shape.k >= kFewestForDots ? Form::kDots : Form::kCopies;
}

StridedProduct::StridedProduct(const VectorUnit& unit, const Shape& shape)
    : unit_(unit), shape_(shape), form_(FormOf(shape)) {
  const int most_blocks = form_ == Form::kDots ? 1 : MostBlocks(unit, shape.m);
  ChoosePieces(most_blocks);
  const int most_rows = unit.registers() >= 32 ? kMaxRows : 4;
  max_rows_ =
      form_ == Form::kDots
          ? DotTile::MaxRows(unit)
          : StridedTile::MaxRows(unit, shape.post_ops, static_cast<int>(columns_ / unit.lanes()),
                                 most_rows, form_ == Form::kRows && shape.n % unit.lanes() != 0);
}

void StridedProduct::ChoosePieces(int most_blocks) {
  const int64_t vectors = DivUp(shape_.n, unit_.lanes());
  panels_ = DivUp(vectors, most_blocks);
  const int64_t blocks = DivUp(vectors, std::max<int64_t>(1, panels_));
  columns_ = std::max<int64_t>(blocks, 1) * unit_.lanes();
  panels_ = DivUp(shape_.n, columns_);
  tail_ = shape_.n % columns_;
  pieces_of_rows_ = DivUp(shape_.m, kRowsOfPiece);
  panels_of_piece_ = 1;
  part_ = shape_.k;
  if (form_ == Form::kRows) ChooseParts();
  if (WritesMuch()) {
    panels_of_piece_ = std::max<int64_t>(1, kWeightsOfMuch / (shape_.k * columns_));
    while (panels_of_piece_ * columns_ % kFloatsOfLine != 0) ++panels_of_piece_;
    const int64_t fewest = shape_.read_late ? kFewestElementsReadLate : kFewestElementsPastCaches;
    streams_ = shape_.m * shape_.n >= fewest && shape_.post_ops.empty() &&
               shape_.n % kFloatsOfLine == 0 && shape_.dst_row % kFloatsOfLine == 0;
    copies_rows_ = streams_ && unit_.lanes() != kFloatsOfLine;
  }
  pieces_of_panels_ = DivUp(panels_, std::max<int64_t>(1, panels_of_piece_));
}

void StridedProduct::ChooseParts() {
  const bool has_few_rows = shape_.m <= kFewRows && !shape_.adds_parts;
  int64_t part = has_few_rows ? kPartOfFewRows : kPartOfRows, columns = kColumnsOfPiece;
  chain_ = std::max<int64_t>(1, shape_.k < 2 * part ? shape_.k : part);
  if (ReadsMuch()) {
    part = kPartOfManyWeights;
    columns = std::clamp(shape_.n / kPiecesOfManyWeights, kFewestColumnsOfMany, kMostColumnsOfMany);
  }
  if (shape_.k < 2 * part) return;
  part_ = part;
  const int64_t most = std::max<int64_t>(1, columns / columns_);
  panels_of_piece_ = DivUp(panels_, std::max<int64_t>(1, DivUp(panels_, most)));
}

bool StridedProduct::ReadsMuch() const {
  return form_ == Form::kRows && shape_.m <= kMostRowsThatWait &&
         shape_.n >= kFewestColumnsOfMany && shape_.k * shape_.n >= kFewestOfManyWeights;
}

bool StridedProduct::WritesMuch() const {
  return form_ == Form::kRows && part_ == shape_.k && shape_.k > 0 &&
         shape_.k <= kMostProductsOfMuch && shape_.m * shape_.n >= kFewestElementsOfMuch;
}

absl::StatusOr<std::unique_ptr<const StridedProduct>> StridedProduct::Create(absl::string_view name,
                                                                             const VectorUnit& unit,
                                                                             const Shape& shape) {
  std::unique_ptr<StridedProduct> product(new StridedProduct(unit, shape));
  ABSL_RETURN_IF_ERROR(product->Compile(name));
  return product;
}

absl::Status StridedProduct::Compile(absl::string_view name) {
  for (bool tail : {false, true}) {
    if (tail ? tail_ == 0 : shape_.n < columns_) continue;
    // Rows of the last tile of a piece, too: pieces begin at multiples of kRowsOfPiece.
    const int64_t piece = std::min(shape_.m, kRowsOfPiece), last = shape_.m % kRowsOfPiece;
    for (int64_t rows : {std::min(piece, max_rows_), piece % max_rows_, last % max_rows_,
                         std::min(last, max_rows_)}) {
      auto& tile = tiles_[tail][rows];
      if (rows == 0 || tile != nullptr) continue;
      ABSL_ASSIGN_OR_RETURN(tile, CompileTile(name, tail, rows, /*streams=*/false));
      code_bytes_ += static_cast<int64_t>(tile->code_bytes());
      if (!streams_ || copies_rows_) continue;
      auto& streaming = streaming_tiles_[tail][rows];
      ABSL_ASSIGN_OR_RETURN(streaming, CompileTile(name, tail, rows, /*streams=*/true));
      code_bytes_ += static_cast<int64_t>(streaming->code_bytes());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<const jit::Generator>> StridedProduct::CompileTile(
    absl::string_view name, bool tail, int64_t rows, bool streams) const {
  const int64_t columns = tail ? tail_ : columns_;
  const auto bytes = [](int64_t size, int64_t stride) {
    return size == 1 ? 0 : stride * kFloatBytes;
  };
  EpilogueConfig epilogue{.unit = unit_};
  epilogue.blocks = static_cast<int>(DivUp(columns, unit_.lanes()));
  epilogue.pixels = static_cast<int>(rows);
  epilogue.dst_block_bytes = unit_.bytes();
  epilogue.dst_pixel_bytes =
      bytes(shape_.m, copies_rows_ ? panels_of_piece_ * columns_ : shape_.dst_row);
  epilogue.bias = shape_.bias;
  epilogue.tail_lanes = static_cast<int>(columns % unit_.lanes());
  epilogue.packed_channels = true;
  epilogue.post_ops = shape_.post_ops;
  if (form_ == Form::kDots) {
    return jit::Compile<DotTile>(
        name, DotTileConfig{.k = shape_.k,
                            .src_row_bytes = bytes(shape_.m, shape_.src_row),
                            .weights_column_bytes = bytes(shape_.n, shape_.weights_n),
                            .fetches_ahead = shape_.m <= kMostRowsThatWait,
                            .epilogue = epilogue});
  }
  StridedTileConfig config{.epilogue = epilogue};
  config.streams = streams;
  config.k = part_ == shape_.k ? shape_.k : 0;
  config.adds_parts = shape_.adds_parts && config.k == 0;
  config.src_row_bytes = bytes(shape_.m, shape_.src_row);
  config.src_k_bytes = bytes(shape_.k, shape_.src_k);
  config.weights_k_bytes =
      form_ == Form::kCopies ? columns_ * kFloatBytes : bytes(shape_.k, shape_.weights_k);
  if (form_ == Form::kRows) config.weights_tail = epilogue.tail_lanes;
  if (ReadsMuch()) config.weights_ahead_bytes = kManyWeightsAhead;
  return jit::Compile<StridedTile>(name, config);
}

void StridedProduct::CopyPanel(const float* weights, int64_t panel, float* to) const {
  const int64_t column = panel * columns_, count = std::min(columns_, shape_.n - column);
  for (int64_t k = 0; k < shape_.k && !threading::Stopped(); ++k, to += columns_) {
    const float* from = weights + k * shape_.weights_k + column * shape_.weights_n;
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * shape_.weights_n];
    std::fill(to + count, to + columns_, 0.0f);
  }
}

int64_t StridedProduct::products_of_piece() const {
  return std::min(shape_.m, kRowsOfPiece) * std::min(shape_.n, panels_of_piece_ * columns_) *
         shape_.k;
}

int64_t StridedProduct::sums_elements() const {
  if (copies_rows_) return max_rows_ * panels_of_piece_ * columns_;
  if (part_ == shape_.k) return 0;
  return (HasOpenChains() ? 2 : 1) * totals_elements();
}

int64_t StridedProduct::totals_elements() const {
  return RoundUp(std::min(shape_.m, kRowsOfPiece), max_rows_) * panels_of_piece_ * columns_;
}

// The weights to be fetched: lines of neighbouring rows, from left to right.
struct StridedProduct::Window {
  const float* row = nullptr;
  int64_t rows = 0, columns = 0;
  int64_t column = 0;  // reached in the first row
};

void StridedProduct::Fetch(Window* window, int64_t lines) const {
  for (; lines > 0 && window->rows > 0; --lines) {
    _mm_prefetch(reinterpret_cast<const char*>(window->row + window->column), _MM_HINT_T1);
    window->column += kFloatsOfLine;
    if (window->column < window->columns) continue;
    window->column = 0;
    window->row += shape_.weights_k;
    --window->rows;
  }
}

void StridedProduct::RunPiece(int64_t piece, const Operands& operands, float* sums) const {
  if (WritesMuch()) return RunRows(piece, operands, sums);
  int64_t begin = 0;
  do {
    RunPart(begin, piece, operands, sums);
    begin += part_;
  } while (begin < shape_.k && !threading::Stopped());
}

// All products of a piece, the panels of a few rows one after the other.
void StridedProduct::RunRows(int64_t piece, const Operands& operands, float* sums) const {
  const int64_t row = piece % pieces_of_rows_ * kRowsOfPiece;
  const int64_t end = std::min(shape_.m, row + kRowsOfPiece);
  const int64_t first_panel = piece / pieces_of_rows_ * panels_of_piece_;
  const int64_t end_panel = std::min(first_panel + panels_of_piece_, panels_);
  const int64_t first = first_panel * columns_;
  const int64_t columns = std::min(end_panel * columns_, shape_.n) - first;
  const bool streams = streams_ && !copies_rows_ && BeginsLine(operands.dst);
  const Tiles& tiles = streams ? streaming_tiles_ : tiles_;
  StridedTileArgs tile;
  for (int64_t m = row; m < end && !threading::Stopped(); m += max_rows_) {
    const int64_t rows = std::min(max_rows_, end - m);
    float* const dst = operands.dst + m * shape_.dst_row + first;
    tile.src = operands.src + m * shape_.src_row;
    for (int64_t panel = first_panel; panel < end_panel; ++panel) {
      const int64_t at = panel * columns_;
      tile.weights = operands.weights + at;
      tile.bias = operands.bias == nullptr ? nullptr : operands.bias + at;
      tile.dst = (copies_rows_ ? sums : dst) + at - first;
      const bool has_tail = tail_ != 0 && panel == panels_ - 1;
      tiles[has_tail][rows]->entry<StridedTile::Function>()(&tile);
    }
    if (copies_rows_) CopyRows(sums, rows, columns, dst);
  }
  if (streams_) _mm_sfence();  // before other threads are told that the piece has ended
}

void StridedProduct::CopyRows(const float* sums, int64_t rows, int64_t columns, float* dst) const {
  for (int64_t r = 0; r < rows; ++r) {
    const float* const from = sums + r * panels_of_piece_ * columns_;
    float* const to = dst + r * shape_.dst_row;
    if (BeginsLine(to)) {
      StreamRow(from, columns, to);
    } else {
      std::memcpy(to, from, columns * kFloatBytes);
    }
  }
}

// Where the sums of the part of K from `begin` on come from, and where they go. Chains that further
// parts continue follow the totals of the piece.
void StridedProduct::SetSums(int64_t begin, float* sums, StridedTileArgs* tile) const {
  const int64_t next = begin + part_;
  tile->sums_before = begin == 0 ? nullptr : sums;
  tile->sums_after = next >= shape_.k ? nullptr : sums;
  if (!HasOpenChains()) return;
  float* const chain = sums + totals_elements();
  tile->chain_before = begin % chain_ == 0 ? nullptr : chain;
  const bool ends = next % chain_ == 0 || next >= shape_.k;
  if (!ends) tile->sums_after = chain;
  if (!ends || begin < chain_) tile->sums_before = nullptr;
}

// The products of K from `begin` on.
void StridedProduct::RunPart(int64_t begin, int64_t piece, const Operands& operands,
                             float* sums) const {
  const int64_t row = piece % pieces_of_rows_ * kRowsOfPiece;
  const int64_t end = std::min(shape_.m, row + kRowsOfPiece);
  const int64_t first_panel = piece / pieces_of_rows_ * panels_of_piece_;
  const int64_t panels = std::min(panels_of_piece_, panels_ - first_panel);
  const int64_t next = begin + part_, column = first_panel * columns_;
  Window ahead{operands.weights + next * shape_.weights_k + column,
               std::min(part_, shape_.k - next), std::min(panels * columns_, shape_.n - column)};
  const int64_t lines =
      ReadsMuch() ? 0 : std::max<int64_t>(0, ahead.rows) * DivUp(ahead.columns, kFloatsOfLine);
  const int64_t share = DivUp(lines, panels * DivUp(end - row, max_rows_));
  StridedTileArgs tile;
  tile.k = std::min(part_, shape_.k - begin);
  for (int64_t panel = first_panel; panel < first_panel + panels; ++panel) {
    const int64_t at = panel * columns_;
    const auto& tiles = tiles_[tail_ != 0 && panel == panels_ - 1];
    tile.weights = form_ == Form::kCopies
                       ? operands.copies + panel * panel_elements()
                       : operands.weights + begin * shape_.weights_k + at * shape_.weights_n;
    tile.bias = operands.bias == nullptr ? nullptr : operands.bias + at;
    for (int64_t m = row; m < end; m += max_rows_) {
      Fetch(&ahead, share);
      tile.src = operands.src + m * shape_.src_row + begin * shape_.src_k;
      tile.dst = operands.dst + m * shape_.dst_row + at;
      SetSums(begin, sums, &tile);
      if (sums != nullptr) sums += max_rows_ * columns_;
      tiles[std::min(max_rows_, end - m)]->entry<StridedTile::Function>()(&tile);
      if (threading::Stopped()) return;
    }
  }
}

}  // namespace tilewire
