// SPDX-License-Identifier: Apache-2.0
#ifndef CLIENT_TOOL_VERSION_H_
#define CLIENT_TOOL_VERSION_H_

namespace tilewire::client {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_VERSION_H_
