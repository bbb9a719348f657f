// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/bands/band_fusion.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/plan/plan_draft.h"

namespace tilewire::lowering {
namespace {

using runtime::RowBands;

int BufferOf(const Step& step, int arg) {
  for (const Binding& binding : step.bindings) {
    if (binding.arg == arg) return binding.buffer;
  }
  return -1;
}

// One call of FuseBands(): moves the steps of the plan aside and back again, chain by chain.
class BandFusion {
 public:
  BandFusion(const PrimitiveRequests& requests, const BandLimits& limits, RequestPrimitive create,
             Plan* plan)
      : requests_(requests), limits_(limits), create_(create), plan_(plan) {}

  absl::Status Run() {
    CountUses();
    std::vector<Step> steps = std::move(plan_->steps);
    plan_->steps.clear();
    std::vector<int> now(steps.size() + 1);  // per old index of a step: its new index
    for (size_t i = 0; i < steps.size();) {
      ABSL_ASSIGN_OR_RETURN(const size_t taken, TakeChain(absl::MakeSpan(steps).subspan(i), i));
      for (size_t k = 0; k < taken; ++k) now[i + k] = static_cast<int>(plan_->steps.size()) - 1;
      i += taken;
    }
    now[steps.size()] = static_cast<int>(plan_->steps.size());
    Renumber(now);
    return absl::OkStatus();
  }

 private:
  // Per buffer: the bindings, outputs and parts that name it, and whether it outlives the run.
  void CountUses() {
    uses_.assign(plan_->buffers.size(), 0);
    for (const Step& step : plan_->steps) {
      for (const Binding& binding : step.bindings) {
        if (binding.buffer >= 0) ++uses_[binding.buffer];
      }
    }
    for (const PlanOutput& output : plan_->outputs) ++uses_[output.buffer];
    for (const PlanBuffer& buffer : plan_->buffers) {
      if (buffer.part_of >= 0) ++uses_[buffer.part_of];
    }
    for (size_t i = 0; i < plan_->buffers.size(); ++i)
      uses_[i] += plan_->buffers[i].persistent >= 0;
  }

  void Renumber(const std::vector<int>& now) {
    for (PlanBuffer& buffer : plan_->buffers) {
      if (buffer.first >= 0) buffer.first = now[buffer.first];
      if (buffer.last >= 0) buffer.last = now[buffer.last];
    }
    for (PlanInput& input : plan_->inputs) {
      for (InputVariant& variant : input.variants) variant.step = now[variant.step];
    }
  }

  // Moves the first of `steps`, or as many of them as make one chain, to the plan. Returns their
  // number.
  absl::StatusOr<size_t> TakeChain(absl::Span<Step> steps, size_t index) {
    std::vector<PrimitiveRequest> chain;
    while (chain.size() < steps.size()) {
      const size_t next = chain.size();
      const std::optional<PrimitiveRequest> request = RequestOf(*steps[next].primitive);
      if (!request || (next > 0 && !Joins(steps[next - 1], steps[next]))) break;
      chain.push_back(*request);
    }
    chain.resize(std::min(chain.size(), LengthThatSavesMost(chain)));
    for (; chain.size() > 1; chain.pop_back()) {
      const absl::Span<Step> joined = steps.first(chain.size());
      if (plan_->WholeOf(BufferOf(joined.front(), kArgSrc)) ==
          plan_->WholeOf(BufferOf(joined.back(), kArgDst)))
        continue;  // the result would be written while the source is still read
      auto bands = PlanBands(chain, limits_, create_);
      if (absl::IsUnimplemented(bands.status())) continue;
      ABSL_RETURN_IF_ERROR(bands.status());
      ABSL_RETURN_IF_ERROR(ReplaceVariants(chain, index));
      Append(joined, *std::move(bands));
      return joined.size();
    }
    plan_->steps.push_back(std::move(steps[0]));
    return 1;
  }

  // `run` can be cut into chains within the limits in several ways. Chooses the way in which the
  // intermediate tensors inside chains are the most bytes, and returns the length of its first
  // chain, at least 1.
  size_t LengthThatSavesMost(absl::Span<const PrimitiveRequest> run) const {
    std::vector<int64_t> saved(run.size() + 1, 0);  // by the best way from request i on
    size_t length = 1;
    for (size_t i = run.size(); i-- > 0;) {
      saved[i] = saved[i + 1];
      length = 1;
      int64_t between = 0;
      for (size_t count = 2; i + count <= run.size(); ++count) {
        between += run[i + count - 2].whole->Desc(kArgDst).SizeBytes();
        if (between + saved[i + count] <= saved[i]) continue;
        if (!KeepsWithinLimits(run.subspan(i, count), limits_)) continue;
        saved[i] = between + saved[i + count];
        length = count;
      }
    }
    return length;
  }

  // nullopt where the primitive may not join a chain.
  std::optional<PrimitiveRequest> RequestOf(const Primitive& primitive) const {
    const auto found = requests_.find(&primitive);
    if (found == requests_.end() || !MayJoinChain(found->second)) return std::nullopt;
    return found->second;
  }

  // Whether the second step reads what the first one writes, and nothing else reads it.
  bool Joins(const Step& first, const Step& second) const {
    const int buffer = BufferOf(first, kArgDst);
    const PlanBuffer& between = plan_->buffers[buffer];
    const MemoryDesc& desc = first.primitive->Desc(kArgDst);
    return buffer == BufferOf(second, kArgSrc) && uses_[buffer] == 2 && between.part_of < 0 &&
           desc == second.primitive->Desc(kArgSrc) && desc.offset0() == 0 &&
           between.bytes >= limits_.least_bytes * desc.dim(0);
  }

  // A request that brings its input in another layout runs the same chain on it. A variant that no
  // chain takes is dropped.
  absl::Status ReplaceVariants(std::vector<PrimitiveRequest> chain, size_t index) {
    for (PlanInput& input : plan_->inputs) {
      for (size_t i = 0; i < input.variants.size();) {
        InputVariant& variant = input.variants[i];
        if (variant.step != static_cast<int>(index)) {
          ++i;
          continue;
        }
        const std::optional<PrimitiveRequest> first = RequestOf(*variant.primitive);
        if (first) chain[0] = *first;
        auto bands = first ? PlanBands(chain, limits_, create_)
                           : Unimplemented("the variant may not join a chain");
        if (absl::IsUnimplemented(bands.status())) {
          input.variants.erase(input.variants.begin() + i);
          continue;
        }
        ABSL_RETURN_IF_ERROR(bands.status());
        variant.primitive = nullptr;
        variant.bands = *std::move(bands);
        ++i;
      }
    }
    return absl::OkStatus();
  }

  void Append(absl::Span<Step> chain, std::shared_ptr<const RowBands> bands) {
    Step whole;
    whole.bindings = {{kArgSrc, BufferOf(chain.front(), kArgSrc)},
                      {kArgDst, BufferOf(chain.back(), kArgDst)}};
    for (size_t i = 0; i < chain.size(); ++i) {
      const Step& step = chain[i];
      const bool first = i == 0;
      absl::StrAppend(&whole.node, first ? "" : " + ", step.node);
      absl::StrAppend(&whole.fused, first ? "" : " | ", step.fused);
      absl::StrAppend(&whole.remark, first ? "" : " + ", std::string(step.primitive->name()));
      whole.operations += step.operations;
      for (const Binding& binding : step.bindings) {
        const int index = static_cast<int>(i);
        if (binding.arg == kArgWeights) {
          whole.bindings.push_back(
              {runtime::WeightsOfChain(index), binding.buffer, binding.constant});
        }
        if (binding.arg == kArgBias)
          whole.bindings.push_back({runtime::BiasOfChain(index), binding.buffer, binding.constant});
      }
      if (i + 1 < chain.size()) plan_->buffers[BufferOf(step, kArgDst)].bytes = 0;
    }
    plan_->scratchpad_bytes = std::max(plan_->scratchpad_bytes, bands->scratchpad_bytes());
    whole.bands = std::move(bands);
    plan_->steps.push_back(std::move(whole));
  }

  const PrimitiveRequests& requests_;
  const BandLimits& limits_;
  const RequestPrimitive create_;
  Plan* const plan_;
  std::vector<int> uses_;  // per buffer
};

}  // namespace

absl::Status FuseBands(const PrimitiveRequests& requests, const BandLimits& limits,
                       RequestPrimitive create, Plan* plan) {
  return BandFusion(requests, limits, create, plan).Run();
}

}  // namespace tilewire::lowering
