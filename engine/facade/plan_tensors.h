// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a call as a run of a plan takes them. Pure functions; thread-safe.
#ifndef ENGINE_FACADE_PLAN_TENSORS_H_
#define ENGINE_FACADE_PLAN_TENSORS_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/memory/tensor_spec.h"
#include "engine/model.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/plan.h"

namespace tilewire {

// Hold the inputs and outputs of an ordinary model without an allocation.
using AllInputBytes = absl::InlinedVector<runtime::InputBytes, 4>;
using AllOutputBytes = absl::InlinedVector<runtime::OutputBytes, 4>;

//   kInvalidArgument  a tensor has another number of bytes than its dims need; it is named
absl::Status CheckBytes(absl::Span<const TensorSpec> specs, absl::Span<const InputTensor> tensors);

// As many inputs as the plan has, whose dims and bytes have been checked.
AllInputBytes DescribeInputs(const runtime::Plan& plan, absl::Span<const InputTensor> inputs);

//   kInvalidArgument  an output that the plan does not have
absl::StatusOr<AllOutputBytes> DescribeOutputs(const runtime::Plan& plan,
                                               absl::Span<const OutputRequest> requests);

// The bytes that a run of the plan holds besides its inputs.
int64_t RunBytes(const runtime::Plan& plan, absl::Span<const runtime::OutputBytes> outputs);

}  // namespace tilewire

#endif  // ENGINE_FACADE_PLAN_TENSORS_H_
