// SPDX-License-Identifier: Apache-2.0
//
// ModelConfig: a model's settings, completed from its file, in the words of a config.pbtxt.
// Thread-safe.
#ifndef SERVICE_RPC_ANSWERS_CONFIG_ANSWER_H_
#define SERVICE_RPC_ANSWERS_CONFIG_ANSWER_H_

#include <cstdint>

#include "protos/model_config.pb.h"
#include "service/models/served_model.h"

namespace tilewire::service {

// The config of a version that has loaded. What the settings leave out comes from the file: tensors
// (without the batch where max_batch_size is above 0), platform, backend, the file's name. Where
// there is no bound of the batch and every tensor begins with an open dimension, max_batch_size is
// `default_max_batch`: told to clients, and not enforced.
inference::ModelConfig CompletedConfig(const ServedModel& served, int default_max_batch);

}  // namespace tilewire::service

#endif  // SERVICE_RPC_ANSWERS_CONFIG_ANSWER_H_
