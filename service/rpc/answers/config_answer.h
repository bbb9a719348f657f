// SPDX-License-Identifier: Apache-2.0
//
// ModelConfig: a model's settings, completed from its file, in the words of a config.pbtxt.
// Thread-safe.
#ifndef SERVICE_RPC_ANSWERS_CONFIG_ANSWER_H_
#define SERVICE_RPC_ANSWERS_CONFIG_ANSWER_H_

#include <cstdint>
#include <string>

#include "protos/model_config.pb.h"
#include "service/models/served_model.h"

namespace tilewire::service {

// Told of models whose settings do not say.
struct ConfigDefaults {
  int max_batch = 64;   // of models that take batches of any size; not enforced
  uint32_t latest = 1;  // how many of the highest versions are served; 0: all
};

// The config of a loaded version. Tensors (without the batch dimension if max_batch_size is above
// 0), platform, backend and the file's name come from the file where the settings leave them out;
// version_policy from `defaults`, and so does max_batch_size if the batch has no limit and every
// tensor begins with an open dimension.
inference::ModelConfig CompletedConfig(const ServedModel& served, const ConfigDefaults& defaults);

// The platform of a version that has loaded, as its config and its metadata tell it.
std::string PlatformOf(const ServedModel& served);

}  // namespace tilewire::service

#endif  // SERVICE_RPC_ANSWERS_CONFIG_ANSWER_H_
