// SPDX-License-Identifier: Apache-2.0
//
// The request that runs a primitive once. Pure function; thread-safe.
#ifndef CLIENT_PRIMITIVE_REQUEST_H_
#define CLIENT_PRIMITIVE_REQUEST_H_

#include "absl/status/statusor.h"
#include "protos/tilewire.pb.h"

namespace tilewire::client {

// Runs `desc` with plain, dense inputs of deterministic values; the destination is asked for in
// plain. The arguments are those that the primitive `created` says it has.
absl::StatusOr<v1::ExecuteRequest> MakeExecuteRequest(const v1::PrimitiveDesc& desc,
                                                      const v1::CreateResponse& created);

}  // namespace tilewire::client

#endif  // CLIENT_PRIMITIVE_REQUEST_H_
