// SPDX-License-Identifier: Apache-2.0
//
// ServerStatus: how the server is, and what it has served so far. Takes no lock that a request of
// inference waits for. Thread-safe.
#ifndef SERVICE_RPC_ANSWERS_SERVER_STATUS_ANSWER_H_
#define SERVICE_RPC_ANSWERS_SERVER_STATUS_ANSWER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "protos/model_service.pb.h"
#include "service/models/model_repository.h"
#include "service/schedule/dispatcher_load.h"

namespace tilewire::service {

// The server's own numbers, beside those of its models.
struct ServerNumbers {
  std::string version, state;
  absl::Duration uptime;
  int cores = 0;
  DispatcherLoad work;
  int64_t throttled_ns = 0;
  std::optional<double> cpu_wait_share;  // of the last minute: CpuWait::Sums
  int64_t work_bytes = 0, work_limit_bytes = 0;
  int64_t connections = 0;
};
using ReadServerNumbers = std::function<ServerNumbers()>;

//   kNotFound  no such model
absl::Status AnswerServerStatus(const ModelRepository& models, const ServerNumbers& server,
                                const v1::ServerStatusRequest& request,
                                v1::ServerStatusResponse* response);

}  // namespace tilewire::service

#endif  // SERVICE_RPC_ANSWERS_SERVER_STATUS_ANSWER_H_
