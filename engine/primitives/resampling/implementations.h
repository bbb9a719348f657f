// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of resampling.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_RESAMPLING_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_RESAMPLING_IMPLEMENTATIONS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/resampling/resampling.h"

namespace tilewire::resampling {

absl::StatusOr<ResamplingDesc> ResolveRows(const ResamplingDesc& desc, const Attributes& attributes,
                                           const ImplementationFacts& facts);
absl::StatusOr<ResamplingDesc> ResolveReference(const ResamplingDesc& desc,
                                                const Attributes& attributes,
                                                const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ResamplingDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

// Where one output of a dimension comes from.
struct Sample {
  int64_t index[2];
  float weight[2];  // 1 and 0 for nearest
};
// One per output of spatial dimension `d` (of the tensors: 2 and up).
std::vector<Sample> SamplesOf(const ResamplingDesc& desc, int d);

}  // namespace tilewire::resampling

#endif  // ENGINE_PRIMITIVES_RESAMPLING_IMPLEMENTATIONS_H_
