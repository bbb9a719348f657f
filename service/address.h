// SPDX-License-Identifier: Apache-2.0
#ifndef SERVICE_ADDRESS_H_
#define SERVICE_ADDRESS_H_

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tilewire::service {

// "127.0.0.1:8001", "[::1]:8001". Pure.
inline std::string AddressText(const std::string& host, int port) {
  const bool bare_ipv6 = absl::StrContains(host, ':') && host[0] != '[';
  return bare_ipv6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

}  // namespace tilewire::service

#endif  // SERVICE_ADDRESS_H_
