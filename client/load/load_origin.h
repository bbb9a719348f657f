// SPDX-License-Identifier: Apache-2.0
//
// Where the figures of a load come from: what one needs to know to measure the same again.
#ifndef CLIENT_LOAD_LOAD_ORIGIN_H_
#define CLIENT_LOAD_LOAD_ORIGIN_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "client/client.h"

namespace tilewire::client {

// One invocation of the load tester. What a file does not tell is empty.
struct LoadOrigin {
  std::string load;    // a random name of its own
  std::string server;  // "127.0.0.1:8001 (tilewire 0.1.0)"
  std::string client;  // "tilewire 0.1.0"
  std::string host;    // of the client: "loader-3, 2 cores"
  uint64_t seed = 0;   // 0: not known
  absl::Time began;    // the epoch: not known
};

std::string NewLoadName();

// "tilewire 0.1.0", as the server calls itself; empty if it does not.
std::string ServerName(const Client& client);

// "loader-3, 2 cores": this machine, and the cores that this process may use.
std::string HostText();

// A line per fact that is known, for a terminal.
std::string OriginText(const LoadOrigin& origin);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_LOAD_ORIGIN_H_
