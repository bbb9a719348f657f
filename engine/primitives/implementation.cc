// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/implementation.h"

namespace tilewire {

absl::Status NobodyTakes(const std::vector<Refusal>& refusals) {
  std::string message = "no implementation takes this descriptor";
  for (const Refusal& refusal : refusals) {
    absl::StrAppend(&message, "; ", refusal.name, ": ", refusal.reason);
  }
  return absl::UnimplementedError(message);
}

}  // namespace tilewire
