// SPDX-License-Identifier: Apache-2.0
//
// A plan as a table for people. Pure function; thread-safe.
#ifndef CLIENT_PLAN_TEXT_H_
#define CLIENT_PLAN_TEXT_H_

#include <string>

#include "protos/model_service.pb.h"

namespace tilewire::client {

// A head with bytes and times of the whole; a line per step: its time, its share of the run and of
// the peak (where the plan was run), bytes that it reads and writes, implementation, layouts, what
// is fused into it, node, remark. With `costliest` over 0 only so many steps, those that take
// longest, or, without times, most bytes.
std::string PlanText(const v1::ExplainResponse& plan, int costliest = 0);

}  // namespace tilewire::client

#endif  // CLIENT_PLAN_TEXT_H_
