// SPDX-License-Identifier: Apache-2.0
//
// Variables of the environment that look like settings of this program and are none.
#ifndef SERVICE_UNKNOWN_VARIABLES_H_
#define SERVICE_UNKNOWN_VARIABLES_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tilewire::service {

// A sentence for each variable of the environment whose name begins with TILEWIRE_ and that neither
// an option of `flags` nor another program of ours reads; it names the known one that is meant, if
// one is nearly the same. What Kubernetes sets for services of such a name (TILEWIRE_SERVICE_HOST,
// TILEWIRE_PORT_8001_TCP) does not count.
std::vector<std::string> UnknownVariables(const CLI::App& flags);

}  // namespace tilewire::service

#endif  // SERVICE_UNKNOWN_VARIABLES_H_
