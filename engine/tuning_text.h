// SPDX-License-Identifier: Apache-2.0
//
// A model's tuning in words: the same in logs, answers and checks. Pure functions.
#ifndef ENGINE_TUNING_TEXT_H_
#define ENGINE_TUNING_TEXT_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/engine.h"
#include "engine/model.h"

namespace tilewire {

// "11 layers int8, 0 bf16, 2 exact".
inline std::string LayersText(const TuningFacts& facts) {
  return absl::StrCat(facts.int8_layers, " layers int8, ", facts.bf16_layers, " bf16, ",
                      facts.exact_layers, " exact");
}

// "tilewire.tuning, to l2<=0.03: 11 layers int8, 0 bf16, 2 exact; measured: 1e-02 of 12 examples".
inline std::string FactsText(const TuningFacts& facts) {
  return absl::StrCat(kTuningFile, ", to ", facts.budget, ": ", LayersText(facts),
                      "; measured: ", facts.held_out_error);
}

}  // namespace tilewire

#endif  // ENGINE_TUNING_TEXT_H_
