// SPDX-License-Identifier: Apache-2.0
//
// `tilewire slow`: which requests were slow on the server, and why.
#include <algorithm>
#include <memory>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/tables/plan_text.h"
#include "client/tables/slow_text.h"
#include "client/tool/command.h"

namespace tilewire::client {
namespace {

constexpr char kSlowExamples[] =
    R"(  tilewire slow                        # the ten slowest of the last hour
  tilewire slow cats                   # of one model
  tilewire slow cats --minutes=5 --most=50
  tilewire slow --json > slow.json     # every stage, in nanoseconds

The server keeps the eight slowest requests of each model and minute, for an
hour. A line says when the request came, how long it took, waited and ran, how
long requests of its shape usually run, and its id; the text below it what it
waited for, who ran beside it, whether its plan had to be made, and whether the
control group held the server back. The last line tells whether other processes
took the CPU in the last minute: running is the time that cores were held, and
includes that. `tilewire explain MODEL --live` shows where the time within runs
goes.)";

struct SlowOptions {
  std::string model;
  double minutes = 60;
  int most = 10;
  bool json = false;
};

int RunSlow(const Server& server, const SlowOptions& options) {
  v1::SlowRequestsRequest request;
  request.set_model(options.model);
  const absl::Time since = absl::Now() - absl::Minutes(options.minutes);
  request.set_since_ms(std::max<int64_t>(0, absl::ToUnixMillis(since)));
  request.set_most(options.most);
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  const auto slow = (*client)->SlowRequests(request);
  if (!slow.ok()) return Report(slow.status());
  absl::PrintF("%s", options.json ? MessageJson(*slow) : SlowText(*slow));
  return 0;
}

}  // namespace

void AddSlowCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command =
      app->add_subcommand("slow", "Show the slowest requests of the last hour, and why");
  command->footer(kSlowExamples);
  auto options = std::make_shared<SlowOptions>();
  command->add_option("model", options->model, "only requests of this model");
  command->add_option("--minutes", options->minutes, "how far to look back")
      ->check(Between(0.001, 1e6))
      ->capture_default_str();
  command->add_option("--most", options->most, "how many, 1 to 1000")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "everything, for programs");
  command->callback([=, &server] { *exit_code = RunSlow(server, *options); });
}

}  // namespace tilewire::client
