// SPDX-License-Identifier: Apache-2.0
//
// Functions of elements that lie in one order, without gaps, in all tensors, as generated code:
//
//   dst[i] = f(source 0 [i], source 1 [i], ...)
//
// A primitive derives a generator that emits f for a few vectors from DenseRunGenerator, which
// emits the loop over whole vectors with the loads and stores of each tensor's type (f32 in
// registers, vector_conversion.h). Run() takes any count of elements: those after the last whole
// vector are computed as a vector of their own, on the stack.
//
// Generators are used by one thread; once compiled, Run() is thread-safe.
#ifndef ENGINE_KERNELS_ELEMENTS_DENSE_RUN_H_
#define ENGINE_KERNELS_ELEMENTS_DENSE_RUN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/elements/vector_conversion.h"
#include "engine/memory/data_type.h"

namespace tilewire {

class DenseRunGenerator : public jit::Generator {
 public:
  static constexpr int64_t kElementsAtOnce = 16 * 1024;  // a piece of work for one thread

  // A pointer for each source, the first of `count` elements; `constants` is what EmitConstants()
  // finds at constants_. dst may be a source.
  void Run(absl::Span<const std::byte* const> srcs, std::byte* dst, int64_t count,
           const void* constants = nullptr) const;

 protected:
  struct Config {
    jit::VectorUnit unit;
    std::vector<DataType> srcs;
    std::optional<DataType> dst;  // none: EmitResults() writes to dst_ what the run came to
    bool reads_dst = false;       // f is also of the element that dst holds before
  };
  DenseRunGenerator(absl::string_view name, Config config);

  // Before the loop, in vector registers from kFree on, but for 9 to 11 where there is a dst.
  virtual void EmitConstants() {}
  // f of `vectors` <= kUnroll vectors, from Load() to Value(0), Value(1), ...
  virtual void EmitVectors(int vectors) = 0;
  virtual void EmitResults() {}  // after the loop, which runs once at least
  virtual void EmitTables() {}   // after the code

  static constexpr int kUnroll = 4;
  static constexpr int kFree = kUnroll;
  const jit::VectorUnit& unit() const { return config_.unit; }
  Xbyak::Xmm Vector(int i) const { return config_.unit.Vector(i); }
  Xbyak::Xmm Value(int v) const { return Vector(v); }
  // Vector `v` of a source, or of what dst holds, of those that are computed at once. Loads of one
  // source that follow each other read its address once.
  void Load(int src, int v, const Xbyak::Xmm& to);
  void LoadDst(int v, const Xbyak::Xmm& to);
  void Broadcast(const Xbyak::Xmm& to, float value);

  // rax and the opmask k1 are free, too.
  const Xbyak::Reg64 dst_ = rdx, constants_ = r10;

 private:
  struct Args {
    const std::byte* const* srcs;
    std::byte* dst;
    jit::LoopCount vectors;
    const void* constants;
  };

  void Emit() final;
  void EmitAdvance(int elements);
  bool HasOneSource() const { return config_.srcs.size() == 1; }
  Xbyak::RegExp At(const Xbyak::Reg64& base, DataType type, int v) const;

  const Xbyak::Reg64 srcs_ = rsi, src_ = r9, left_ = rcx;
  const Xbyak::Reg64 element_ = r8;  // with several sources: the first that is computed at once
  const Config config_;
  VectorConversion conversion_;
  int loaded_ = -1;  // the source that src_ points to
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ELEMENTS_DENSE_RUN_H_
