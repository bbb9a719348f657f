// SPDX-License-Identifier: Apache-2.0
//
// Why a layer got its precision, in words for a report. Pure functions.
#ifndef ENGINE_TUNING_REPORT_REASONS_H_
#define ENGINE_TUNING_REPORT_REASONS_H_

#include <string>

#include "engine/tuner.h"

namespace tilewire::tuning {

// `node` is complete but for its reason. Without `is_chosen` no assignment was taken: the text then
// tells what each precision would do.
std::string ReasonText(const TunedNode& node, const TuningSpec& spec, bool is_chosen);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_REPORT_REASONS_H_
