// SPDX-License-Identifier: Apache-2.0
//
// A small HTTP/1.1 server on one thread, `tw-http`: answers GET and HEAD, takes no bodies. Bounds
// hold whatever clients do: the request's head and the reading of its answer have a time, and of
// too many connections the one that has waited longest makes way. Nothing but this file knows
// libmicrohttpd.
#ifndef SERVICE_HTTP_DAEMON_H_
#define SERVICE_HTTP_DAEMON_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tilewire::service {

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;  // further ones
};

struct HttpBounds {
  int connections = 64;
  absl::Duration time = absl::Seconds(10);  // of a request, from its connection or the one before
  size_t header_bytes = 16 << 10;
};

class HttpDaemon {
 public:
  // Answers a path, without its query. Called on the daemon's thread; where it runs out of memory
  // the connection ends.
  using Handler = std::function<HttpAnswer(absl::string_view path)>;

  // Listens, and answers from then on. Port 0 takes any that is free. The errors are those of
  // ListenOn(), and kInternal if the library does not start.
  static absl::StatusOr<std::unique_ptr<HttpDaemon>> Start(const std::string& host, int port,
                                                           Handler handler, HttpBounds bounds = {});
  ~HttpDaemon();  // closes the port and all connections
  HttpDaemon(const HttpDaemon&) = delete;

  int port() const;

 private:
  class Loop;
  explicit HttpDaemon(std::unique_ptr<Loop> loop);

  const std::unique_ptr<Loop> loop_;
};

}  // namespace tilewire::service

#endif  // SERVICE_HTTP_DAEMON_H_
