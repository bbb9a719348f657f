// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/ended_parts.h"

namespace tilewire {

void EndedParts::Emit(const std::vector<std::vector<PixelRun>>& parts) {
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
    ended.epilogue->LoadSums({registers_.sums, block_bytes_, pixel_bytes_});
    ended.epilogue->FinishIntegers();
    g_->ret();
  }
}

void EndedParts::EmitNone(Xbyak::CodeGenerator* generator, Xbyak::Label* entries, int parts) {
  generator->align(kEntryBytes);
  generator->L(*entries);
  for (int i = 0; i < parts; ++i) {
    generator->ret();
    generator->align(kEntryBytes);
  }
}

void EndedParts::EmitPart(const std::vector<PixelRun>& runs) {
  for (const PixelRun& run : runs) {
    Advance(registers_.sums, (run.first - pixel_) * pixel_bytes_);
    if (config_.pixel_compensation)
      Advance(registers_.epilogue.pixel_compensation, (run.first - pixel_) * 4);
    Advance(registers_.epilogue.dst, run.dst_bytes - dst_);
    pixel_ = run.first;
    dst_ = run.dst_bytes;
    g_->call(OfPixels(run.count).code);
  }
  g_->ret();
}

EndedParts::Ended& EndedParts::OfPixels(int pixels) {
  Ended& ended = ended_[pixels];
  if (ended.epilogue == nullptr) {
    EpilogueConfig config = config_;
    config.pixels = pixels;
    AccumulatorEpilogue::Registers registers = registers_.epilogue;
    registers.scratch = config.FreeVectors();
    ended.epilogue = std::make_unique<AccumulatorEpilogue>(g_, config, registers);
  }
  return ended;
}

void EndedParts::Advance(const Xbyak::Reg64& pointer, int64_t bytes) {
  if (bytes != 0) g_->add(pointer, static_cast<int>(bytes));
}

void EndedParts::EmitTables() {
  for (const auto& [pixels, ended] : ended_) ended.epilogue->EmitTables();
}

}  // namespace tilewire
