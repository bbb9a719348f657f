// SPDX-License-Identifier: Apache-2.0
//
// A plan, and where the time of its runs went, as a table for people. Pure functions; thread-safe.
#ifndef CLIENT_TABLES_PLAN_TEXT_H_
#define CLIENT_TABLES_PLAN_TEXT_H_

#include <string>

#include "google/protobuf/message.h"
#include "protos/model_service.pb.h"

namespace tilewire::client {

struct PlanTextOptions {
  // Over 0: only so many steps, those that take longest or, without times, move most bytes.
  int costliest = 0;
  bool wide = false;
};

// A head with bytes and times of the whole, then a line per step: its time and its share of the run
// and of the peak (of a plan that was run; else the bytes that it reads and writes), implementation
// and node, in 80 columns; names that are too long are cut. With `wide`, lines of any length with
// the bytes, the layouts, what is fused into the step, its scratchpad, remark and refusals, and the
// files that its code was dumped to, as well.
std::string PlanText(const v1::ExplainResponse& plan, const PlanTextOptions& options = {});

// Where the time of a model's requests went: for each set of shapes, those that took most first, a
// head, then the lines of PlanText() with the mean times of its runs. Sets that were never run are
// left out.
std::string LiveProfileText(const v1::LiveProfileResponse& profile,
                            const PlanTextOptions& options = {});

// All of it for programs: the message in JSON, with the names of the .proto file.
std::string MessageJson(const google::protobuf::Message& message);

}  // namespace tilewire::client

#endif  // CLIENT_TABLES_PLAN_TEXT_H_
