// SPDX-License-Identifier: Apache-2.0
//
// The requests that a model's settings name to be answered before it is ready: model_warmup.
//
//   model_warmup { name: "one" batch_size: 4 count: 2
//                  inputs { key: "image" value { data_type: TYPE_FP32 dims: [ 3, 224, 224 ]
//                                                random_data: true } } }
//
// Zeros, numbers of a fixed seed (floats from 1/2 to 1, integers 0 or 1, so that they may be
// indices), or the bytes of a file in the folder `warmup` beside the versions. Thread-safe.
#ifndef SERVICE_MODELS_CONFIGURED_WARM_UP_H_
#define SERVICE_MODELS_CONFIGURED_WARM_UP_H_

#include "absl/status/status.h"
#include "service/models/served_model.h"

namespace tilewire::service {

// Runs each entry as often as it says. OK where the settings name none.
//   kInvalidArgument     an entry that the model cannot take: a tensor that is missing or
//                        unknown, dims or a type that do not fit, a file that is not there, has
//                        another size or more than 64 MB; the message names entry and input
//   the errors of Model::Run(), with the entry's name
absl::Status RunConfiguredWarmUp(const ServedModel& served, RunOptions options);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_CONFIGURED_WARM_UP_H_
