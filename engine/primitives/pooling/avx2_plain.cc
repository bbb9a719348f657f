// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/pooling/implementations.h"
#include "engine/primitives/pooling/plain_rows.h"

namespace tilewire::pooling {

absl::StatusOr<PoolingDesc> ResolveAvx2Plain(const PoolingDesc& desc,
                                             const Attributes& attributes) {
  return ResolvePlainRows(desc, attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2Plain(const PoolingDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  return CreatePlainRows(desc, attributes, name, /*lanes=*/8);
}

}  // namespace tilewire::pooling
