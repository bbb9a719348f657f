// SPDX-License-Identifier: Apache-2.0
#ifndef SERVICE_OBSERVE_HOST_NAME_H_
#define SERVICE_OBSERVE_HOST_NAME_H_

#include <unistd.h>

#include <string>

namespace tilewire::service {

// The machine's, which in a container is the container's; empty where it has none.
inline std::string HostName() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_HOST_NAME_H_
