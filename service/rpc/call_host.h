// SPDX-License-Identifier: Apache-2.0
//
// The parts of a server that all its calls share.
#ifndef SERVICE_RPC_CALL_HOST_H_
#define SERVICE_RPC_CALL_HOST_H_

#include <cstdint>

#include "absl/time/time.h"
#include "service/front/method_table.h"
#include "service/models/statistics.h"
#include "service/observe/flight_record.h"
#include "service/observe/request_log.h"
#include "service/rpc/unread_answers.h"
#include "service/schedule/admission.h"
#include "service/schedule/dispatcher.h"
#include "service/trace/tracer.h"
#include "service/wire/answer_pool.h"

namespace tilewire::service {

// A row of pointers; what they point to outlives every call.
struct CallHost {
  Dispatcher* dispatcher = nullptr;
  Admission* admission = nullptr;
  UnreadAnswers* unread = nullptr;
  RequestLog* log = nullptr;
  FailureCounts* unnamed = nullptr;  // of requests of inference that were not decoded
  FlightRecorder* flights = nullptr;
  Tracer* tracer = nullptr;  // null: nothing is traced
  AnswerPool* answers = nullptr;
  int64_t max_message_bytes = int64_t{64} << 20;
  absl::Duration longest_explanation = absl::Minutes(1);
  OpenRights open_rights;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_CALL_HOST_H_
