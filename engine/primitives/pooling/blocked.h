// SPDX-License-Identifier: Apache-2.0
//
// Pooling of channel-blocked tensors (nCw16c, nChw16c, nCdhw16c; 8c for AVX2) by generated rows.
#ifndef ENGINE_PRIMITIVES_POOLING_BLOCKED_H_
#define ENGINE_PRIMITIVES_POOLING_BLOCKED_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/cpu/isa.h"
#include "engine/primitives/pooling/pooling.h"

namespace tilewire::pooling {

// See implementation.h; kUnimplemented for tensors that are not blocked by the vector's length
// along C.
absl::StatusOr<PoolingDesc> ResolveBlocked(cpu::Isa isa, const PoolingDesc& desc,
                                           const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateBlocked(cpu::Isa isa, const PoolingDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name);

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_BLOCKED_H_
