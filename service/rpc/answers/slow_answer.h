// SPDX-License-Identifier: Apache-2.0
//
// SlowRequests: which requests were slow, and why. Calls that belong to no model, such as one that
// loads it, are left out. Thread-safe.
#ifndef SERVICE_RPC_ANSWERS_SLOW_ANSWER_H_
#define SERVICE_RPC_ANSWERS_SLOW_ANSWER_H_

#include "absl/status/status.h"
#include "protos/model_service.pb.h"
#include "service/models/model_repository.h"
#include "service/observe/slow_requests.h"

namespace tilewire::service {

//   kInvalidArgument  a number that is out of its range
//   kNotFound         no such model, and none of its requests is known
absl::Status AnswerSlowRequests(const ModelRepository& models, const SlowRequests& slow,
                                const v1::SlowRequestsRequest& request,
                                v1::SlowRequestsResponse* response);

}  // namespace tilewire::service

#endif  // SERVICE_RPC_ANSWERS_SLOW_ANSWER_H_
