// SPDX-License-Identifier: Apache-2.0
//
// Chooses how a chain of convolutions, deconvolutions and poolings is cut into bands of rows
// (runtime/row_bands.h), and creates the primitives for each band.
//
// The rows of a result that a band computes need some rows of the tensor before it, these need some
// of the one before that, and so on: ReachOf() (row_window.h) walks a chain backwards. Where
// windows overlap, neighbouring bands need the same rows of an intermediate tensor, and each
// computes them for itself. The bits do not change: a primitive takes part only if none of its
// results depends on where its tensor was cut, and if its bands run the same implementation as the
// whole tensor.
//
// Taller bands compute fewer rows twice, but need more cache. The choice is the fewest bands whose
// working set stays within BandLimits::most_bytes; a chain that then computes too many rows twice
// is not worth it.
#ifndef ENGINE_LOWERING_BANDS_BAND_PLAN_H_
#define ENGINE_LOWERING_BANDS_BAND_PLAN_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/cpu/machine.h"
#include "engine/lowering/plan/primitive_request.h"
#include "engine/runtime/row_bands.h"

namespace tilewire::lowering {

// Which chains are worth it. Bytes are of one image.
struct BandLimits {
  int64_t least_bytes = 704 * 1024;  // a smaller intermediate tensor stays in cache by itself
  int64_t most_bytes = 512 * 1024;   // of all that one band reads and writes, with all weights
  double most_rows = 1.35;           // computed of a tensor, relative to the rows that it has
  int64_t most_weights_bytes = 256 * 1024;  // of a chain: each band reads them

  // Bands take half of the second cache, up to 1 MB.
  static BandLimits For(const cpu::Machine& machine);
};

// Whether what was requested, a primitive for whole tensors, may be part of a chain at all.
bool MayJoinChain(const PrimitiveRequest& request);

// Whether some number of bands keeps the chain within the limits.
bool KeepsWithinLimits(absl::Span<const PrimitiveRequest> chain, const BandLimits& limits);

// Each request reads the result of the one before it; only the last may have a sum among its
// post-ops.
//   kUnimplemented  no number of bands keeps within the limits, or a primitive does not take a band
absl::StatusOr<std::shared_ptr<const runtime::RowBands>> PlanBands(
    absl::Span<const PrimitiveRequest> chain, const BandLimits& limits, RequestPrimitive create);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_BANDS_BAND_PLAN_H_
