// SPDX-License-Identifier: Apache-2.0
//
// LRN over runs of memory, shared by avx512_f32_runs and avx2_f32_runs. In a run the neighbours of
// every element stand at the same distances from it, so one kernel with a list of distances serves
//
//   across channels   the pixels of a channel (nchw); the inner channels of a pixel (nhwc), whose
//                     outer ones are runs of one element
//   within a channel  the inner pixels of a row, with all channels that lie between (nchw, nhwc,
//                     nChw16c, nChw8c), and the outer pixels one by one
//
// src and dst have one layout.
#ifndef ENGINE_PRIMITIVES_LRN_RUNS_H_
#define ENGINE_PRIMITIVES_LRN_RUNS_H_

#include "engine/primitives/lrn/lrn.h"

namespace tilewire::lrn {

absl::StatusOr<LrnDesc> ResolveRuns(const LrnDesc& desc, const Attributes& attributes,
                                    const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateRuns(const LrnDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts);

}  // namespace tilewire::lrn

#endif  // ENGINE_PRIMITIVES_LRN_RUNS_H_
