// SPDX-License-Identifier: Apache-2.0
//
// Generates the sums of a gradient of src1 (binary.h): dy times the derivative by src1, over what
// is broadcast. The same code may write the gradient of src0, dx, so that memory is read once. What
// lies innermost in memory is either summed or kept:
//
//   runs     a result is the sum of a run of elements, over the loops around it: the lanes of four
//            vectors, and single elements, have sums of their own, which are added up at the end
//   columns  neighbouring results, a lane each, have the sums over the loops around them
//
// Sums and their terms are in double, and rounded once; their order depends on the loops alone. So
// are products for dx: f32 products have the same bits.
//
// Used by one thread while generating; the code by any number of them.
#ifndef ENGINE_PRIMITIVES_BINARY_SUM_GENERATOR_H_
#define ENGINE_PRIMITIVES_BINARY_SUM_GENERATOR_H_

#include <array>
#include <cstdint>
#include <vector>

#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/moves/strided_loops.h"
#include "engine/primitives/binary/binary.h"

namespace tilewire::binary {

// The strides of a loop; those of kTo are of results.
enum SumTensor { kDy, kX, kY, kTo, kDx };
constexpr int kSumTensors = 5;

// Whether the code can write dx, too: the registers suffice, and it divides nothing in double.
constexpr bool CanWriteFirst(BinaryAlgorithm algorithm) {
  return algorithm == BinaryAlgorithm::kAdd || algorithm == BinaryAlgorithm::kSub ||
         algorithm == BinaryAlgorithm::kMul || algorithm == BinaryAlgorithm::kPRelu;
}
// The sources that sums depend on, and dx with `writes_first`.
constexpr bool SumReadsFirst(BinaryAlgorithm algorithm) {
  return algorithm != BinaryAlgorithm::kAdd && algorithm != BinaryAlgorithm::kSub;
}
constexpr bool SumReadsSecond(BinaryAlgorithm algorithm, bool writes_first) {
  return SumReadsFirst(algorithm) && (writes_first || !CanWriteFirst(algorithm));
}

// The code moves the pointers; those of tensors that it does not use may be anything.
struct SumArgs {
  const float *dy, *x, *y;
  float* dx;
  void* to;                  // float, or double for parts of sums
  jit::LoopCount results;    // runs: turns of `results`; columns: of `inner`
  jit::LoopCount outermost;  // turns of the outermost loop that is summed
};

struct SumConfig {
  jit::VectorUnit unit;
  BinaryAlgorithm algorithm = BinaryAlgorithm::kAdd;
  bool of_runs = false;
  bool writes_first = false;   // dx
  bool is_dense = false;       // steps of `inner` are 1 in all tensors but y and results of runs
  bool of_parts = false;       // results are double
  StridedLoop results, inner;  // `results` of runs
  std::vector<StridedLoop> summed;  // around `inner`, outermost first; of columns one at least

  static constexpr size_t kMostLoops = 5;  // in `summed`
};

class SumGenerator final : public jit::Generator {
 public:
  using Function = void (*)(SumArgs*);
  SumGenerator(absl::string_view name, const SumConfig& config);

 private:
  static constexpr int kUnroll = 4;
  using Offsets = std::array<int64_t, kSumTensors>;  // in elements

  void Emit() override;
  void EmitRuns();
  void EmitColumns();
  // The vectors, or with `single` one element, of neighbouring columns.
  void EmitColumnVectors(int vectors, bool single);
  // body() within the loops of `summed` from `level` on. Both return how far the pointers moved.
  template <typename Body>
  Offsets EmitLoops(size_t level, const Body& body);
  Offsets EmitRun();
  // Adds the term of the elements `vector` vectors after the pointers to register `sum`.
  void EmitTerm(const Xbyak::Xmm& sum, int vector, const Xbyak::Xmm& y, bool single);
  void AddTerm(const Xbyak::Xmm& sum, const Xbyak::Xmm& y, bool single);  // of loaded dy and x
  // Stores the element of dx, for which y is that of src1; dy is overwritten.
  void EmitFirst(const Xbyak::Xmm& dy, const Xbyak::Xmm& y, int vector, bool single);
  void AddProduct(const Xbyak::Xmm& sum, const Xbyak::Xmm& slope, const Xbyak::Xmm& dy,
                  bool single);
  void Compare(const Xbyak::Xmm& a, const Xbyak::Xmm& b, int predicate);
  // The same where the comparison before is true, too.
  void CompareToo(const Xbyak::Xmm& a, const Xbyak::Xmm& b, int predicate);
  void StoreFloats(const Xbyak::RegExp& to, const Xbyak::Xmm& doubles, bool single);
  void LoadDoubles(const Xbyak::Xmm& to, const Xbyak::RegExp& from, bool single);
  void LoadPointers();
  void ZeroSums(int vectors);
  void AddLanes();
  void StoreResult(const Xbyak::Xmm& sum, int vector, bool single);
  void MovePointers(const Offsets& steps);
  void MoveArguments(const StridedLoop& loop, int turns);
  void AddTo(const Xbyak::Operand& pointer, int64_t bytes);
  bool reads_first() const { return SumReadsFirst(config_.algorithm); }
  bool reads_second() const { return SumReadsSecond(config_.algorithm, config_.writes_first); }
  int lanes() const { return config_.unit.lanes() / 2; }
  int result_bytes() const { return config_.of_parts ? 8 : 4; }
  Xbyak::Xmm Vector(int index, bool single) const {
    return single ? Xbyak::Xmm(index) : config_.unit.Vector(index);
  }

  // Registers. Vectors 0 to 3 are sums, 4 to 7 hold y.
  static constexpr int kY0 = 4, kFirst = 8, kGradient = 9, kSlope = 10, kMask = 11;
  static constexpr int kZero = 12, kHalf = 13, kOne = 14, kSingles = 15;
  const Xbyak::Reg64 args_ = rdi, dy_ = rsi, x_ = rdx, dx_ = r12, left_ = rcx, of_run_ = r8;
  const Xbyak::Reg64 spare_ = rax;
  const std::array<Xbyak::Reg64, SumConfig::kMostLoops> turns_ = {r9, r10, r11, rbx, rbp};
  const Xbyak::Opmask mask_ = k1;

  const SumConfig config_;
};

}  // namespace tilewire::binary

#endif  // ENGINE_PRIMITIVES_BINARY_SUM_GENERATOR_H_
