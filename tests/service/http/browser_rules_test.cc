// SPDX-License-Identifier: Apache-2.0
#include "service/http/browser_rules.h"

#include <gtest/gtest.h>

#include <string>

namespace tilewire::service {
namespace {

TEST(BrowserRulesTest, KnowsLoopbackAddresses) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "localhost", "LOCALHOST", "::1", "[::1]"})
    EXPECT_TRUE(IsLoopback(host)) << host;
  // Names and addresses that look like one.
  for (const char* host : {"", "0.0.0.0", "128.0.0.1", "127.0.0.1.example", "127.example",
                           "localhost.example", "::", "[::2]", "10.0.0.1", "127.0.0.1 "})
    EXPECT_FALSE(IsLoopback(host)) << host;
}

TEST(BrowserRulesTest, RefusesOtherSitesOnly) {
  struct Case {
    BrowserHeaders headers;
    bool on_loopback, refused;
  };
  const char* const kNull = "null";
  for (const auto& [headers, on_loopback, refused] : {
           Case{{.host = "127.0.0.1:8002"}, true, false},
           Case{{.host = "localhost"}, true, false},
           Case{{.host = "[::1]:8002"}, true, false},
           Case{{}, true, false},                               // a program of HTTP/1.0
           Case{{.host = "rebound.example:8002"}, true, true},  // a name that points here
           Case{{.host = "[::1].example:8002"}, true, false},   // nothing resolves that
           Case{{.host = "tilewire-0.example:8002"}, false, false},
           Case{{.host = "localhost:8002", .origin = "http://localhost:8002"}, true, false},
           Case{{.host = "a.example", .origin = "https://A.example"}, false, false},
           Case{{.host = "localhost:8002", .origin = "http://localhost:9000"}, true, true},
           Case{{.host = "a.example", .origin = "http://b.example"}, false, true},
           Case{{.host = "a.example", .origin = kNull}, false, true},  // a file, a sandboxed frame
           Case{{.host = "a.example", .origin = "a.example"}, false, true},
           Case{{.host = {}, .origin = "http://a.example"}, false, true},
       }) {
    EXPECT_EQ(RefusalOf(headers, on_loopback) != nullptr, refused)
        << headers.host.value_or("-") << " " << headers.origin.value_or("-");
  }
}

}  // namespace
}  // namespace tilewire::service
