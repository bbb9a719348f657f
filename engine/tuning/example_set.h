// SPDX-License-Identifier: Apache-2.0
//
// The examples of a tuner as runs take them, and which of them are held out. A value type.
#ifndef ENGINE_TUNING_EXAMPLE_SET_H_
#define ENGINE_TUNING_EXAMPLE_SET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/model.h"
#include "engine/tuner.h"

namespace tilewire::tuning {

struct ExampleSet {
  std::vector<std::vector<InputTensor>> inputs;  // of each example, in the signature's order
  std::vector<int64_t> chosen, held_out;         // indices of examples, ascending; neither is empty

  // At least one of each; the order of the examples and the seed decide which are held out.
  //   kInvalidArgument  fewer than two examples, a share out of (0, 1), inputs that are missing,
  //                     given twice, unknown or do not fit, numbers that are not finite
  static absl::StatusOr<ExampleSet> Create(const ModelSignature& signature,
                                           absl::Span<const TuningExample> examples,
                                           double hold_out, uint64_t seed);

  // Leaves so many of `chosen` and `held_out`, evenly among all: neighbours may be alike. At most
  // what there is of each.
  void KeepOnly(int64_t chosen_count, int64_t held_out_count);
};

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_EXAMPLE_SET_H_
