// SPDX-License-Identifier: Apache-2.0
#include "engine/network/network.h"

namespace tilewire::network {

absl::StatusOr<HeldFloats> LoadElements(const Weights& weights) {
  if (weights.s8 != nullptr) return weights.s8->Load();
  if (weights.stored == nullptr) return HeldFloats{weights.data, weights.owner};
  return weights.stored->Load();
}

}  // namespace tilewire::network
