// SPDX-License-Identifier: Apache-2.0
//
// Every metric of a server as it is now, in Prometheus's text format. Takes no lock that a request
// takes, and reads a few files of Linux. Thread-safe, but for one `machine`.
#ifndef SERVICE_HTTP_SERVER_METRICS_H_
#define SERVICE_HTTP_SERVER_METRICS_H_

#include <string>

#include "service/http/process_use.h"
#include "service/http/watched_server.h"

namespace tilewire::service {

// `machine` is read where Triton's metrics are told: see MachineCpu for the time that it is about.
std::string MetricsOf(const WatchedServer& server, MachineCpu* machine);

}  // namespace tilewire::service

#endif  // SERVICE_HTTP_SERVER_METRICS_H_
