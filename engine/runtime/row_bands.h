// SPDX-License-Identifier: Apache-2.0
//
// A chain of convolutions and poolings as one primitive: instead of one whole tensor after the
// other, a band of rows of the last result goes through all links, and what lies between two links
// stays in cache. Neighbouring bands overlap where windows do: those rows are computed twice, with
// the same bits, since no result of these links depends on where its tensor was cut.
#ifndef ENGINE_RUNTIME_ROW_BANDS_H_
#define ENGINE_RUNTIME_ROW_BANDS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/primitive_request.h"

namespace tilewire::runtime {

// Which chains are worth it. Bytes are of one image.
struct BandLimits {
  int64_t least_bytes = 704 * 1024;  // a tensor between two links that is smaller stays in cache
  int64_t most_bytes = 512 * 1024;   // of all that one band reads and writes, weights too
  double most_rows = 1.35;           // computed by a link, for each row of its result
};

// The arguments of link i's weights and bias; the rest is kArgSrc and kArgDst of the whole.
constexpr int WeightsOfLink(int link) { return kArgMultipleSrc + 2 * link; }
constexpr int BiasOfLink(int link) { return kArgMultipleSrc + 2 * link + 1; }

// Whether a convolution or pooling of whole tensors may be a link at all.
bool MayBeLink(const PrimitiveRequest& link);

// Some height of bands keeps within the limits.
bool KeepsWithinLimits(absl::Span<const PrimitiveRequest> links, const BandLimits& limits);

// "runtime/row_bands". The links' sources and results are each other's; only the last may have a
// sum among its post-ops.
//   kUnimplemented  no height of bands keeps within the limits, or a link does not take a band
absl::StatusOr<std::shared_ptr<const Primitive>> CreateRowBands(
    absl::Span<const PrimitiveRequest> links, const BandLimits& limits, RequestPrimitive create);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_ROW_BANDS_H_
