// SPDX-License-Identifier: Apache-2.0
//
// Ports and descriptors: opening a port, and the reserve of descriptors that connections leave to
// the process. Thread-safe.
#ifndef SERVICE_FRONT_OPEN_PORT_H_
#define SERVICE_FRONT_OPEN_PORT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilewire::service {

// Raises the process's soft limit of descriptors to the hard one.
//   kResourceExhausted  it is too low for the server itself and a few connections
absl::Status CheckDescriptors();

// Whether the descriptor of a new connection is one of the last sixteen, which the process keeps
// for itself.
bool TakesFromReserve(int fd);

struct OpenPort {
  int socket = -1;  // the caller's, which does not block
  int port = 0;
};

// `host` is a name or a numeric address, also in brackets; port 0 takes any that is free.
//   kInvalidArgument    no such host
//   kUnavailable        no name server answers, or the port is in use
//   kFailedPrecondition the address belongs to another machine
//   kPermissionDenied   the port may not be used
absl::StatusOr<OpenPort> ListenOn(const std::string& host, int port);

}  // namespace tilewire::service

#endif  // SERVICE_FRONT_OPEN_PORT_H_
