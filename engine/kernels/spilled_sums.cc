// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/spilled_sums.h"

#include <algorithm>

#include "engine/base/checked_math.h"

namespace tilewire {

// In equal parts where that is possible.
int64_t SpilledSums::Finish(int pixels) {
  const VectorUnit& unit = config_.unit;
  const int scratch = AccumulatorEpilogue::IntegerScratchCount(config_.post_ops);
  const int most = std::max(1, (unit.registers() - scratch) / config_.blocks);
  const int chunk = DivUp(pixels, DivUp(pixels, most));
  const int chunks = pixels / chunk, rest = pixels % chunk;
  const int64_t bytes = chunk * config_.dst_pixel_bytes;
  Xbyak::Label loop;
  if (chunks > 1) g_->mov(registers_.chunks_left, chunks);
  g_->L(loop);
  FinishChunk(chunk);
  if (chunks == 1 && rest == 0) return 0;
  Advance(registers_.sums, chunk * pixel_bytes_);
  Advance(registers_.epilogue.dst, bytes);
  if (chunks > 1) {
    g_->dec(registers_.chunks_left);
    g_->jnz(loop, Xbyak::CodeGenerator::T_NEAR);
  }
  if (rest > 0) FinishChunk(rest);
  return chunks * bytes;
}

void SpilledSums::FinishChunk(int pixels) {
  std::unique_ptr<AccumulatorEpilogue>& epilogue = epilogues_[pixels];
  if (epilogue == nullptr) {
    EpilogueConfig config = config_;
    config.pixels = pixels;
    AccumulatorEpilogue::Registers registers = registers_.epilogue;
    registers.scratch = config.FreeVectors();
    epilogue = std::make_unique<AccumulatorEpilogue>(g_, config, registers);
  }
  epilogue->LoadSums({registers_.sums, block_bytes_, pixel_bytes_});
  epilogue->AddBias();
  epilogue->ApplyPostOps(/*skip_sum=*/false);
  epilogue->ZeroTail();
  epilogue->Store();
}

void SpilledSums::Advance(const Xbyak::Reg64& pointer, int64_t bytes) {
  if (bytes != 0) g_->add(pointer, static_cast<int>(bytes));
}

void SpilledSums::EmitTables() {
  for (const auto& [pixels, epilogue] : epilogues_) epilogue->EmitTables();
}

}  // namespace tilewire
