// SPDX-License-Identifier: Apache-2.0
//
// What each row of the table consists of; resampling.cc lists the rows. See implementation.h for
// resolve and create.
#ifndef ENGINE_PRIMITIVES_RESAMPLING_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_RESAMPLING_IMPLEMENTATIONS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/resampling/resampling.h"

namespace tilewire::resampling {

absl::StatusOr<ResamplingDesc> ResolveRows(const ResamplingDesc& desc,
                                           const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32(const ResamplingDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const ResamplingDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name);

absl::StatusOr<ResamplingDesc> ResolveReference(const ResamplingDesc& desc,
                                                const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ResamplingDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

PrimitiveInfo InfoOf(const ResamplingDesc& desc, const Attributes& attributes,
                     absl::string_view name);

// Where one output of a dimension comes from.
struct Sample {
  int64_t index[2];
  float weight[2];  // 1 and 0 for nearest
};
// One a output of spatial dimension `d` (of the tensors: 2 and up).
std::vector<Sample> SamplesOf(const ResamplingDesc& desc, int d);

}  // namespace tilewire::resampling

#endif  // ENGINE_PRIMITIVES_RESAMPLING_IMPLEMENTATIONS_H_
