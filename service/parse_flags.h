// SPDX-License-Identifier: Apache-2.0
//
// From the command line to the flags.
#ifndef SERVICE_PARSE_FLAGS_H_
#define SERVICE_PARSE_FLAGS_H_

#include <optional>

#include "service/flags.h"

namespace tilewire::service {

// Fills `flags`, or prints what was asked for (help, version) or what is wrong (one line) and
// returns the exit code.
std::optional<int> ParseFlags(int argc, char** argv, Flags* flags);

}  // namespace tilewire::service

#endif  // SERVICE_PARSE_FLAGS_H_
