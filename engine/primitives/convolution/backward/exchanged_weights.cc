// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/exchanged_weights.h"

#include <algorithm>
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

constexpr int64_t kSide = ExchangeGenerator::kSide;
constexpr int64_t kInputsAtOnce = 2 * kSide;  // of a piece of work
constexpr int64_t kSquaresAhead = 8;          // about what memory takes to answer
constexpr int64_t kBytes = sizeof(float);

// The distance of neighbours, the same within all whole squares; nullopt where there are none, or
// it varies.
std::optional<int64_t> StepInSquares(const std::vector<int64_t>& offsets) {
  const int64_t whole = static_cast<int64_t>(offsets.size()) / kSide * kSide;
  if (whole == 0) return std::nullopt;
  const int64_t step = offsets[1] - offsets[0];
  for (int64_t i = 1; i < whole; ++i) {
    if (i % kSide != 0 && offsets[i] - offsets[i - 1] != step) return std::nullopt;
  }
  return step;
}

bool FitsGeneratedCode(int64_t step) {
  return step > 0 && step <= std::numeric_limits<int32_t>::max() / kBytes / kSide;
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
                                                          const MemoryDesc& from,
                                                          const MemoryDesc& to, bool grouped,
                                                          bool flips) {
  ExchangedWeights weights(from, to, grouped, flips);
  ABSL_RETURN_IF_ERROR(weights.CompileSquares(name));
  return weights;
}

absl::Status ExchangedWeights::CompileSquares(absl::string_view name) {
  const std::optional<int64_t> column = StepInSquares(outputs_.from);
  const std::optional<int64_t> dst_row = StepInSquares(outputs_.to);
  const std::optional<int64_t> row = StepInSquares(inputs_.from);
  const std::optional<int64_t> dst_column = StepInSquares(inputs_.to);
  if (column != 1 || dst_column != 1 || !row || !dst_row) return absl::OkStatus();
  if (!FitsGeneratedCode(*row) || !FitsGeneratedCode(*dst_row)) return absl::OkStatus();
  for (size_t t = 0; t < taps_.from.size(); ++t)
    squares_.push_back({taps_.from[t] * kBytes, taps_.to[t] * kBytes});
  ABSL_ASSIGN_OR_RETURN(transposition_,
                        jit::Compile<ExchangeGenerator>(name, static_cast<int32_t>(*row * kBytes),
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
  const int64_t pieces = DivUp(inputs, kInputsAtOnce);
  team.ParallelFor(static_cast<int64_t>(groups_.from.size()) * pieces, [&](int64_t index) {
    const int64_t group = index / pieces, first = index % pieces * kInputsAtOnce;
    CopyInputs(from + groups_.from[group], to + groups_.to[group],
               {first, std::min(kInputsAtOnce, inputs - first)});
  });
}

// A few input channels of a group.
void ExchangedWeights::CopyInputs(const float* from, float* to, const Range& inputs) const {
  const int64_t outputs = static_cast<int64_t>(outputs_.from.size());
  const int64_t end = inputs.begin + inputs.size;
  for (int64_t o = 0; o < outputs && !threading::Stopped(); o += kSide) {
    const int64_t output_count = std::min(kSide, outputs - o);
    for (int64_t i = inputs.begin; i < end; i += kSide) {
      const int64_t input_count = std::min(kSide, end - i);
      if (transposition_ != nullptr && output_count == kSide && input_count == kSide) {
        CopySquare(from, to, o, i);
      } else {
        CopyChannels(from, to, {o, output_count}, {i, input_count});
      }
    }
  }
}

void ExchangedWeights::CopySquare(const float* from, float* to, int64_t output,
                                  int64_t input) const {
  const ExchangeArgs args = {.src = from + outputs_.from[output] + inputs_.from[input],
                             .dst = to + outputs_.to[output] + inputs_.to[input],
                             .squares = squares_.data(),
                             .count = static_cast<int64_t>(squares_.size()),
                             .ahead = Ahead(output)};
  transposition_->entry<ExchangeGenerator::Function>()(&args);
}

// Bytes from an output channel to the one that is fetched while it is copied.
int64_t ExchangedWeights::Ahead(int64_t output) const {
  const int64_t squares = static_cast<int64_t>(squares_.size());
  const int64_t next = output + kSide * DivUp(kSquaresAhead, squares);
  if (next >= static_cast<int64_t>(outputs_.from.size())) return 0;
  return (outputs_.from[next] - outputs_.from[output]) * kBytes;
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
