// SPDX-License-Identifier: Apache-2.0
//
// A grouped direct convolution whose groups do not begin at block boundaries. For one image after
// the other: channels are copied to groups that do, in the scratchpad; the direct convolution runs
// there; results are copied back, and the tail of dst is zeroed. A sum post-op finds the old dst in
// the scratchpad, where it was copied to first.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_REGROUPED_CONVOLUTION_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_REGROUPED_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/primitives/convolution/convolution.h"
#include "engine/primitives/convolution/direct_driver.h"

namespace tilewire::convolution {

// `problem` describes src and dst as the caller has them. kResourceExhausted, kUnimplemented: see
// DirectDriver.
absl::StatusOr<std::unique_ptr<Primitive>> CreateRegrouped(const ConvolutionDesc& desc,
                                                           const DirectProblem& problem,
                                                           PrimitiveInfo info);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_REGROUPED_CONVOLUTION_H_
