// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/exchanged_weights.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/threading/stop.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kLines = 8;  // of what has no squares, copied at once
// A piece of work reads a few KB, which are neighbours in memory, for each block of outputs.
constexpr int64_t kOutputsAtOnce = 256, kLeastInputsAtOnce = 16, kNumbersOfOutput = 64;
constexpr int64_t kBytes = sizeof(float);

// The distance of neighbours, the same within all whole squares; nullopt where there are none, or
// it varies.
std::optional<int64_t> StepInSquares(const std::vector<int64_t>& offsets, int64_t side) {
  const int64_t whole = static_cast<int64_t>(offsets.size()) / side * side;
  if (whole == 0) return std::nullopt;
  const int64_t step = offsets[1] - offsets[0];
  for (int64_t i = 1; i < whole; ++i) {
    if (i % side != 0 && offsets[i] - offsets[i - 1] != step) return std::nullopt;
  }
  return step;
}

// Squares that are copied in their order, many in a call, each fetched long before.
class SquareQueue {
 public:
  SquareQueue(const ExchangeGenerator& transposition, const float* from, float* to)
      : transposition_(transposition), from_(from), to_(to) {}

  void Push(const ExchangeSquare& square) {
    squares_[count_++] = square;
    if (count_ < kAtOnce + kAhead) return;
    Copy(kAtOnce);
    std::copy_n(squares_.begin() + kAtOnce, kAhead, squares_.begin());
    count_ = kAhead;
  }
  void Finish() {
    if (count_ == 0) return;
    std::fill_n(squares_.begin() + count_, kAhead, squares_[count_ - 1]);
    Copy(count_);
    count_ = 0;
  }

 private:
  static constexpr int64_t kAtOnce = 128, kAhead = ExchangeGenerator::kAhead;

  void Copy(int64_t count) const {
    const ExchangeArgs args = {
        .src = from_, .dst = to_, .squares = squares_.data(), .count = count};
    transposition_.entry<ExchangeGenerator::Function>()(&args);
  }

  const ExchangeGenerator& transposition_;
  const float* const from_;
  float* const to_;
  int64_t count_ = 0;
  std::array<ExchangeSquare, kAtOnce + 2 * kAhead> squares_;
};

bool FitsGeneratedCode(int64_t step, int64_t side) {
  return step > 0 && step <= std::numeric_limits<int32_t>::max() / kBytes / side;
}

}  // namespace

Dims ExchangedDims(Dims weights, bool grouped) {
  const int outputs = grouped ? 1 : 0;
  std::swap(weights[outputs], weights[outputs + 1]);
  return weights;
}

ExchangedWeights::Offsets ExchangedWeights::Along(const MemoryDesc& from, int from_dim,
                                                  const MemoryDesc& to, int to_dim) {
  const SeparableOffsets source(from), target(to);
  Offsets offsets;
  for (int64_t i = 0; i < from.dim(from_dim); ++i) {
    offsets.from.push_back(source.At(from_dim, i));
    offsets.to.push_back(target.At(to_dim, i));
  }
  return offsets;
}

ExchangedWeights::Offsets ExchangedWeights::OfTaps(const MemoryDesc& from, const MemoryDesc& to,
                                                   int first, bool flips) {
  const SeparableOffsets source(from), target(to);
  const Dims kernel(from.dims().begin() + first, from.dims().end());
  Offsets offsets;
  ForEachIndex(kernel, [&](const Dims& tap) {
    int64_t at = 0, copy = 0;
    for (int i = 0; i < static_cast<int>(tap.size()); ++i) {
      at += source.At(first + i, tap[i]);
      copy += target.At(first + i, flips ? kernel[i] - 1 - tap[i] : tap[i]);
    }
    offsets.from.push_back(at);
    offsets.to.push_back(copy);
  });
  return offsets;
}

ExchangedWeights::ExchangedWeights(const MemoryDesc& from, const MemoryDesc& to, bool grouped,
                                   bool flips)
    : from_offset_(from.offset0()),
      to_offset_(to.offset0()),
      to_elements_(to.PaddedElementCount()),
      has_padding_(to.HasPadding()) {
  const int outputs = grouped ? 1 : 0;
  groups_ = grouped ? Along(from, 0, to, 0) : Offsets{{0}, {0}};
  outputs_ = Along(from, outputs, to, outputs + 1);
  inputs_ = Along(from, outputs + 1, to, outputs);
  taps_ = OfTaps(from, to, outputs + 2, flips);
}

absl::StatusOr<ExchangedWeights> ExchangedWeights::Create(absl::string_view name,
                                                          const VectorUnit& unit,
                                                          const MemoryDesc& from,
                                                          const MemoryDesc& to, bool grouped,
                                                          bool flips) {
  ExchangedWeights weights(from, to, grouped, flips);
  const bool fills_squares = std::ssize(weights.outputs_.from) % unit.lanes() == 0 &&
                             std::ssize(weights.inputs_.from) % unit.lanes() == 0;
  if (fills_squares) ABSL_RETURN_IF_ERROR(weights.CompileSquares(name, unit));
  if (weights.transposition_ == nullptr)
    ABSL_RETURN_IF_ERROR(weights.CompileSquares(name, VectorUnit::Of(cpu::Isa::kAvx2)));
  return weights;
}

// None where squares of so many lanes are not in order.
absl::Status ExchangedWeights::CompileSquares(absl::string_view name, const VectorUnit& unit) {
  const int64_t side = unit.lanes();
  const std::optional<int64_t> column = StepInSquares(outputs_.from, side);
  const std::optional<int64_t> dst_row = StepInSquares(outputs_.to, side);
  const std::optional<int64_t> row = StepInSquares(inputs_.from, side);
  const std::optional<int64_t> dst_column = StepInSquares(inputs_.to, side);
  if (column != 1 || dst_column != 1 || !row || !dst_row) return absl::OkStatus();
  if (!FitsGeneratedCode(*row, side) || !FitsGeneratedCode(*dst_row, side)) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(transposition_, jit::Compile<ExchangeGenerator>(
                                            name, unit, static_cast<int32_t>(*row * kBytes),
                                            static_cast<int32_t>(*dst_row * kBytes)));
  return absl::OkStatus();
}

int64_t ExchangedWeights::code_bytes() const {
  return transposition_ == nullptr ? 0 : static_cast<int64_t>(transposition_->code_bytes());
}

void ExchangedWeights::Run(const float* from, float* to, const threading::Team& team) const {
  from += from_offset_;
  to += to_offset_;
  if (has_padding_) std::fill(to, to + to_elements_, 0.0f);
  const int64_t inputs = static_cast<int64_t>(inputs_.from.size());
  const int64_t outputs = static_cast<int64_t>(outputs_.from.size());
  const int64_t across = DivUp(outputs, kOutputsAtOnce);
  const int64_t taps = static_cast<int64_t>(taps_.from.size());
  const int64_t along =
      std::max(kLeastInputsAtOnce, RoundUp(kNumbersOfOutput / taps, kLeastInputsAtOnce));
  const int64_t pieces = DivUp(inputs, along) * across;
  team.ParallelFor(static_cast<int64_t>(groups_.from.size()) * pieces, [&](int64_t index) {
    const int64_t group = index / pieces, piece = index % pieces;
    const int64_t input = piece / across * along, output = piece % across * kOutputsAtOnce;
    CopyPiece(from + groups_.from[group], to + groups_.to[group],
              {output, std::min(kOutputsAtOnce, outputs - output)},
              {input, std::min(along, inputs - input)});
  });
}

// Some channels of a group. What does not fill a square is copied number by number.
void ExchangedWeights::CopyPiece(const float* from, float* to, const Range& outputs,
                                 const Range& inputs) const {
  const int64_t taps = static_cast<int64_t>(taps_.from.size());
  const int64_t end = inputs.begin + inputs.size, last = outputs.begin + outputs.size;
  const int64_t side = transposition_ != nullptr ? transposition_->side() : kLines;
  std::optional<SquareQueue> queue;
  if (transposition_ != nullptr) queue.emplace(*transposition_, from, to);
  for (int64_t o = outputs.begin; o < last && !threading::Stopped(); o += side) {
    for (int64_t i = inputs.begin; i < end; i += side) {
      if (!queue || last - o < side || end - i < side) {
        CopyChannels(from, to, {o, std::min(side, last - o)}, {i, std::min(side, end - i)});
        continue;
      }
      for (int64_t t = 0; t < taps; ++t)
        queue->Push({(outputs_.from[o] + inputs_.from[i] + taps_.from[t]) * kBytes,
                     (outputs_.to[o] + inputs_.to[i] + taps_.to[t]) * kBytes});
    }
  }
  if (queue) queue->Finish();
}

void ExchangedWeights::CopyChannels(const float* from, float* to, const Range& outputs,
                                    const Range& inputs) const {
  const int64_t taps = static_cast<int64_t>(taps_.from.size());
  for (int64_t i = inputs.begin; i < inputs.begin + inputs.size; ++i) {
    for (int64_t o = outputs.begin; o < outputs.begin + outputs.size; ++o) {
      const float* const source = from + outputs_.from[o] + inputs_.from[i];
      float* const target = to + outputs_.to[o] + inputs_.to[i];
      for (int64_t t = 0; t < taps; ++t) target[taps_.to[t]] = source[taps_.from[t]];
    }
  }
}

}  // namespace tilewire::convolution
