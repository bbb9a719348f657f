// SPDX-License-Identifier: Apache-2.0
#include "service/server.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "grpc/grpc.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "service/wire/message_limits.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

// How long streams that do not end by themselves (health's Watch) may hold up the end.
constexpr std::chrono::milliseconds kShutdownGrace{500};

// A model whose every request is refused serves nobody: better said before the first one comes.
void WarnOfModelsBeyondMessages(const ModelRepository& models, int64_t max_message_bytes) {
  for (const std::string& name : models.Names()) {
    for (const int64_t version : models.Versions(name)) {
      const auto served = models.FindLoaded(name, absl::StrCat(version));
      if (!served.ok()) continue;
      const ModelSignature& signature = (*served)->model->signature();
      const bool inputs_fit = FitMessage(signature.inputs, max_message_bytes);
      if (inputs_fit && FitMessage(signature.outputs, max_message_bytes)) continue;
      spdlog::warn(
          "model '{}' version {}: the {} of one image exceed a message of {} MB; raise "
          "--max_message_mb",
          name, version, inputs_fit ? "outputs" : "inputs", max_message_bytes >> 20);
    }
  }
}

}  // namespace

Server::Server(Engine* engine, const ModelRepository* models, const ServerOptions& options)
    : scheduler_(&engine->arena(), options.max_queue),
      inference_(models, &scheduler_, options.max_message_bytes),
      primitives_(engine, &scheduler_, options.max_message_bytes),
      plans_(models, &scheduler_, options.max_message_bytes) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Engine* engine, const ModelRepository* models,
                                                      const ServerOptions& options) {
  // For as long as the process lives: gRPC's last shutdown waits up to ten seconds for a poll that
  // nobody wakes if large answers were written before.
  static const bool kept = (grpc_init(), true);
  (void)kept;
  auto server = std::unique_ptr<Server>(new Server(engine, models, options));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  const bool ipv6 = options.host.find(':') != std::string::npos;
  const std::string address =
      absl::StrCat(ipv6 ? "[" : "", options.host, ipv6 ? "]" : "", ":", options.port);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &server->port_);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  builder.SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes));
  builder.RegisterService(&server->inference_);
  builder.RegisterService(&server->primitives_);
  builder.RegisterService(&server->plans_);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || server->port_ == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address,
                     ": no such address here, or the port is in use or not allowed"));
  }
  WarnOfModelsBeyondMessages(*models, options.max_message_bytes);
  server->PublishHealth(*models);
  return server;
}

Server::~Server() { Drain(); }

void Server::PublishHealth(const ModelRepository& models) {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  health->SetServingStatus("", true);
  health->SetServingStatus(inference::GRPCInferenceService::service_full_name(), true);
  health->SetServingStatus(v1::PrimitiveService::service_full_name(), true);
  health->SetServingStatus(v1::ModelService::service_full_name(), true);
  for (const std::string& name : models.Names()) {
    health->SetServingStatus(name, models.FindLoaded(name, "").ok());
  }
}

std::shared_ptr<grpc::Channel> Server::InProcessChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return server_->InProcessChannel(arguments);
}

void Server::StartDrain() {
  if (server_ != nullptr) server_->GetHealthCheckService()->SetServingStatus(false);
  scheduler_.Drain();
}

void Server::Drain() {
  StartDrain();
  scheduler_.WaitIdle();
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  server_->Wait();
  server_.reset();
}

}  // namespace tilewire::service
