// SPDX-License-Identifier: Apache-2.0
#include "service/http/monitoring.h"

#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "service/http/process_use.h"
#include "service/http/recent_text.h"
#include "service/http/server_metrics.h"
#include "service/http/status_reader.h"
#include "service/observe/steady_time.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

constexpr char kPlainText[] = "text/plain; charset=utf-8";
// The version of the format that Prometheus asks for.
constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr int kNotFound = 404, kUnavailable = 503;

HttpAnswer Health(const WatchedServer& server) {
  if (server.live()) return {.body = "live\n"};
  return {.status = kUnavailable, .body = "requests wait, and none comes to an end\n"};
}

HttpAnswer Readiness(const WatchedServer& server) {
  if (server.ready()) return {.body = "ready\n"};
  if (server.draining()) return {.status = kUnavailable, .body = "draining\n"};
  std::string body = "not ready\n";
  for (const ModelRepository::Served& missing : server.models->NotReady()) {
    const std::string reason = ReasonOf(*missing);
    absl::StrAppend(&body, "model ", Quoted(missing->name), " version ", missing->version, ": ",
                    ModelStateName(missing->state), reason.empty() ? "" : ": ", reason, "\n");
  }
  return {.status = kUnavailable, .body = std::move(body)};
}

// 128 bits that cannot be guessed, in hex.
std::string MakeNonce() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

HttpAnswer StatusAnswer(const WatchedServer& server) {
  const std::string nonce = MakeNonce();
  return {.body = StatusPage(ReadStatus(server), nonce),
          .headers = {{"Content-Security-Policy", StatusPolicy(nonce)},
                      {"Referrer-Policy", "no-referrer"}}};
}

HttpAnswer StatusJsonAnswer(const WatchedServer& server) {
  return {.body = StatusJson(ReadStatus(server))};
}

HttpAnswer NotFound(const std::vector<Page>& pages) {
  std::string body = "no such page; there are";
  for (const Page& page : pages) absl::StrAppend(&body, " ", page.path);
  return {.status = kNotFound, .body = body + "\n"};
}

}  // namespace

std::vector<Page> MonitoringPages(const WatchedServer& server) {
  const auto machine = std::make_shared<MachineCpu>("");
  const auto metrics =
      std::make_shared<RecentText>([server, machine] { return MetricsOf(server, machine.get()); });
  return {
      {"/metrics", kPrometheusText,
       [metrics] { return HttpAnswer{.body = metrics->Get(SteadyNow())}; }},
      {"/healthz", kPlainText, [server] { return Health(server); }},
      {"/readyz", kPlainText, [server] { return Readiness(server); }},
      {"/statusz", "text/html; charset=utf-8", [server] { return StatusAnswer(server); }},
      {"/statusz.json", "application/json", [server] { return StatusJsonAnswer(server); }},
  };
}

absl::StatusOr<std::unique_ptr<HttpDaemon>> ServePages(const std::string& host, int port,
                                                       std::vector<Page> pages) {
  const auto answer = [pages = std::move(pages)](absl::string_view path) {
    for (const Page& page : pages) {
      if (path != page.path) continue;
      HttpAnswer found = page.answer();
      found.content_type = page.content_type;
      return found;
    }
    return NotFound(pages);
  };
  return HttpDaemon::Start(host, port, answer);
}

}  // namespace tilewire::service
