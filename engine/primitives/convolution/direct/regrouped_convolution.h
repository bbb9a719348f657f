// SPDX-License-Identifier: Apache-2.0
//
// A grouped direct convolution whose groups do not begin at block boundaries. Image after image,
// channels are copied to groups in the scratchpad that do, the direct convolution runs there,
// results are copied back, and the tail of dst is zeroed. For a sum post-op the old dst is copied
// to the scratchpad first.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_REGROUPED_CONVOLUTION_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_REGROUPED_CONVOLUTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/primitives/convolution/convolution.h"
#include "engine/primitives/convolution/direct/direct_driver.h"

namespace tilewire::convolution {

// For what RequireRegrouping() (regrouping.h) accepts; `problem` describes src and dst as the
// caller has them.
// kResourceExhausted, kUnimplemented: see DirectDriver.
absl::StatusOr<std::unique_ptr<Primitive>> CreateRegrouped(const ConvolutionDesc& desc,
                                                           const DirectProblem& problem,
                                                           PrimitiveInfo info);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_REGROUPED_CONVOLUTION_H_
