// SPDX-License-Identifier: Apache-2.0
#ifndef SERVICE_MONITORING_PORT_H_
#define SERVICE_MONITORING_PORT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "service/flags.h"
#include "service/http/daemon.h"
#include "service/server.h"

namespace tilewire::service {

// Opens the port that the flags name and prints it; null: there is none. Without --metrics_port a
// port that does not open is only a warning. The server must outlive what is returned.
//   the errors of ServePages(), where the port was asked for
absl::StatusOr<std::unique_ptr<HttpDaemon>> OpenMonitoringPort(const Flags& flags, Server* server);

}  // namespace tilewire::service

#endif  // SERVICE_MONITORING_PORT_H_
