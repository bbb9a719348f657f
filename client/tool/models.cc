// SPDX-License-Identifier: Apache-2.0
//
// `tilewire models`: what the server has, and what each model takes and gives.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/tool/command.h"

namespace tilewire::client {
namespace {

std::string TensorsText(const std::vector<TensorMetadata>& tensors) {
  return absl::StrJoin(tensors, ", ", [](std::string* out, const TensorMetadata& tensor) {
    absl::StrAppend(out, tensor.name, " ", tensor.datatype, " ", ShapeText(tensor.shape));
  });
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
    auto metadata = (*client)->Metadata(model.name, model.version);
    auto ready = (*client)->Ready(model.name, model.version);
    if (!metadata.ok() && !only.empty()) return Report(metadata.status());
    const bool is_ready = ready.ok() && *ready;
    absl::PrintF("%-20s version %-4s %s\n", model.name,
                 !model.version.empty() || !metadata.ok() ? model.version
                                                          : absl::StrJoin(metadata->versions, ","),
                 absl::StrCat(is_ready ? "ready" : "not ready", model.reason.empty() ? "" : "  ",
                              model.reason));
    if (!metadata.ok()) continue;
    absl::PrintF("  inputs   %s\n  outputs  %s\n", TensorsText(metadata->inputs),
                 TensorsText(metadata->outputs));
    const auto precision = metadata->properties.find("precision");
    if (precision != metadata->properties.end())
      absl::PrintF("  precision %s\n", precision->second);
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
