// SPDX-License-Identifier: Apache-2.0
//
// The masks of dropout that an update is given beside its inputs. Thread-compatible.
#ifndef ENGINE_FACADE_DROPOUT_MASKS_H_
#define ENGINE_FACADE_DROPOUT_MASKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/facade/training_plans.h"
#include "engine/model.h"
#include "engine/threading/arena.h"

namespace tilewire {

class DropoutMasks {
 public:
  // Appends the masks of update 0, 1, ... to its inputs; `seed` is of nodes that have none of their
  // own. They live until the next call.
  //   kResourceExhausted  memory
  absl::Status Draw(absl::Span<const PlannedMask> masks, uint64_t seed, int64_t update,
                    const threading::Team& team, std::vector<InputTensor>* inputs);

 private:
  std::vector<AlignedBuffer> elements_;
};

}  // namespace tilewire

#endif  // ENGINE_FACADE_DROPOUT_MASKS_H_
