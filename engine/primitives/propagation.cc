// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/propagation.h"

namespace tilewire {

absl::string_view PropKindName(PropKind kind) {
  switch (kind) {
    case PropKind::kForwardTraining:
      return "forward_training";
    case PropKind::kForwardInference:
      return "forward_inference";
    case PropKind::kBackward:
      return "backward";
    case PropKind::kBackwardData:
      return "backward_data";
    case PropKind::kBackwardWeights:
      return "backward_weights";
  }
  return "unknown";
}

}  // namespace tilewire
