// SPDX-License-Identifier: Apache-2.0
//
// Which tensors become u8 and real again, where some layers are int8, so that the passes over
// networks (engine/network/README.md, "Integers") leave as few conversions as can be:
//
//   - what an int8 layer reads
//   - the addend of a sum that is converted in turn, if it comes from an int8 layer and is not the
//     one that a layer adds to its own result
//   - what a maximum, or an operation that only moves elements, reads, if its result is converted
//     and it comes from an int8 layer
//
// Maxima, moves and concatenations tie what they read to what they give: both have one range.
#ifndef ENGINE_TUNING_CONVERSIONS_H_
#define ENGINE_TUNING_CONVERSIONS_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/tuning/layers.h"
#include "engine/tuning/model_source.h"

namespace tilewire::tuning {

struct Conversions {
  std::vector<std::string> tensors;  // in the order in which they are computed; inputs first
  std::vector<std::pair<std::string, std::string>> ties;  // both are among the tensors
};

// `is_int8` is of each layer.
Conversions FindConversions(const ModelSource& source, const std::vector<Layer>& layers,
                            const std::vector<bool>& is_int8);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_CONVERSIONS_H_
