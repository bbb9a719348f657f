// SPDX-License-Identifier: Apache-2.0
//
// Names that match a pattern, in which * stands for any characters, also none. Pure; thread-safe.
#ifndef ENGINE_TRAINING_NAME_PATTERN_H_
#define ENGINE_TRAINING_NAME_PATTERN_H_

#include "absl/strings/string_view.h"

namespace tilewire::training {

bool MatchesPattern(absl::string_view name, absl::string_view pattern);

}  // namespace tilewire::training

#endif  // ENGINE_TRAINING_NAME_PATTERN_H_
