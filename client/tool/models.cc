// SPDX-License-Identifier: Apache-2.0
//
// `tilewire models`: what the server has, and what each model takes and gives.
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/tool/command.h"

namespace tilewire::client {
namespace {

// A model that is not ready has no metadata to ask for, and the server logs each request that it
// refuses. The state is not known of a model that was named here, and on some servers of none.
absl::StatusOr<std::string> TextOf(Client* client, const ModelEntry& model) {
  const bool has_state = !model.state.empty();
  if (has_state && model.state != "READY") return ModelText(model, /*is_ready=*/false, {});
  auto metadata = client->Metadata(model.name, model.version);
  bool is_ready = has_state;
  if (!has_state) {
    if (!metadata.ok() && model.version.empty()) return metadata.status();
    const auto ready = client->Ready(model.name, model.version);
    is_ready = ready.ok() && *ready;
  }
  if (!metadata.ok()) return ModelText(model, is_ready, {});
  return ModelText(model, is_ready, *std::move(metadata));
}

int RunModels(const Server& server, const std::string& only) {
  auto client = server.Connect();
  if (!client.ok()) return Report(client.status());
  absl::StatusOr<std::vector<ModelEntry>> models = std::vector<ModelEntry>{{only, "", "", ""}};
  if (only.empty()) models = (*client)->ListModels();
  if (models.status().code() == absl::StatusCode::kUnimplemented) {
    absl::FPrintF(stderr,
                  "tilewire: this server does not list its models; ask for one: tilewire models "
                  "--model=NAME\n");
    return 1;
  }
  if (!models.ok()) return Report(models.status());
  if (models->empty()) absl::PrintF("The server has no models.\n");
  for (const ModelEntry& model : *models) {
    const auto text = TextOf(client->get(), model);
    if (text.ok()) {
      absl::PrintF("%s", *text);
    } else if (!only.empty()) {
      return Report(text.status());
    } else {
      absl::PrintF("%s", ModelText(model, /*is_ready=*/false, {}));
    }
  }
  return 0;
}

}  // namespace

void AddModelsCommand(CLI::App* app, const Server& server, int* exit_code) {
  CLI::App* command =
      app->add_subcommand("models", "List the models with their inputs, outputs and readiness");
  auto only = std::make_shared<std::string>();
  command->add_option("--model", *only, "only this one");
  command->callback([=, &server] { *exit_code = RunModels(server, *only); });
}

}  // namespace tilewire::client
