// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/band_fusion.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::lowering {
namespace {

using runtime::BandLimits;
using runtime::Binding;
using runtime::InputVariant;
using runtime::Plan;
using runtime::PlanBuffer;
using runtime::PlanInput;
using runtime::PlanOutput;
using runtime::PrimitiveRequest;
using runtime::PrimitiveRequests;
using runtime::RequestPrimitive;
using runtime::Step;

int BufferOf(const Step& step, int arg) {
  for (const Binding& binding : step.bindings) {
    if (binding.arg == arg) return binding.buffer;
  }
  return -1;
}

class BandFusion {
 public:
  BandFusion(const PrimitiveRequests& requests, const BandLimits& limits, RequestPrimitive create,
             Plan* plan)
      : requests_(requests), limits_(limits), create_(create), plan_(plan) {}

  absl::Status Run() {
    CountUses();
    std::vector<Step> steps = std::move(plan_->steps);
    plan_->steps.clear();
    std::vector<int> now(steps.size() + 1);  // the index of each step
    for (size_t i = 0; i < steps.size();) {
      ABSL_ASSIGN_OR_RETURN(const size_t taken, TakeChain(absl::MakeSpan(steps).subspan(i), i));
      for (size_t k = 0; k < taken; ++k) now[i + k] = static_cast<int>(plan_->steps.size()) - 1;
      i += taken;
    }
    now[steps.size()] = static_cast<int>(plan_->steps.size());
    for (PlanBuffer& buffer : plan_->buffers) {
      if (buffer.first >= 0) buffer.first = now[buffer.first];
      if (buffer.last >= 0) buffer.last = now[buffer.last];
    }
    for (PlanInput& input : plan_->inputs) {
      for (InputVariant& variant : input.variants) variant.step = now[variant.step];
    }
    return absl::OkStatus();
  }

 private:
  // Bindings, outputs and parts that name a buffer.
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
  }

  // Moves the first of `steps`, or as many as make one chain, to the plan; returns their number.
  absl::StatusOr<size_t> TakeChain(absl::Span<Step> steps, size_t index) {
    std::vector<PrimitiveRequest> links;
    while (links.size() < steps.size()) {
      const std::optional<PrimitiveRequest> link = LinkOf(*steps[links.size()].primitive);
      if (!link || (!links.empty() && !Joins(steps[links.size() - 1], steps[links.size()]))) break;
      links.push_back(*link);
    }
    links.resize(std::min(links.size(), LengthThatSavesMost(links)));
    for (; links.size() > 1; links.pop_back()) {
      const absl::Span<Step> chain = steps.first(links.size());
      if (plan_->WholeOf(BufferOf(chain.front(), kArgSrc)) ==
          plan_->WholeOf(BufferOf(chain.back(), kArgDst)))
        continue;  // its end would be written while its beginning is still read
      auto primitive = CreateRowBands(links, limits_, create_);
      if (absl::IsUnimplemented(primitive.status())) continue;
      ABSL_RETURN_IF_ERROR(primitive.status());
      ABSL_RETURN_IF_ERROR(ReplaceVariants(links, index));
      Append(chain, *std::move(primitive));
      return chain.size();
    }
    plan_->steps.push_back(std::move(steps[0]));
    return 1;
  }

  // Of the first chain, where the run of `links` is cut into chains within the limits such that the
  // tensors between links of one chain are the most bytes. At least 1.
  size_t LengthThatSavesMost(absl::Span<const PrimitiveRequest> links) const {
    std::vector<int64_t> saved(links.size() + 1, 0);  // from link i on
    size_t length = 1;
    for (size_t i = links.size(); i-- > 0;) {
      saved[i] = saved[i + 1];
      length = 1;
      int64_t between = 0;
      for (size_t count = 2; i + count <= links.size(); ++count) {
        between += links[i + count - 2].whole->Desc(kArgDst).SizeBytes();
        if (between + saved[i + count] <= saved[i]) continue;
        if (!KeepsWithinLimits(links.subspan(i, count), limits_)) continue;
        saved[i] = between + saved[i + count];
        length = count;
      }
    }
    return length;
  }

  std::optional<PrimitiveRequest> LinkOf(const Primitive& primitive) const {
    const auto found = requests_.find(&primitive);
    if (found == requests_.end() || !MayBeLink(found->second)) return std::nullopt;
    return found->second;
  }

  // The second reads what the first writes and nobody else reads.
  bool Joins(const Step& first, const Step& second) const {
    const int buffer = BufferOf(first, kArgDst);
    const PlanBuffer& between = plan_->buffers[buffer];
    const MemoryDesc& desc = first.primitive->Desc(kArgDst);
    return buffer == BufferOf(second, kArgSrc) && uses_[buffer] == 2 && between.part_of < 0 &&
           desc == second.primitive->Desc(kArgSrc) && desc.offset0() == 0 &&
           between.bytes >= limits_.least_bytes * desc.dim(0);
  }

  // A request whose input comes in another layout runs the same chain on it.
  absl::Status ReplaceVariants(std::vector<PrimitiveRequest> links, size_t index) {
    for (PlanInput& input : plan_->inputs) {
      for (size_t i = 0; i < input.variants.size();) {
        InputVariant& variant = input.variants[i];
        if (variant.step != static_cast<int>(index)) {
          ++i;
          continue;
        }
        const std::optional<PrimitiveRequest> first = LinkOf(*variant.primitive);
        if (first) links[0] = *first;
        auto primitive = first ? CreateRowBands(links, limits_, create_)
                               : absl::UnimplementedError("not a link");
        if (absl::IsUnimplemented(primitive.status())) {
          input.variants.erase(input.variants.begin() + i);
          continue;
        }
        ABSL_RETURN_IF_ERROR(primitive.status());
        variant.primitive = *std::move(primitive);
        ++i;
      }
    }
    return absl::OkStatus();
  }

  void Append(absl::Span<Step> chain, std::shared_ptr<const Primitive> primitive) {
    Step whole;
    whole.bindings = {{kArgSrc, BufferOf(chain.front(), kArgSrc)},
                      {kArgDst, BufferOf(chain.back(), kArgDst)}};
    std::vector<std::string> names;
    for (size_t i = 0; i < chain.size(); ++i) {
      const Step& step = chain[i];
      const bool first = i == 0;
      absl::StrAppend(&whole.node, first ? "" : " + ", step.node);
      absl::StrAppend(&whole.fused, first ? "" : " | ", step.fused);
      absl::StrAppend(&whole.remark, first ? "" : " + ", std::string(step.primitive->name()));
      whole.operations += step.operations;
      for (const Binding& binding : step.bindings) {
        const int link = static_cast<int>(i);
        if (binding.arg == kArgWeights)
          whole.bindings.push_back(
              {runtime::WeightsOfLink(link), binding.buffer, binding.constant});
        if (binding.arg == kArgBias)
          whole.bindings.push_back({runtime::BiasOfLink(link), binding.buffer, binding.constant});
      }
      if (i + 1 < chain.size()) plan_->buffers[BufferOf(step, kArgDst)].bytes = 0;
    }
    plan_->scratchpad_bytes = std::max(plan_->scratchpad_bytes, primitive->info().scratchpad_bytes);
    whole.primitive = std::move(primitive);
    plan_->steps.push_back(std::move(whole));
  }

  const PrimitiveRequests& requests_;
  const BandLimits& limits_;
  const RequestPrimitive create_;
  Plan* const plan_;
  std::vector<int> uses_;  // of each buffer
};

}  // namespace

absl::Status FuseBands(const PrimitiveRequests& requests, const BandLimits& limits,
                       RequestPrimitive create, Plan* plan) {
  return BandFusion(requests, limits, create, plan).Run();
}

}  // namespace tilewire::lowering
