// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/element_primitives.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "engine/base/check.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/threading/ranges.h"

namespace tilewire {
namespace {

// The first byte of each source, `element` elements after its first.
template <typename Pointer>
absl::InlinedVector<Pointer, 8> SourcesOf(const DrivenRun& run, int64_t element) {
  absl::InlinedVector<Pointer, 8> srcs;
  for (const auto& [arg, desc, is_output] : run.primitive.info().args) {
    if (is_output) continue;
    srcs.push_back(run.args.Get<const std::byte>(arg) +
                   (desc.offset0() + element) * SizeOf(desc.data_type()));
  }
  return srcs;
}

// The one argument that the primitive writes.
const ArgDesc& OutputOf(const DrivenRun& run) {
  const std::vector<ArgDesc>& args = run.primitive.info().args;
  const auto output = absl::c_find_if(args, [](const ArgDesc& entry) { return entry.is_output; });
  TILEWIRE_CHECK(output != args.end(), "a function of elements writes one tensor");
  return *output;
}

std::byte* DestinationOf(const DrivenRun& run, int64_t element) {
  const ArgDesc& output = OutputOf(run);
  return run.First<std::byte>(output.arg) + element * SizeOf(output.desc.data_type());
}

void ZeroPaddingUnless(bool stay_zero, const DrivenRun& run) {
  const ArgDesc& output = OutputOf(run);
  if (!stay_zero) ZeroPadding(output.desc, run.args.Find(output.arg));
}

}  // namespace

std::unique_ptr<Primitive> MakeDensePrimitive(PrimitiveInfo info, bool stay_zero,
                                              std::unique_ptr<const DenseRunGenerator> generator) {
  const auto compute = [stay_zero](const DenseRunGenerator& code, const DrivenRun& run) {
    constexpr int64_t kElementsAtOnce = DenseRunGenerator::kElementsAtOnce;
    const int64_t count = OutputOf(run).desc.PaddedElementCount();
    threading::ParallelForRanges(run.team, count, kElementsAtOnce, [&](int64_t first, int64_t end) {
      code.Run(SourcesOf<const std::byte*>(run, first), DestinationOf(run, first), end - first);
    });
    ZeroPaddingUnless(stay_zero, run);
  };
  return MakeDriven(std::move(info), std::move(generator), compute);
}

std::unique_ptr<Primitive> MakeElementwisePrimitive(
    PrimitiveInfo info, bool stay_zero, ElementwisePlan plan,
    std::unique_ptr<const ElementwiseGenerator> generator) {
  auto compute = [stay_zero, plan = std::move(plan)](const ElementwiseGenerator& code,
                                                     const DrivenRun& run) {
    if (OutputOf(run).desc.ElementCount() == 0) return;
    plan.Run(code.entry<ElementwiseGenerator::Function>(), DestinationOf(run, 0),
             SourcesOf<const void*>(run, 0), run.team);
    ZeroPaddingUnless(stay_zero, run);
  };
  return MakeDriven(std::move(info), std::move(generator), std::move(compute));
}

}  // namespace tilewire
