// SPDX-License-Identifier: Apache-2.0
//
// Every metric of a server as it is now, in Prometheus's text format. Takes no lock that a request
// takes, and reads a few files of Linux. Thread-safe.
#ifndef SERVICE_HTTP_SERVER_METRICS_H_
#define SERVICE_HTTP_SERVER_METRICS_H_

#include <string>

#include "service/http/watched_server.h"

namespace tilewire::service {

std::string MetricsOf(const WatchedServer& server);

}  // namespace tilewire::service

#endif  // SERVICE_HTTP_SERVER_METRICS_H_
