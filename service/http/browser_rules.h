// SPDX-License-Identifier: Apache-2.0
//
// Requests that pages of other sites make a browser send are not answered: no web page reads or
// drives a server on its reader's machine. Programs send no Origin, and need no other header than
// they have. Pure functions.
#ifndef SERVICE_HTTP_BROWSER_RULES_H_
#define SERVICE_HTTP_BROWSER_RULES_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace tilewire::service {

// "localhost", "127.0.0.1", "::1" and their like, in brackets or not.
bool IsLoopback(absl::string_view host);

// The headers of a request; nullopt: it has none of that name.
struct BrowserHeaders {
  std::optional<absl::string_view> host, origin;
};

// Why a request is refused; null if it is not. An Origin has to be the server's own and, while the
// server listens on a loopback address, Host has to be one: a page may give its own name any
// address.
const char* RefusalOf(const BrowserHeaders& headers, bool on_loopback);

}  // namespace tilewire::service

#endif  // SERVICE_HTTP_BROWSER_RULES_H_
