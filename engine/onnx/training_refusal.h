// SPDX-License-Identifier: Apache-2.0
//
// Why a batch cannot be trained on, where a caller may know a way out: a payload of the
// status, so that no caller has to interpret its message.
#ifndef ENGINE_ONNX_TRAINING_REFUSAL_H_
#define ENGINE_ONNX_TRAINING_REFUSAL_H_

#include "absl/status/status.h"

namespace tilewire {

enum class TrainingRefusal {
  kOther,
  kNoVariance,    // a normalization by the batch has one element per channel
  kNoStatistics,  // no normalization follows a batch, so that there is nothing to recalibrate
};

// `error` with the reason; it is not OK.
absl::Status WithRefusal(absl::Status error, TrainingRefusal refusal);

// The reason of a status of WithRefusal(), also where its payloads were copied to another one;
// kOther of all others.
TrainingRefusal RefusalOf(const absl::Status& status);

}  // namespace tilewire

#endif  // ENGINE_ONNX_TRAINING_REFUSAL_H_
