// SPDX-License-Identifier: Apache-2.0
//
// `tilewire probe`: is the server healthy? For containers and scripts.
#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/tool/command.h"

namespace tilewire::client {

void AddProbeCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "probe", "Ask for the server's health; exit status 0 if it serves, else 1");
  auto model = std::make_shared<std::string>();
  auto timeout_s = std::make_shared<double>(2);
  command->add_option("--model", *model, "ask for this model's health, not the server's");
  command->add_option("--timeout", *timeout_s, "seconds for connection and answer together")
      ->check(Between(0.001, 3600.0))
      ->capture_default_str();
  command->callback([=, &server] {
    const absl::Time deadline = absl::Now() + absl::Seconds(*timeout_s);
    Server probed = server;
    probed.connect_timeout_s = *timeout_s;
    auto client = probed.Connect();
    const absl::Status health =
        client.ok() ? (*client)->Health(*model, deadline - absl::Now()) : client.status();
    if (health.ok())
      absl::PrintF("%s serves%s\n", server.address, model->empty() ? "" : " " + *model);
    *exit_code = Report(health);
  });
}

}  // namespace tilewire::client
