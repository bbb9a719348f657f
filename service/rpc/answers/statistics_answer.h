// SPDX-License-Identifier: Apache-2.0
//
// ModelStatistics: what the requests of models came to, in the protocol's words. Thread-safe.
#ifndef SERVICE_RPC_ANSWERS_STATISTICS_ANSWER_H_
#define SERVICE_RPC_ANSWERS_STATISTICS_ANSWER_H_

#include "absl/status/status.h"
#include "protos/open_inference.pb.h"
#include "service/models/model_repository.h"

namespace tilewire::service {

// Without a name, all versions that are loaded; with one, those of the model, or the one that is
// named as well.
//   the errors of ModelRepository::Find()
absl::Status AnswerStatistics(const ModelRepository& models,
                              const inference::ModelStatisticsRequest& request,
                              inference::ModelStatisticsResponse* response);

}  // namespace tilewire::service

#endif  // SERVICE_RPC_ANSWERS_STATISTICS_ANSWER_H_
