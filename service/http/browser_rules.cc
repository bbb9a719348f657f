// SPDX-License-Identifier: Apache-2.0
#include "service/http/browser_rules.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace tilewire::service {
namespace {

// "localhost" of "localhost:8002", "[::1]" of "[::1]:8002".
absl::string_view WithoutPort(absl::string_view host) {
  if (absl::StartsWith(host, "[")) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

bool IsLoopback(absl::string_view host) {
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  if (absl::EqualsIgnoreCase(host, "localhost")) return true;
  const std::string address(host);
  in_addr ipv4;
  if (inet_pton(AF_INET, address.c_str(), &ipv4) == 1) return ntohl(ipv4.s_addr) >> 24 == 127;
  in6_addr ipv6;
  return inet_pton(AF_INET6, address.c_str(), &ipv6) == 1 && IN6_IS_ADDR_LOOPBACK(&ipv6) != 0;
}

const char* RefusalOf(const BrowserHeaders& headers, bool on_loopback) {
  if (headers.origin) {
    absl::string_view origin = *headers.origin;
    const bool has_scheme =
        absl::ConsumePrefix(&origin, "http://") || absl::ConsumePrefix(&origin, "https://");
    if (!has_scheme || !headers.host || !absl::EqualsIgnoreCase(origin, *headers.host))
      return "the Origin is another site's";
  }
  if (on_loopback && headers.host && !IsLoopback(WithoutPort(*headers.host)))
    return "the Host is not a loopback address, as the server's is";
  return nullptr;
}

}  // namespace tilewire::service
