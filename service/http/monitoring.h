// SPDX-License-Identifier: Apache-2.0
//
// The monitoring port: pages about a server, over HTTP.
//
//   /metrics   every metric in Prometheus's format (server_metrics.h), made anew four times a
//              second at most
//   /healthz   200 while requests come to an end, else 503
//   /readyz    200 while the server is ready, else 503 with the reason: it drains, or models are
//              missing
//   /statusz   the server, its models and its load for people (observe/status.h)
//   /statusz.json  the same for programs
#ifndef SERVICE_HTTP_MONITORING_H_
#define SERVICE_HTTP_MONITORING_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "service/http/daemon.h"
#include "service/http/watched_server.h"

namespace tilewire::service {

// A row of the router. `answer`, called on the daemon's thread, gives the status (200 if it says
// nothing), the body and further headers; the type of its content is the row's.
struct Page {
  const char* path;
  const char* content_type;
  std::function<HttpAnswer()> answer;
};

// The pages of the port of `server`.
std::vector<Page> MonitoringPages(const WatchedServer& server);

// A daemon that answers with these pages, and 404 with a list of them. The errors of
// HttpDaemon::Start().
absl::StatusOr<std::unique_ptr<HttpDaemon>> ServePages(const std::string& host, int port,
                                                       std::vector<Page> pages);

}  // namespace tilewire::service

#endif  // SERVICE_HTTP_MONITORING_H_
