// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/tiles/tile_end_parts.h"

#include <cstddef>

#include "engine/kernels/products/integer_tile.h"
#include "engine/kernels/tiles/matrix_tiles.h"

namespace tilewire {
namespace {

constexpr int kSumsOfBlockBytes = kMatrixPixels * kMatrixLineBytes;
constexpr int kNumberOfPixelBytes = 4;

Xbyak::Address Member(Xbyak::CodeGenerator* g, const Xbyak::Reg64& of, size_t offset) {
  return g->qword[of + static_cast<int>(offset)];
}

}  // namespace

AccumulatorEpilogue::Registers TileEndParts::Registers() const {
  return {.dst = dst_,
          .bias = bias_,
          .spare = spare_,
          .scratch = {},
          .scales = scales_,
          .compensation = compensation_,
          .pixel_compensation = bias_};
}

void TileEndParts::Take(const Xbyak::Reg64& tiles) {
  Xbyak::Label due;
  Load(tiles);
  g_->mov(parts_, Member(g_, tiles, offsetof(MatrixTiles, parts)));
  g_->test(parts_, parts_);
  g_->jnz(due, Xbyak::CodeGenerator::T_NEAR);
  g_->lea(parts_, g_->ptr[g_->rip + none_]);
  g_->L(due);
}

void TileEndParts::Load(const Xbyak::Reg64& tiles) {
  g_->lea(sums_, Member(g_, tiles, offsetof(MatrixTiles, sums)));
  g_->mov(dst_, Member(g_, tiles, offsetof(MatrixTiles, dst)));
  g_->mov(bias_, Member(g_, tiles, offsetof(MatrixTiles, bias)));
  if (sums_kind_.integers) {
    g_->mov(scales_, Member(g_, tiles, offsetof(MatrixTiles, scales)));
    g_->mov(compensation_, Member(g_, tiles, offsetof(MatrixTiles, compensation)));
  } else {
    g_->mov(places_, Member(g_, tiles, offsetof(MatrixTiles, places)));
    g_->mov(first_dst_, dst_);
  }
}

void TileEndParts::CallPart(int part) {
  g_->lea(spare_, g_->ptr[parts_ + kEntryBytes * part]);
  g_->call(spare_);
}

void TileEndParts::Leave(const Xbyak::Reg64& tiles) {
  const auto put = [&](size_t offset, const Xbyak::Reg64& from) {
    g_->mov(Member(g_, tiles, offset), from);
  };
  g_->lea(spare_, g_->ptr[g_->rip + entries_]);
  put(offsetof(MatrixTiles, parts), spare_);
  g_->lea(spare_, g_->ptr[g_->rip + finish_]);
  put(offsetof(MatrixTiles, finish), spare_);
  LoadEpilogueArguments(g_, config_, Registers());
  put(offsetof(MatrixTiles, dst), dst_);
  put(offsetof(MatrixTiles, bias), bias_);
  if (sums_kind_.integers) {
    put(offsetof(MatrixTiles, scales), scales_);
    put(offsetof(MatrixTiles, compensation), compensation_);
  } else {
    g_->mov(places_, Member(g_, g_->rdi, offsetof(IntegerTileArgs, places)));
    put(offsetof(MatrixTiles, places), places_);
  }
}

void TileEndParts::Emit(const std::vector<std::vector<PixelRun>>& parts) {
  const int count = static_cast<int>(parts.size());
  EmitFinish(count);
  EmitNone(count);
  std::vector<Xbyak::Label> code(parts.size());
  g_->align(kEntryBytes);
  g_->L(entries_);
  for (Xbyak::Label& part : code) {
    g_->jmp(part, Xbyak::CodeGenerator::T_NEAR);
    g_->align(kEntryBytes);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    g_->L(code[i]);
    EmitPart(parts[i]);
  }
  for (auto& [pixels, ended] : ended_) {
    g_->align(16);
    g_->L(ended.code);
    EmitEpilogue(ended.epilogue.get());
    g_->ret();
  }
}

// The end of a tile after which none comes.
void TileEndParts::EmitFinish(int parts) {
  const Xbyak::Reg64 saved[] = {g_->rbx, g_->rbp, g_->r12, g_->r13, g_->r14, g_->r15};
  g_->align(16);
  g_->L(finish_);
  for (const Xbyak::Reg64& each : saved) g_->push(each);
  Load(g_->rdi);
  g_->lea(parts_, g_->ptr[g_->rip + entries_]);
  for (int part = 0; part < parts; ++part) CallPart(part);
  for (int i = 5; i >= 0; --i) g_->pop(saved[i]);
  g_->vzeroupper();
  g_->ret();
}

void TileEndParts::EmitNone(int parts) {
  g_->align(kEntryBytes);
  g_->L(none_);
  for (int i = 0; i < parts; ++i) {
    g_->ret();
    g_->align(kEntryBytes);
  }
}

void TileEndParts::EmitPart(const std::vector<PixelRun>& runs) {
  for (const PixelRun& run : runs) {
    if (sums_kind_.pixels == Pixels::kInPlaces) {
      for (int i = 0; i < run.count; ++i) EmitPlaced(run.first + i);
      continue;
    }
    Advance(sums_, (run.first - pixel_) * kMatrixLineBytes);
    if (config_.pixel_compensation) Advance(bias_, (run.first - pixel_) * kNumberOfPixelBytes);
    Advance(dst_, run.dst_bytes - dst_bytes_);
    pixel_ = run.first;
    dst_bytes_ = run.dst_bytes;
    g_->call(OfPixels(run.count).code);
  }
  g_->ret();
}

void TileEndParts::EmitPlaced(int pixel) {
  Xbyak::Label nowhere;
  Advance(sums_, (pixel - pixel_) * kMatrixLineBytes);
  pixel_ = pixel;
  g_->movsxd(dst_, g_->dword[places_ + kNumberOfPixelBytes * pixel]);
  g_->test(dst_, dst_);
  g_->js(nowhere, Xbyak::CodeGenerator::T_NEAR);
  g_->add(dst_, first_dst_);
  g_->call(OfPixels(1).code);
  g_->L(nowhere);
}

TileEndParts::Ended& TileEndParts::OfPixels(int pixels) {
  Ended& ended = ended_[pixels];
  if (ended.epilogue == nullptr) {
    EpilogueConfig config = config_;
    config.pixels = pixels;
    AccumulatorEpilogue::Registers registers = Registers();
    registers.scratch = config.FreeVectors();
    ended.epilogue = std::make_unique<AccumulatorEpilogue>(g_, config, registers);
  }
  return ended;
}

void TileEndParts::EmitEpilogue(AccumulatorEpilogue* epilogue) {
  epilogue->LoadSums({sums_, kSumsOfBlockBytes, kMatrixLineBytes});
  if (sums_kind_.integers) return epilogue->FinishIntegers();
  epilogue->AddBias();
  epilogue->ApplyPostOps(/*skip_sum=*/false);
  epilogue->ZeroTail();
  epilogue->Store();
}

void TileEndParts::Advance(const Xbyak::Reg64& pointer, int64_t bytes) {
  if (bytes != 0) g_->add(pointer, static_cast<int>(bytes));
}

void TileEndParts::EmitTables() {
  for (const auto& [pixels, ended] : ended_) ended.epilogue->EmitTables();
}

}  // namespace tilewire
