// SPDX-License-Identifier: Apache-2.0
//
// The gradient of src of a convolution in parts of src's channels. Weights are copied in every run
// (exchanged_weights.h): the copy of a part's stays in the second cache until the part's products
// have read it, where one of all weights would go to memory and come back. diff_dst is read once
// for each part, so this pays for images of few pixels, which have the most weights. Up to
// four threads take parts of their own where these keep all of them busy, so that a copy is read by
// the core that made it, each with a scratchpad of its own; else they share one part after the
// other. The bits are those of the whole. Thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_SOURCE_PARTS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_SOURCE_PARTS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/primitive.h"

namespace tilewire::convolution {

// The channels of src of a part, whole blocks; all of them where there is to be one part only.
// `desc` is resolved.
int64_t ChannelsOfPart(const ConvolutionDesc& desc, const cpu::Machine& machine);

// The primitive that runs, for each part of so many channels, what `create` makes for it. `desc` of
// the request is resolved.
using CreateGradient =
    absl::StatusOr<std::unique_ptr<Primitive>> (*)(const Request<ConvolutionDesc>&);
absl::StatusOr<std::unique_ptr<Primitive>> CreateInParts(const Request<ConvolutionDesc>& request,
                                                         int64_t channels, CreateGradient create);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_SOURCE_PARTS_H_
