// SPDX-License-Identifier: Apache-2.0
//
// Calls models again and again and measures. Requests are serialized once and sent asynchronously,
// so that few threads carry many of them.
//
// A closed loop has `concurrency` callers, each with a connection of its own, which send their next
// request when the last is answered, after a pause if they are to think; one that was refused with
// a pushback (the trailing metadata grpc-retry-pushback-ms) waits at least that long, and one that
// meets no server 10 ms, then twice as long each time, up to a second. It measures what the server
// can do, but a pause of the server delays only the callers that wait for it: requests that would
// have met the pause are not sent, and the percentiles look better than what independent users see.
//
// An open loop sends at a given rate, or along a profile of rates, whatever the server does, and
// counts latency from the time at which a request was to be sent.
#ifndef CLIENT_LOAD_LOAD_H_
#define CLIENT_LOAD_LOAD_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/load/load_options.h"
#include "client/load/report/report.h"

namespace tilewire::client {

using ClientFactory = std::function<absl::StatusOr<std::unique_ptr<Client>>()>;

// A status that is not OK: a connection could not be made, or the golden answers do not belong to
// these requests. What requests met is in the report. A closed loop ends early if the first hundred
// requests all fail.
absl::StatusOr<LoadReport> RunLoad(const ClientFactory& connect, const LoadOptions& options,
                                   const LoadProgress& progress);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_LOAD_H_
