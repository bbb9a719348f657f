// SPDX-License-Identifier: Apache-2.0
//
// Generates what follows the products in one step of one sequence: from the sums of the gates to
// the next state, whole vectors of states at a time. The cells are those of rnn_cell.h.
#ifndef ENGINE_PRIMITIVES_RNN_CELL_GENERATOR_H_
#define ENGINE_PRIMITIVES_RNN_CELL_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/functions/rnn_cell.h"
#include "engine/jit/eltwise_emitter.h"
#include "engine/jit/generator.h"
#include "engine/jit/vector_unit.h"

namespace tilewire::rnn {

// Rows of `CellConfig::states` numbers each.
struct CellArgs {
  float* gates;           // the sums, gate after gate; overwritten
  float* state;           // h
  float* memory;          // c, of an lstm
  float* aside;           // r * h, written for a gru; the sums h Wi + b', read for an lbr_gru
  const float* peephole;  // its three rows
};

enum class CellPart : uint8_t {
  kWhole,
  kReset,  // of a gru: u stays in its gate, r * h goes aside
  kFinal   // of a gru: the rest, once the last gate has its sum
};

struct CellConfig {
  VectorUnit unit;
  functions::RnnCell cell;
  CellPart part = CellPart::kWhole;
  int64_t states = 0;                               // of a row, whole vectors
  std::vector<functions::RnnActivation> functions;  // f; f and g; f, g and h
  float clip = 0;
  bool couples_gates = false, peephole = false;
};

class CellGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const CellArgs*);
  CellGenerator(absl::string_view name, const CellConfig& config);

 private:
  void Emit() override;
  void EmitLstm();
  void EmitReset();
  void EmitFinal();
  void EmitLinearReset();
  void EmitVanilla();
  // v = f(v); of the sum of a gate, clipped.
  void Apply(int function, const Xbyak::Xmm& v);
  void ApplyToSum(int function, const Xbyak::Xmm& v);
  void OneMinus(const Xbyak::Xmm& to, const Xbyak::Xmm& v);
  // o becomes u * h + (1 - u) * o and is stored as the state.
  void StoreBetween(const Xbyak::Xmm& u, const Xbyak::Xmm& o);

  Xbyak::Address Gate(int gate);
  Xbyak::Address Peephole(int gate);
  Xbyak::Xmm Vector(int index) const { return config_.unit.Vector(index); }

  // Registers. Vectors 0 to 5 hold values, those after them are scratch.
  static constexpr int kScratch = 6;
  const Xbyak::Reg64 gates_ = rsi, state_ = rdx, memory_ = rcx, aside_ = r8, peephole_ = r9;
  const Xbyak::Reg64 at_ = r10, spare_ = r14;
  const CellConfig config_;
  std::vector<std::unique_ptr<jit::EltwiseEmitter>> emitters_;  // by function; then the clip
};

}  // namespace tilewire::rnn

#endif  // ENGINE_PRIMITIVES_RNN_CELL_GENERATOR_H_
