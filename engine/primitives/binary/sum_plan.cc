// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/binary/sum_plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/threading/ranges.h"

namespace tilewire::binary {
namespace {

constexpr int64_t kItemElements = 16 * 1024, kFewItems = 64;
constexpr int64_t kMostParts = 128 * 1024;  // of all results
constexpr int64_t kColumnsAtOnce = 32;      // what generated code computes side by side, at most
constexpr int64_t kMostSharedElements = int64_t{1} << 26;

// A call of generated code ends after all of its elements: they may not be more than memory holds.
absl::Status RequireElementsOfTheirOwn(const MemoryDesc& md) {
  const int64_t elements = md.ElementCount();
  if (elements <= kMostSharedElements || md.SizeBytes() / SizeOf(md.data_type()) >= elements)
    return absl::OkStatus();
  return Unimplemented("sums ", kMostSharedElements, " elements that share memory, not ", elements);
}

// LoopsOver() takes a size of 1 for one that is broadcast where blocks differ: elements that pad it
// in diff_dst would be the same one of the other tensor.
absl::Status RequirePaddingOf(const MemoryDesc& diff_dst, const MemoryDesc& md) {
  const bool is_alike = md.inner_blocks() == diff_dst.inner_blocks();
  for (int d = 0; d < md.rank() && !is_alike; ++d) {
    if (md.dim(d) == 1 && diff_dst.padded_dims()[d] != 1)
      return Unimplemented(md.ToString(), " is not padded as ", diff_dst.ToString());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SumPlan> SumPlan::Create(const BinaryDesc& desc) {
  ABSL_RETURN_IF_ERROR(RequireElementsOfTheirOwn(desc.diff_dst));
  SumPlan plan(desc);
  if (SumReadsFirst(plan.algorithm_))
    ABSL_RETURN_IF_ERROR(RequirePaddingOf(desc.diff_dst, desc.src0));
  if (plan.writes_first_) ABSL_RETURN_IF_ERROR(RequirePaddingOf(desc.diff_dst, desc.diff_src0));
  // A tensor that is not used is another one, which adds no loop.
  const auto used = [](bool is_used, const MemoryDesc& desc, const MemoryDesc& other) {
    return is_used ? &desc : &other;
  };
  ABSL_ASSIGN_OR_RETURN(
      std::vector<StridedLoop> loops,
      LoopsOver({&desc.diff_dst, used(SumReadsFirst(plan.algorithm_), desc.src0, desc.diff_dst),
                 used(plan.ReadsSecond(), desc.src1, desc.diff_src1), &desc.diff_src1,
                 used(plan.writes_first_, desc.diff_src0, desc.diff_dst)}));
  for (const StridedLoop& loop : loops) plan.is_empty_ |= loop.count == 0;
  plan.SortLoops(std::move(loops));
  if (plan.summed_.size() > SumConfig::kMostLoops)
    return Unimplemented("sums over more than ", SumConfig::kMostLoops, " loops");
  // Loops over results that share an address tell nothing of their number, and beside a size of 0
  // the product of the others may be beyond 64 bits.
  if (desc.diff_src1.ElementCount() == 0) plan.positions_ = 0;
  for (const StridedLoop& loop : plan.kept_) plan.positions_ *= loop.count;
  if (plan.results() > 0 && !plan.is_empty_) plan.CutWork();
  return plan;
}

void SumPlan::SortLoops(std::vector<StridedLoop> loops) {
  const StridedLoop none = {1, {0, 0, 0, 0, 0}};
  const auto take_last = [&none](std::vector<StridedLoop>* from) {
    if (from->empty()) return none;
    StridedLoop last = std::move(from->back());
    from->pop_back();
    return last;
  };
  inner_ = take_last(&loops);
  of_runs_ = inner_.strides[kTo] == 0;
  for (StridedLoop& loop : loops)
    (loop.strides[kTo] == 0 ? summed_ : kept_).push_back(std::move(loop));
  results_ = of_runs_ ? take_last(&kept_) : inner_;
  if (!of_runs_ && summed_.empty()) summed_.push_back(none);
}

void SumPlan::CutWork() {
  int64_t of_result = of_runs_ ? inner_.count : 1;
  for (const StridedLoop& loop : summed_) of_result *= loop.count;
  at_a_call_ = threading::ItemsAtOnce(kItemElements, of_result);
  if (!of_runs_) at_a_call_ = DivUp(at_a_call_, kColumnsAtOnce) * kColumnsAtOnce;
  at_a_call_ = std::min(at_a_call_, results_.count);
  const int64_t calls = positions_ * DivUp(results_.count, at_a_call_);
  if (calls < kFewItems) {
    parts_ = std::min(
        {Outermost().count, kMostParts / results(), at_a_call_ * of_result / kItemElements});
    parts_ = std::max<int64_t>(parts_, 1);
  }
  items_at_once_ = threading::ItemsAtOnce(kItemElements, at_a_call_ * of_result / parts_);
}

bool SumPlan::IsDense() const {
  const auto& strides = inner_.strides;
  return strides[kDy] == 1 && strides[kX] == 1 && strides[kDx] == 1 &&
         (of_runs_ || (strides[kTo] == 1 && strides[kY] == 1));
}

SumConfig SumPlan::Config(const jit::VectorUnit& unit) const {
  SumConfig config{.unit = unit, .algorithm = algorithm_};
  config.of_runs = of_runs_;
  config.writes_first = writes_first_;
  config.is_dense = IsDense();
  config.of_parts = parts_ > 1;
  config.results = results_;
  config.inner = inner_;
  config.summed = summed_;
  if (config.of_parts) config.results.strides[kTo] = 1;
  if (config.of_parts && !of_runs_) config.inner.strides[kTo] = 1;
  return config;
}

int64_t SumPlan::scratchpad_bytes() const {
  return parts_ == 1 ? 0 : parts_ * results() * static_cast<int64_t>(sizeof(double));
}

void SumPlan::Run(SumGenerator::Function function, const Tensors& tensors, std::byte* scratchpad,
                  const threading::Team& team) const {
  auto* const parts = reinterpret_cast<double*>(scratchpad);
  if (!is_empty_) {
    // Neighbouring results of one part follow each other: they may share cache lines.
    const int64_t items = positions_ * DivUp(results_.count, at_a_call_) * parts_;
    threading::ParallelForItems(team, items, items_at_once_,
                                [&](int64_t item) { RunItem(function, tensors, parts, item); });
  }
  if (is_empty_ || parts_ > 1) AddParts(parts, tensors.to);
}

void SumPlan::RunItem(SumGenerator::Function function, const Tensors& tensors, double* parts,
                      int64_t item) const {
  const int64_t calls = DivUp(results_.count, at_a_call_);
  const int64_t part = item / (positions_ * calls), call = item % (positions_ * calls);
  const int64_t position = call / calls, result = call % calls * at_a_call_;
  const int64_t first = Outermost().count * part / parts_;
  std::array<int64_t, kSumTensors> at;
  for (int tensor = 0; tensor < kSumTensors; ++tensor)
    at[tensor] = OffsetOf(position, result, tensor) + first * Outermost().strides[tensor];
  SumArgs args = {tensors.dy + at[kDy], tensors.x + at[kX], tensors.y + at[kY]};
  args.to = tensors.to + at[kTo];
  if (writes_first_) args.dx = tensors.dx + at[kDx];
  if (parts_ > 1) args.to = parts + part * results() + position * results_.count + result;
  args.results = std::min(at_a_call_, results_.count - result);
  args.outermost = Outermost().count * (part + 1) / parts_ - first;
  function(&args);
}

int64_t SumPlan::OffsetOf(int64_t position, int64_t result, int tensor) const {
  return OffsetIn(kept_, position, tensor) + result * results_.strides[tensor];
}

// The sum of no parts is 0.
void SumPlan::AddParts(const double* parts, float* to) const {
  for (int64_t i = 0; i < results(); ++i) {
    double sum = 0;
    for (int64_t part = 0; !is_empty_ && part < parts_; ++part) sum += parts[part * results() + i];
    to[OffsetOf(i / results_.count, i % results_.count, kTo)] = static_cast<float>(sum);
  }
}

}  // namespace tilewire::binary
