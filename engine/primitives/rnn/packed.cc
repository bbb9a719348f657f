// SPDX-License-Identifier: Apache-2.0
//
// Steps are taken in blocks. For a block, the inputs of all its steps and sequences are multiplied
// by weights_layer into the rows of gates, one for each step and sequence. Then, step by step, the
// states are multiplied by weights_iter and added to the rows of the step, and the cell computes
// the next states. A gru multiplies twice in a step: the last gate sees r * h.
//
// Rows of states are whole vectors, so that nothing has a tail. What the padding holds is never
// read by a product: the weights have as many inputs as there are states.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/products/packed_product.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/rnn/cell_generator.h"
#include "engine/primitives/rnn/implementations.h"
#include "engine/threading/stop.h"

namespace tilewire::rnn {
namespace {

constexpr int64_t kRowsPerBlock = 256;      // of gates
constexpr int64_t kSequencesPerPiece = 24;  // a multiple of the rows of any tile

// The part that does not depend on the direction.
struct Plan {
  Plan(const RnnDesc& desc, const VectorUnit& unit)
      : desc(desc),
        sizes(desc),
        padded(RoundUp(sizes.states, unit.lanes())),
        width(sizes.gates * padded),
        block(std::clamp<int64_t>(kRowsPerBlock / std::max<int64_t>(1, sizes.sequences), 1,
                                  std::max<int64_t>(1, sizes.steps))),
        piece(std::min(kSequencesPerPiece, sizes.sequences)),
        is_one_matrix(sizes.sequences == 1 || sizes.steps == 1 ||
                      desc.src_layer.stride(0) == sizes.sequences * desc.src_layer.stride(1)) {}

  int64_t RowsOfStates() const { return sizes.directions * sizes.sequences; }
  int64_t RowsOfGates() const { return RowsOfStates() * block; }

  const RnnDesc desc;
  const RnnSizes sizes;
  const int64_t padded;      // states, in whole vectors
  const int64_t width;       // of a row of gates
  const int64_t block;       // steps
  const int64_t piece;       // sequences that one thread computes
  const bool is_one_matrix;  // the rows of src_layer are one step apart, those of all steps
};

struct Code {
  std::unique_ptr<const PackedProduct> layer, iter, last_gate;  // the last one of grus
  std::unique_ptr<const CellGenerator> cell, reset;             // the last one of a gru
};

// One for each direction: activations may differ.
using Codes = std::vector<Code>;

// Where one execution works.
struct Work {
  const ExecuteArgs& args;
  float *gates, *states, *memories, *asides;
};

// Immutable.
class Packed final : public Primitive {
 public:
  Packed(PrimitiveInfo primitive_info, const Plan& plan, Codes codes)
      : Primitive(std::move(primitive_info)), plan_(plan), codes_(std::move(codes)) {}

  static int64_t ScratchpadBytes(const Plan& plan) {
    return (plan.RowsOfGates() * plan.width + 3 * plan.RowsOfStates() * plan.padded) *
           static_cast<int64_t>(sizeof(float));
  }

 private:
  absl::Status CheckElements(const ExecuteArgs& args, const threading::Team&) const override {
    return CheckLengths(plan_.desc, args);
  }

  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    const int64_t states = plan_.RowsOfStates() * plan_.padded;
    auto* gates = reinterpret_cast<float*>(scratchpad);
    float* rows = gates + plan_.RowsOfGates() * plan_.width;
    const Work work = {args, gates, rows, rows + states, rows + 2 * states};
    const bool adds = plan_.desc.direction == RnnDirection::kBidirectionalSum;
    const int directions = plan_.sizes.directions;
    const int64_t pieces = DivUp(plan_.sizes.sequences, plan_.piece);
    const int64_t groups = codes_[0].layer->groups();
    team.ParallelFor(pieces, [&](int64_t piece) { Begin(work, piece); });
    for (int64_t step = 0; step < plan_.sizes.steps; step += plan_.block) {
      team.ParallelFor(directions * groups, [&](int64_t i) {
        MultiplyInputs(work, static_cast<int>(i / groups), step, i % groups);
      });
      // Directions that are added to each other must not be at once.
      team.ParallelFor(adds ? pieces : directions * pieces, [&](int64_t i) {
        for (int d = 0; d < directions; ++d) {
          if (adds || d == i / pieces) RunBlock(work, d, step, i % pieces);
        }
      });
    }
    team.ParallelFor(pieces, [&](int64_t piece) { Finish(work, piece); });
  }

  template <typename Visit>  // visit(d, n) for all sequences of a piece
  void ForEachSequence(int64_t piece, Visit visit) const {
    const int64_t first = piece * plan_.piece;
    const int64_t last = std::min(first + plan_.piece, plan_.sizes.sequences);
    for (int d = 0; d < plan_.sizes.directions; ++d) {
      for (int64_t n = first; n < last; ++n) visit(d, n);
    }
  }

  // The row of a direction and sequence.
  float* RowOf(float* rows, int64_t d, int64_t n) const {
    return rows + (d * plan_.sizes.sequences + n) * plan_.padded;
  }

  void Begin(const Work& work, int64_t piece) const {
    ForEachSequence(piece, [&](int d, int64_t n) {
      float *state = RowOf(work.states, d, n), *memory = RowOf(work.memories, d, n);
      std::fill_n(state, plan_.padded, 0.0f);
      std::fill_n(memory, plan_.padded, 0.0f);
      std::fill_n(RowOf(work.asides, d, n), plan_.padded, 0.0f);
      Read(work.args, kArgSrcIter, plan_.desc.src_iter, d, n, state);
      Read(work.args, kArgSrcIterC, plan_.desc.src_iter_c, d, n, memory);
      if (d > 0 || plan_.desc.direction != RnnDirection::kBidirectionalSum) return;
      for (int64_t t = 0; t < plan_.sizes.steps; ++t)
        std::fill_n(Result(work.args, t, n, 0), plan_.sizes.states, 0.0f);
    });
  }

  void Read(const ExecuteArgs& args, int arg, const MemoryDesc& desc, int d, int64_t n,
            float* to) const {
    if (desc.IsZero()) return;
    const float* from = args.Get<const float>(arg) + desc.Offset({0, d, n, 0});
    for (int64_t j = 0; j < plan_.sizes.states; ++j) to[j] = from[j * desc.stride(3)];
  }

  void Finish(const Work& work, int64_t piece) const {
    ForEachSequence(piece, [&](int d, int64_t n) {
      Write(work.args, kArgDstIter, plan_.desc.dst_iter, d, n, RowOf(work.states, d, n));
      Write(work.args, kArgDstIterC, plan_.desc.dst_iter_c, d, n, RowOf(work.memories, d, n));
    });
  }

  void Write(const ExecuteArgs& args, int arg, const MemoryDesc& desc, int d, int64_t n,
             const float* from) const {
    if (desc.IsZero()) return;
    float* to = args.Get<float>(arg) + desc.Offset({0, d, n, 0});
    for (int64_t j = 0; j < plan_.sizes.states; ++j) to[j * desc.stride(3)] = from[j];
  }

  // The first of the steps of a block in memory, and how many there are; a direction that runs back
  // takes them from the last on.
  std::pair<int64_t, int64_t> StepsOf(int d, int64_t step) const {
    const int64_t count = std::min(plan_.block, plan_.sizes.steps - step);
    return {RunsBack(plan_.desc, d) ? plan_.sizes.steps - step - count : step, count};
  }

  float* Gates(const Work& work, int d, int64_t step_of_block, int64_t n) const {
    return work.gates +
           ((d * plan_.block + step_of_block) * plan_.sizes.sequences + n) * plan_.width;
  }

  // The weights of a direction from gate `gate` on.
  const float* Weights(const ExecuteArgs& args, int arg, int64_t inputs, int d, int gate) const {
    return args.Get<const float>(arg) +
           (static_cast<int64_t>(d) * plan_.sizes.gates + gate) * plan_.padded * inputs;
  }
  const float* BiasOf(const ExecuteArgs& args, int d, int gate) const {
    if (plan_.desc.bias.IsZero()) return nullptr;
    return args.Get<const float>(kArgBias) + (d * plan_.sizes.bias_gates + gate) * plan_.padded;
  }

  void MultiplyInputs(const Work& work, int d, int64_t step, int64_t group) const {
    const RnnDesc& desc = plan_.desc;
    const auto [first, steps] = StepsOf(d, step);
    PackedProduct::Operands operands = {
        work.args.Get<const float>(kArgSrc) + desc.src_layer.Offset({first, 0, 0}),
        Weights(work.args, kArgWeights, plan_.sizes.inputs, d, 0), BiasOf(work.args, d, 0),
        Gates(work, d, 0, 0)};
    const PackedProduct& product = *codes_[d].layer;
    if (plan_.is_one_matrix)
      return product.RunGroup(group, steps * plan_.sizes.sequences, operands);
    for (int64_t n = 0; n < plan_.sizes.sequences; ++n) {
      product.RunGroup(group, steps, operands);
      operands.src += desc.src_layer.stride(1);
      operands.dst += plan_.width;
    }
  }

  void RunBlock(const Work& work, int d, int64_t step, int64_t piece) const {
    const auto [first, steps] = StepsOf(d, step);
    const int64_t n = piece * plan_.piece;
    const int64_t count = std::min(plan_.piece, plan_.sizes.sequences - n);
    for (int64_t s = 0; s < steps && !threading::Stopped(); ++s) {
      const int64_t of_block = RunsBack(plan_.desc, d) ? steps - 1 - s : s;
      MultiplyStates(work, d, of_block, n, count);
      for (int64_t i = n; i < n + count; ++i) RunCell(work, d, first + of_block, of_block, i);
    }
  }

  // Products of all states with all gates, or as far as they do not depend on r.
  void MultiplyStates(const Work& work, int d, int64_t of_block, int64_t n, int64_t count) const {
    const Code& code = codes_[d];
    const int64_t inputs = plan_.sizes.states;
    const float* states = RowOf(work.states, d, n);
    float *gates = Gates(work, d, of_block, n), *asides = RowOf(work.asides, d, n);
    const auto weights = [&](int gate) {
      return Weights(work.args, kArgWeightsIter, inputs, d, gate);
    };
    code.iter->RunAll(count, {states, weights(0), nullptr, gates});
    if (plan_.desc.cell == RnnCell::kLbrGru)
      code.last_gate->RunAll(count, {states, weights(2), BiasOf(work.args, d, 3), asides});
    if (plan_.desc.cell != RnnCell::kGru) return;
    for (int64_t i = n; i < n + count; ++i) Call(*code.reset, work, d, of_block, i);
    code.last_gate->RunAll(count, {asides, weights(2), nullptr, gates + 2 * plan_.padded});
  }

  void Call(const CellGenerator& cell, const Work& work, int d, int64_t of_block, int64_t n) const {
    CellArgs args = {Gates(work, d, of_block, n), RowOf(work.states, d, n),
                     RowOf(work.memories, d, n), RowOf(work.asides, d, n), nullptr};
    if (!plan_.desc.weights_peephole.IsZero())
      args.peephole = work.args.Get<const float>(kArgWeightsPeephole) + d * 3 * plan_.padded;
    cell.entry<CellGenerator::Function>()(&args);
  }

  // The next state of a sequence, unless it has ended.
  void RunCell(const Work& work, int d, int64_t t, int64_t of_block, int64_t n) const {
    const bool adds = plan_.desc.direction == RnnDirection::kBidirectionalSum;
    float* to = Result(work.args, t, n, d);
    if (!plan_.desc.sequence_lengths.IsZero()) {
      const MemoryDesc& lengths = plan_.desc.sequence_lengths;
      if (t >= work.args.Get<const int32_t>(kArgSequenceLengths)[lengths.Offset({n})]) {
        if (!adds) std::fill_n(to, plan_.sizes.states, 0.0f);
        return;
      }
    }
    Call(*codes_[d].cell, work, d, of_block, n);
    const float* state = RowOf(work.states, d, n);
    if (!adds) {
      std::memcpy(to, state, plan_.sizes.states * sizeof(float));
    } else {
      for (int64_t j = 0; j < plan_.sizes.states; ++j) to[j] += state[j];
    }
  }

  // Where the states of a direction go after step t.
  float* Result(const ExecuteArgs& args, int64_t t, int64_t n, int d) const {
    const bool beside = plan_.desc.direction == RnnDirection::kBidirectionalConcat;
    return args.Get<float>(kArgDst) +
           plan_.desc.dst_layer.Offset({t, n, beside ? d * plan_.sizes.states : 0});
  }

  const Plan plan_;
  const Codes codes_;
};

// `tensor` in the layout of `pattern`, which it must have.
absl::Status Fix(absl::string_view pattern, int lanes, MemoryDesc* tensor) {
  if (tensor->IsZero()) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(
      const MemoryDesc packed,
      MemoryDesc::CreatePattern(tensor->dims(), DataType::kF32,
                                absl::StrCat(pattern, lanes, pattern.size() == 5 ? "e" : "d")));
  if (tensor->IsAny()) *tensor = packed;
  if (*tensor == packed) return absl::OkStatus();
  return Unimplemented(tensor->ToString(), " is not ", packed.ToString());
}

absl::Status FixPlain(const RnnDesc& desc, MemoryDesc* tensor) {
  if (tensor->IsZero()) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(*tensor, OrPlain(*tensor));
  const bool is_layer = tensor == &desc.src_layer || tensor == &desc.dst_layer;
  if (!tensor->IsPlain() || (is_layer && tensor->dim(2) > 1 && tensor->stride(2) != 1))
    return Unimplemented(tensor->ToString(), ": elements of a step are not neighbours");
  return absl::OkStatus();
}

// 32-bit offsets in code, and sizes that can be multiplied.
absl::Status CheckSizes(const Plan& plan) {
  const RnnSizes& sizes = plan.sizes;
  constexpr int64_t kMost = int64_t{1} << 20, kMostRows = int64_t{1} << 40;
  if (plan.desc.dst_layer.ElementCount() == 0 || plan.desc.src_layer.ElementCount() == 0)
    return Unimplemented("nothing to compute");
  if (sizes.inputs > kMost || sizes.states > kMost || sizes.sequences > kMostRows ||
      sizes.sequences * plan.width > PackedProduct::kLongestStride ||
      std::max(plan.desc.src_layer.stride(0), plan.desc.src_layer.stride(1)) >
          PackedProduct::kLongestRow) {
    return Unimplemented("sizes or strides over 31 bits");
  }
  return absl::OkStatus();
}

PackedProduct::Shape ShapeOfLayer(const Plan& plan) {
  PackedProduct::Shape shape;
  const MemoryDesc& src = plan.desc.src_layer;
  const int64_t last = plan.sizes.steps % plan.block;
  shape.k = plan.sizes.inputs;
  shape.outputs = plan.width;
  shape.bias = !plan.desc.bias.IsZero();
  if (plan.is_one_matrix) {
    shape.src_row_stride = src.stride(plan.sizes.sequences == 1 ? 0 : 1);
    shape.dst_row_stride = plan.width;
    shape.rows = {plan.block * plan.sizes.sequences, last * plan.sizes.sequences};
  } else {
    shape.src_row_stride = src.stride(0);
    shape.dst_row_stride = plan.sizes.sequences * plan.width;
    shape.rows = {plan.block, last};
  }
  return shape;
}

// The product of states and so many gates, added to what is there, or beside it.
PackedProduct::Shape ShapeOfIter(const Plan& plan, int64_t gates, bool beside) {
  PackedProduct::Shape shape;
  shape.k = plan.sizes.states;
  shape.outputs = gates * plan.padded;
  shape.src_row_stride = plan.padded;
  shape.dst_row_stride = beside ? plan.padded : plan.width;
  shape.bias = beside && !plan.desc.bias.IsZero();
  shape.rows = {plan.piece, plan.sizes.sequences % plan.piece};
  if (!beside) shape.post_ops.Append(SumPostOp{}).IgnoreError();  // cannot fail: the first one
  return shape;
}

absl::StatusOr<Code> Generate(const Plan& plan, int direction, const ImplementationFacts& facts,
                              int64_t* code_bytes) {
  const VectorUnit unit = VectorUnit::Of(facts.isa);
  const RnnCell cell = plan.desc.cell;
  const bool gru = functions::GatesOf(cell) == 3, linear = cell == RnnCell::kLbrGru;
  Code code;
  const auto product = [&](const PackedProduct::Shape& shape,
                           std::unique_ptr<const PackedProduct>* to) -> absl::Status {
    ABSL_ASSIGN_OR_RETURN(*to, PackedProduct::Create(facts.name, unit, shape));
    *code_bytes += (*to)->code_bytes();
    return absl::OkStatus();
  };
  ABSL_RETURN_IF_ERROR(product(ShapeOfLayer(plan), &code.layer));
  const int64_t at_once = gru ? 2 : plan.sizes.gates;
  ABSL_RETURN_IF_ERROR(product(ShapeOfIter(plan, at_once, /*beside=*/false), &code.iter));
  if (gru) ABSL_RETURN_IF_ERROR(product(ShapeOfIter(plan, 1, linear), &code.last_gate));
  CellConfig config{.unit = unit, .cell = cell};
  config.states = plan.padded;
  const int count = functions::ActivationsOf(cell);
  for (int i = 0; i < count; ++i)
    config.functions.push_back(plan.desc.activations[direction * count + i]);
  config.clip = plan.desc.clip;
  config.couples_gates = plan.desc.couples_gates;
  config.peephole = !plan.desc.weights_peephole.IsZero();
  if (cell == RnnCell::kGru) {
    config.part = CellPart::kReset;
    ABSL_ASSIGN_OR_RETURN(code.reset, jit::Compile<CellGenerator>(facts.name, config));
    *code_bytes += static_cast<int64_t>(code.reset->code_bytes());
    config.part = CellPart::kFinal;
  }
  ABSL_ASSIGN_OR_RETURN(code.cell, jit::Compile<CellGenerator>(facts.name, config));
  *code_bytes += static_cast<int64_t>(code.cell->code_bytes());
  return code;
}

}  // namespace

absl::StatusOr<RnnDesc> ResolvePackedWeights(const Request<RnnDesc>& request) {
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  ABSL_RETURN_IF_ERROR(RequireInferenceF32(request.desc, request.attributes));
  RnnDesc resolved = request.desc;
  for (MemoryDesc* tensor :
       {&resolved.src_layer, &resolved.src_iter, &resolved.src_iter_c, &resolved.sequence_lengths,
        &resolved.dst_layer, &resolved.dst_iter, &resolved.dst_iter_c})
    ABSL_RETURN_IF_ERROR(FixPlain(resolved, tensor));
  ABSL_RETURN_IF_ERROR(CheckSizes(Plan(resolved, unit)));
  ABSL_RETURN_IF_ERROR(Fix("abdEc", unit.lanes(), &resolved.weights_layer));
  ABSL_RETURN_IF_ERROR(Fix("abdEc", unit.lanes(), &resolved.weights_iter));
  ABSL_RETURN_IF_ERROR(Fix("abcD", unit.lanes(), &resolved.weights_peephole));
  ABSL_RETURN_IF_ERROR(Fix("abcD", unit.lanes(), &resolved.bias));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePackedWeights(const Request<RnnDesc>& request) {
  const Plan plan(request.desc, VectorUnit::Of(request.facts.isa));
  PrimitiveInfo primitive_info = InfoOf(request);
  Codes codes;
  for (int d = 0; d < plan.sizes.directions; ++d) {
    ABSL_ASSIGN_OR_RETURN(Code code, Generate(plan, d, request.facts, &primitive_info.code_bytes));
    codes.push_back(std::move(code));
  }
  primitive_info.scratchpad_bytes = Packed::ScratchpadBytes(plan);
  return std::make_unique<Packed>(std::move(primitive_info), plan, std::move(codes));
}

}  // namespace tilewire::rnn
