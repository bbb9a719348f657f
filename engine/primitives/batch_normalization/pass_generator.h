// SPDX-License-Identifier: Apache-2.0
//
// Generated code for a piece of a block of channels (pixel_blocks.h). With d = x - line 0:
//
//   kStatistics     to = mean of x, sum of x - that mean, sum of its squares
//   kNormalization  to = line 1 d + line 2
//   kGradientSums   to = sum of dy, sum of dy d
//   kGradient       to = line 1 dy + line 2 d + line 3
//   kScaling        to = line 1 dy
//
// With `addend` the elements at dy are added in kNormalization, before relu, and kGradientSums
// writes the dy that it sums to `masked`. With `relu` kNormalization applies it and writes a bit
// for each element that it let through, as the workspace has them (batch_normalization.h); the
// passes of gradients read these bits, and take 0 for the dy of other elements.
//
// A line is a number for each channel of the block, and so is a sum: lines, means and sums follow
// each other. Sums are f32, of up to four pixels side by side; their order depends on the number of
// pixels alone. What pads a block stays 0 where its lines are 0.
//
// Used by one thread while generating; the code by any number of them.
#ifndef ENGINE_PRIMITIVES_BATCH_NORMALIZATION_PASS_GENERATOR_H_
#define ENGINE_PRIMITIVES_BATCH_NORMALIZATION_PASS_GENERATOR_H_

#include <cstdint>
#include <limits>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/batch_normalization/implementations.h"
#include "engine/primitives/batch_normalization/pixel_blocks.h"

namespace tilewire::batch_normalization {

enum class Pass { kStatistics, kNormalization, kGradientSums, kGradient, kScaling };

constexpr int64_t kStatisticsLines = 3, kNormalizationLines = 3;
constexpr int64_t kGradientSumsLines = 2, kGradientLines = 4;

struct PassOptions {
  bool relu = false, addend = false;
  float limit = std::numeric_limits<float>::infinity();  // of relu
  bool streams = false;  // what is written, from whole lines on, goes past the caches
};

struct PassArgs {
  const float *x = nullptr, *dy = nullptr;  // of the piece; the passes above say which they read
  float *to = nullptr, *masked = nullptr;
  uint8_t* bits = nullptr;       // of the first pixel
  const float* lines = nullptr;  // of the block
  float over_pixels = 1;         // 1 / pixels
  jit::LoopCount pixels;
};

class PassGenerator final : public jit::Generator {
 public:
  PassGenerator(absl::string_view name, Pass pass, const VectorUnit& unit,
                const PixelBlocks& blocks, const PassOptions& options);

  void Run(const PassArgs& args) const { entry<void (*)(const PassArgs*)>()(&args); }

 private:
  static constexpr int kSlots = 4;  // vectors of pixels side by side

  // A vector of a pixel, and the registers that are its own.
  struct Slot {
    int index, pixel, vector;
  };

  void Emit() override;
  void EmitStatistics();
  void EmitGradientSums();
  void EmitElements();
  void EmitElement(const Slot& slot);
  void EmitRelu(const Slot& slot);
  void EmitConstants();  // after the code
  void LoadConstants();

  // dy where relu let it through, for kGradientSums and the elements of gradients.
  void LoadGradient(const Slot& slot, const Xbyak::Xmm& dy);
  // Where the bits of a vector are; those of 16 channels are two bytes.
  Xbyak::Address BitsAt(const Slot& slot) const;
  bool HasWholeWords() const { return unit_.lanes() == kChannelsOfBits; }

  // Calls body(slot) for every vector of the piece, the pointers being those of the arguments.
  template <typename Body>
  void ForEachVector(Body body);
  void Advance(int pixels);
  void LoadLine(int line);
  // The sums of all slots, in those of the first pixel.
  void AddSlots(int first);
  void StoreSums(int first, int line);

  bool ReadsSource() const { return pass_ != Pass::kScaling; }
  bool IsOfGradient() const { return pass_ >= Pass::kGradientSums; }
  bool ReadsGradient() const { return IsOfGradient() || Adds(); }
  bool Adds() const { return options_.addend && pass_ == Pass::kNormalization; }
  bool WritesMasked() const { return options_.addend && pass_ == Pass::kGradientSums; }
  bool HasBits() const { return options_.relu && pass_ != Pass::kStatistics; }
  bool WritesElements() const { return pass_ != Pass::kStatistics && pass_ != Pass::kGradientSums; }
  Xbyak::Address At(const Xbyak::Reg64& base, const Slot& slot) const;
  Xbyak::Xmm Sum(const Slot& slot) const { return Vector(slot.index); }
  Xbyak::Xmm MoreSum(const Slot& slot) const { return Vector(kSlots + slot.index); }
  Xbyak::Xmm Line(int line, int vector) const { return Vector(8 + 2 * line + vector); }
  Xbyak::Xmm Vector(int index) const { return unit_.Vector(index); }

  // Registers. Vectors 0 to 7 are sums or elements, 8 to 15 lines; without so many lines 12 to 15
  // are elements. With relu four of them hold constants and what is masked:
  Xbyak::Xmm Zero() const { return Vector(14); }   // of kNormalization,
  Xbyak::Xmm Limit() const { return Vector(15); }  // likewise
  Xbyak::Xmm Channels() const { return Vector(pass_ == Pass::kGradientSums ? 14 : 6); }
  Xbyak::Xmm Mask() const { return Vector(pass_ == Pass::kGradientSums ? 15 : 7); }
  const Xbyak::Reg64 args_ = rdi, x_ = rsi, dy_ = rdx, to_ = rcx, lines_ = r8, left_ = r9;
  const Xbyak::Reg64 bits_ = r10, masked_ = r11, spare_ = rax;
  const Pass pass_;
  const VectorUnit unit_;
  const PassOptions options_;
  Xbyak::Label channels_at_;
  const int vectors_;  // of a pixel: 1 or 2
  const int64_t pixel_bytes_, line_bytes_;
};

// The vectors that a block is one or two of.
VectorUnit UnitOf(cpu::Isa isa, const PixelBlocks& blocks);

// Whether a tensor is written past the caches: it is large, and its pixels are aligned.
bool Streams(const MemoryDesc& md, cpu::Isa isa, const PixelBlocks& blocks);

absl::StatusOr<std::unique_ptr<const PassGenerator>> CompilePass(absl::string_view name, Pass pass,
                                                                 cpu::Isa isa,
                                                                 const PixelBlocks& blocks,
                                                                 const PassOptions& options = {});

}  // namespace tilewire::batch_normalization

#endif  // ENGINE_PRIMITIVES_BATCH_NORMALIZATION_PASS_GENERATOR_H_
