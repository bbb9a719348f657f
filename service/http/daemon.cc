// SPDX-License-Identifier: Apache-2.0
#include "service/http/daemon.h"

#include <microhttpd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <new>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "engine/threading/background_thread.h"
#include "service/front/open_port.h"
#include "service/http/browser_rules.h"
#include "service/observe/steady_time.h"

namespace tilewire::service {
namespace {

// Connections that are accepted before those that are open are looked at again.
constexpr int kAcceptedAtOnce = 16;
// How long the port rests when the process has no descriptor left for a connection.
constexpr absl::Duration kRest = absl::Milliseconds(20);

std::optional<absl::string_view> Header(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? std::nullopt : std::optional<absl::string_view>(value);
}

bool HasBody(MHD_Connection* connection) {
  const auto length = Header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
  return (length && *length != "0") || Header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

HttpAnswer Error(int status, const std::string& text) {
  return {.status = status, .body = text + "\n", .headers = {{"Connection", "close"}}};
}

// The answer to what no handler is asked for; nullopt: a handler is.
std::optional<HttpAnswer> RefusedAtOnce(MHD_Connection* connection, absl::string_view method,
                                        bool on_loopback) {
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
    HttpAnswer answer = Error(MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD are answered, no other");
    answer.headers.emplace_back("Allow", "GET, HEAD");
    return answer;
  }
  if (HasBody(connection)) return Error(MHD_HTTP_BAD_REQUEST, "a request has no body here");
  const BrowserHeaders headers = {.host = Header(connection, MHD_HTTP_HEADER_HOST),
                                  .origin = Header(connection, MHD_HTTP_HEADER_ORIGIN)};
  const char* const why = RefusalOf(headers, on_loopback);
  if (why != nullptr) return Error(MHD_HTTP_FORBIDDEN, why);
  return std::nullopt;
}

MHD_Result Send(MHD_Connection* connection, const HttpAnswer& answer) {
  MHD_Response* const response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  const auto add = [response](const char* name, const std::string& value) {
    MHD_add_response_header(response, name, value.c_str());
  };
  add(MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type);
  add("X-Content-Type-Options", "nosniff");
  add(MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  for (const auto& [name, value] : answer.headers) add(name.c_str(), value);
  const MHD_Result queued = MHD_queue_response(connection, answer.status, response);
  MHD_destroy_response(response);
  return queued;
}

}  // namespace

// Everything but the start and the end happens on its thread.
class HttpDaemon::Loop {
 public:
  Loop(const OpenPort& open, bool on_loopback, Handler handler, HttpBounds bounds)
      : socket_(open.socket),
        port_(open.port),
        wakeup_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        on_loopback_(on_loopback),
        handler_(std::move(handler)),
        bounds_(bounds) {}
  ~Loop() {
    eventfd_write(wakeup_, 1);
    thread_ = nullptr;
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
    close(socket_);
    close(wakeup_);
  }

  absl::Status Start() {
    daemon_ = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, /*port=*/0, nullptr,
                               nullptr, Loop::Access, this, MHD_OPTION_CONNECTION_LIMIT,
                               static_cast<unsigned>(bounds_.connections + kAcceptedAtOnce),
                               MHD_OPTION_CONNECTION_MEMORY_LIMIT, bounds_.header_bytes,  //
                               MHD_OPTION_STRICT_FOR_CLIENT, 1,                           //
                               MHD_OPTION_NOTIFY_CONNECTION, Loop::Connection, this,      //
                               MHD_OPTION_NOTIFY_COMPLETED, Loop::Completed, this, MHD_OPTION_END);
    if (daemon_ == nullptr) return absl::InternalError("libmicrohttpd does not start");
    epoll_ = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    thread_ = std::make_unique<threading::BackgroundThread>("tw-http", [this] { Run(); });
    return absl::OkStatus();
  }

  int port() const { return port_; }

 private:
  struct Waiting {
    absl::Time since;     // it was made, or its last request was answered
    bool ending = false;  // it is being closed
  };

  static MHD_Result Access(void* self, MHD_Connection* connection, const char* path,
                           const char* method, const char*, const char*, size_t*, void** seen) {
    return static_cast<Loop*>(self)->Answer(connection, path, method, seen);
  }
  static void Connection(void* self, MHD_Connection* connection, void**,
                         MHD_ConnectionNotificationCode what) {
    Loop* const loop = static_cast<Loop*>(self);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      loop->connections_.erase(connection);
      return;
    }
    try {
      loop->connections_[connection] = {.since = SteadyNow()};
    } catch (const std::bad_alloc&) {  // a connection that is not in the table has no bounds
      Waiting unknown;
      End(connection, &unknown);
    }
  }
  static void Completed(void* self, MHD_Connection* connection, void**,
                        MHD_RequestTerminationCode) {
    const auto found = static_cast<Loop*>(self)->connections_.find(connection);
    if (found != static_cast<Loop*>(self)->connections_.end()) found->second.since = SteadyNow();
  }

  void Run();
  MHD_Result Answer(MHD_Connection* connection, const char* path, const char* method, void** seen);
  void Accept();
  void EndOldest();
  void EndLate(absl::Time now);
  static void End(MHD_Connection* connection, Waiting* waiting);
  int PauseMs(absl::Time now) const;

  const int socket_, port_, wakeup_;
  const bool on_loopback_;
  const Handler handler_;
  const HttpBounds bounds_;
  MHD_Daemon* daemon_ = nullptr;
  int epoll_ = -1;
  std::map<MHD_Connection*, Waiting> connections_;
  absl::Time rests_until_ = absl::InfinitePast();
  std::unique_ptr<threading::BackgroundThread> thread_;
};

// The library calls once when it has the head, where a refusal spares the body, and again when it
// has the request.
MHD_Result HttpDaemon::Loop::Answer(MHD_Connection* connection, const char* path,
                                    const char* method, void** seen) {
  try {
    if (*seen == nullptr) {
      *seen = this;
      const std::optional<HttpAnswer> refusal = RefusedAtOnce(connection, method, on_loopback_);
      return refusal ? Send(connection, *refusal) : MHD_YES;
    }
    return Send(connection, handler_(path));
  } catch (const std::bad_alloc&) {  // the connection ends
    return MHD_NO;
  }
}

// The library sees the end of the connection, and closes it.
void HttpDaemon::Loop::End(MHD_Connection* connection, Waiting* waiting) {
  waiting->ending = true;
  shutdown(MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
           SHUT_RDWR);
}

void HttpDaemon::Loop::EndLate(absl::Time now) {
  for (auto& [connection, waiting] : connections_) {
    if (!waiting.ending && now - waiting.since >= bounds_.time) End(connection, &waiting);
  }
}

void HttpDaemon::Loop::EndOldest() {
  auto oldest = connections_.end();
  int open = 0;
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    if (it->second.ending) continue;
    ++open;
    const bool older = oldest == connections_.end() || it->second.since < oldest->second.since;
    if (older) oldest = it;
  }
  if (open > bounds_.connections) End(oldest->first, &oldest->second);
}

void HttpDaemon::Loop::Accept() {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    sockaddr_storage from = {};
    socklen_t size = sizeof(from);
    auto* const address = reinterpret_cast<sockaddr*>(&from);
    const int fd = accept4(socket_, address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const bool gone = fd < 0 && errno != EMFILE && errno != ENFILE && errno != ENOMEM;
    if (gone) return;
    if (fd < 0 || TakesFromReserve(fd)) {
      if (fd >= 0) close(fd);
      rests_until_ = SteadyNow() + kRest;
      return;
    }
    MHD_add_connection(daemon_, fd, address, size);  // which closes it if it cannot
    MHD_run(daemon_);                                // it is one of connections_ from here on
    EndOldest();
  }
}

int HttpDaemon::Loop::PauseMs(absl::Time now) const {
  absl::Time next = now <= rests_until_ ? rests_until_ : absl::InfiniteFuture();
  for (const auto& [connection, waiting] : connections_) {
    if (!waiting.ending) next = std::min(next, waiting.since + bounds_.time);
  }
  MHD_UNSIGNED_LONG_LONG library = 0;
  if (MHD_get_timeout(daemon_, &library) == MHD_YES)
    next = std::min(next, now + absl::Milliseconds(library));
  if (next == absl::InfiniteFuture()) return -1;
  return static_cast<int>(absl::ToInt64Milliseconds(
      absl::Ceil(std::max(next - now, absl::ZeroDuration()), absl::Milliseconds(1))));
}

void HttpDaemon::Loop::Run() {
  enum : size_t { kEnd, kLibrary, kPort };
  std::array<pollfd, 3> polled = {
      pollfd{wakeup_, POLLIN, 0}, {epoll_, POLLIN, 0}, {socket_, POLLIN, 0}};
  while (true) {
    const absl::Time now = SteadyNow();
    const bool rests = now < rests_until_;
    poll(polled.data(), rests ? kPort : polled.size(), PauseMs(now));
    if (polled[kEnd].revents != 0) return;
    if (!rests && polled[kPort].revents != 0) Accept();
    EndLate(SteadyNow());
    MHD_run(daemon_);
  }
}

HttpDaemon::HttpDaemon(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
HttpDaemon::~HttpDaemon() = default;

int HttpDaemon::port() const { return loop_->port(); }

absl::StatusOr<std::unique_ptr<HttpDaemon>> HttpDaemon::Start(const std::string& host, int port,
                                                              Handler handler, HttpBounds bounds) {
  const absl::StatusOr<OpenPort> open = ListenOn(host, port);
  if (!open.ok()) return open.status();
  auto loop = std::make_unique<Loop>(*open, IsLoopback(host), std::move(handler), bounds);
  const absl::Status started = loop->Start();
  if (!started.ok()) return started;
  return std::unique_ptr<HttpDaemon>(new HttpDaemon(std::move(loop)));
}

}  // namespace tilewire::service
