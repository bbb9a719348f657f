// SPDX-License-Identifier: Apache-2.0
#include "service/monitoring_port.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "service/address.h"
#include "service/build_id.h"
#include "service/http/monitoring.h"
#include "service/observe/host_name.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
absl::StatusOr<std::unique_ptr<HttpDaemon>> OpenMonitoringPort(const Flags& flags, Server* server) {
  if (!flags.metrics_port) return nullptr;
  WatchedServer watched = server->Watched();
  watched.dialects = flags.metrics_dialects;
  watched.build = BuildId();
  watched.host = HostName();
  watched.flags = flags.all;
  auto daemon = ServePages(flags.metrics_host, *flags.metrics_port, MonitoringPages(watched));
  if (daemon.ok()) {
    std::printf("tilewire-server monitoring on http://%s\n",
                AddressText(flags.metrics_host, (*daemon)->port()).c_str());
    std::fflush(stdout);
    return daemon;
  }
  const std::string what = absl::StrCat("monitoring: ", daemon.status().message());
  if (flags.metrics_port_is_asked_for) return absl::Status(daemon.status().code(), what);
  spdlog::warn("{}; --metrics_port names another, or off", what);
  return nullptr;
}

}  // namespace tilewire::service
