// SPDX-License-Identifier: Apache-2.0
//
// How a max pooling post-op changes a convolution's destination. Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_POOLED_DESTINATION_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_POOLED_DESTINATION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/primitives/convolution/convolution.h"

namespace tilewire::convolution {

// `desc` has been validated. OK without a max pooling.
//   kInvalidArgument  a spatial dimension of dst holds no window
//   kUnimplemented    other than two spatial dimensions, a dst with gaps, or also a sum post-op
absl::Status ValidateMaxPooling(const ConvolutionDesc& desc, const Attributes& attributes);

// The tensor that is written for the resolved desc.dst: itself, or the pooled one in its layout.
absl::StatusOr<MemoryDesc> WrittenDst(const MemoryDesc& dst, const Attributes& attributes);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_POOLED_DESTINATION_H_
