// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of reduction.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_REDUCTION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_REDUCTION_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/reduction/reduction.h"

namespace tilewire::reduction {

absl::StatusOr<ReductionDesc> ResolveStrided(const ReductionDesc& desc,
                                             const Attributes& attributes,
                                             const ImplementationFacts& facts);

// Plain loops over rows, any layout.
absl::StatusOr<ReductionDesc> ResolveRows(const ReductionDesc& desc, const Attributes& attributes,
                                          const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const ReductionDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts);

absl::StatusOr<ReductionDesc> ResolveReference(const ReductionDesc& desc,
                                               const Attributes& attributes,
                                               const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ReductionDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

// How many elements of src fall on one of dst.
int64_t ReducedCount(const ReductionDesc& desc);

inline bool IsNorm(ReductionAlgorithm algorithm) {
  return algorithm >= ReductionAlgorithm::kNormLpMax;
}
inline bool IsExtremum(ReductionAlgorithm algorithm) {
  return algorithm <= ReductionAlgorithm::kMin;
}
inline bool TakesRoot(ReductionAlgorithm algorithm) {
  return algorithm == ReductionAlgorithm::kNormLpMax || algorithm == ReductionAlgorithm::kNormLpSum;
}
inline bool AddsEps(ReductionAlgorithm algorithm) {
  return algorithm == ReductionAlgorithm::kNormLpSum ||
         algorithm == ReductionAlgorithm::kNormLpPowerPSum;
}
// What the first element is combined with.
float NeutralElement(ReductionAlgorithm algorithm);

}  // namespace tilewire::reduction

#endif  // ENGINE_PRIMITIVES_REDUCTION_IMPLEMENTATIONS_H_
