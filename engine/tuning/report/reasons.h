// SPDX-License-Identifier: Apache-2.0
//
// Why a layer got its precision, in words for a report. Pure functions.
#ifndef ENGINE_TUNING_REPORT_REASONS_H_
#define ENGINE_TUNING_REPORT_REASONS_H_

#include <string>

#include "absl/types/span.h"
#include "engine/tuner.h"

namespace tilewire::tuning {

// The assignment of one precision throughout that won among whole models in turns: its name as a
// finalist; empty: what was chosen layer by layer did, or none.
std::string UniformWinner(absl::Span<const Finalist> finalists);

// `node` is complete but for its reason. Without `is_chosen` no assignment was taken: the text then
// tells what each precision would do. With a `winner` of UniformWinner(), the layer as such did not
// decide, and the text begins with that.
std::string ReasonText(const TunedNode& node, const TuningSpec& spec, bool is_chosen,
                       const std::string& winner);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_REPORT_REASONS_H_
