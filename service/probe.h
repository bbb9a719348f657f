// SPDX-License-Identifier: Apache-2.0
//
// `tilewire-server --probe`: asks a running server for its health, as containers and units do.
#ifndef SERVICE_PROBE_H_
#define SERVICE_PROBE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tilewire::service {

struct ProbeTarget {
  std::string host;
  int port = 0;
};

// Which server is meant. A container's health check runs beside the server, with its environment
// but without its arguments; the server is process 1 there. So `--host` and `--port` count first if
// they are among `own` arguments, then if they are among those of process 1, should that be a
// tilewire-server (the first of `process_1` is its name); else `otherwise` stands, which comes from
// the environment and the defaults. A host that means every address becomes the loopback address.
ProbeTarget FindProbeTarget(const std::vector<std::string>& own,
                            const std::vector<std::string>& process_1, ProbeTarget otherwise);

// The arguments of a process, the name first, from a file such as /proc/1/cmdline; empty if it
// cannot be read.
std::vector<std::string> ReadCommandLine(const std::string& path);

// OK if the server answers within three seconds that it is serving.
//   kUnavailable  it does not serve, or does not answer; the message names its address
absl::Status Probe(const ProbeTarget& target);

}  // namespace tilewire::service

#endif  // SERVICE_PROBE_H_
