// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/service_sides.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/engine.h"
#include "grpcpp/grpcpp.h"
#include "service/engine_start.h"
#include "service/models/model_repository.h"
#include "service/server.h"
#include "tests/bench/lean_service.h"
#include "tests/bench/queue_server.h"
#include "tests/support/loaded_repository.h"

namespace tilewire::bench {
namespace {

using Inference = inference::GRPCInferenceService;
using Shared = ServedProcess::Shared;
using Threads = QueueServer::Threads;

constexpr size_t kMostBareBytes = 4 << 20;

absl::Status ServeUntilTheEnd(int port, Shared* shared) {
  shared->port.store(port);
  while (true) pause();
}

absl::Status ServeOurs(const Served& served, Shared* shared) {
  ABSL_ASSIGN_OR_RETURN(const auto engine, service::StartEngine({.threads = served.threads},
                                                                /*pin_threads=*/true));
  ABSL_ASSIGN_OR_RETURN(const auto models,
                        testing::OpenRepository(served.repository, engine.get()));
  service::ServerOptions options;
  options.host = "127.0.0.1";
  options.port = 0;
  ABSL_ASSIGN_OR_RETURN(const auto server,
                        service::Server::Start(engine.get(), models.get(), options));
  return ServeUntilTheEnd(server->port(), shared);
}

absl::Status ServeCallbacks(grpc::Service* service, Shared* shared) {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::InternalError("a callback server does not start");
  return ServeUntilTheEnd(port, shared);
}

absl::Status ServeQueue(const Threads& threads, QueueServer::Handler handler, Shared* shared) {
  ABSL_ASSIGN_OR_RETURN(const auto server, QueueServer::Start(threads, std::move(handler)));
  return ServeUntilTheEnd(server->port(), shared);
}

// As many slices as our answers have; the bytes live as long as the process.
void AnswerBare(const Shared& shared, grpc::ByteBuffer* response) {
  static const auto* const answer = new std::vector<char>(kMostBareBytes);
  const auto bytes = std::min(static_cast<size_t>(shared.answer_bytes.load()), answer->size());
  const grpc::Slice slices[] = {grpc::Slice(std::string(64, 'h')),
                                grpc::Slice(answer->data(), bytes, grpc::Slice::STATIC_SLICE)};
  *response = grpc::ByteBuffer(slices, 2);
}

class BareService final
    : public Inference::WithRawCallbackMethod_ModelInfer<Inference::CallbackService> {
 public:
  explicit BareService(Shared* shared) : shared_(shared) {}

  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer*,
                                       grpc::ByteBuffer* response) override {
    AnswerBare(*shared_, response);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  Shared* const shared_;
};

absl::Status ServeBareCallbacks(Shared* shared) {
  BareService service(shared);
  return ServeCallbacks(&service, shared);
}

absl::Status ServeBareQueue(const Threads& threads, Shared* shared) {
  const auto answer = [shared](const grpc::ByteBuffer&, grpc::ByteBuffer* response) {
    AnswerBare(*shared, response);
    return grpc::Status::OK;
  };
  return ServeQueue(threads, answer, shared);
}

absl::Status ServeLeanCallbacks(const Served& served, Shared* shared) {
  ABSL_ASSIGN_OR_RETURN(const auto lean,
                        LeanService::Create(served.library, served.model, served.threads));
  return ServeCallbacks(lean.get(), shared);
}

absl::Status ServeLeanQueue(const Served& served, const Threads& threads, Shared* shared) {
  ABSL_ASSIGN_OR_RETURN(const auto lean,
                        LeanService::Create(served.library, served.model, served.threads));
  const auto answer = [lean = lean.get()](const grpc::ByteBuffer& request,
                                          grpc::ByteBuffer* response) {
    return lean->Answer(request, response);
  };
  return ServeQueue(threads, answer, shared);
}

std::string QueueName(const char* kind, const Threads& threads) {
  return absl::StrCat(kind, threads.queues == 1 ? ", one queue, " : ", two queues, ",
                      threads.per_queue, threads.per_queue == 1 ? " thread" : " threads");
}

absl::Status Start(std::string name, const ServedProcess::Serve& serve, std::vector<Side>* sides) {
  ABSL_ASSIGN_OR_RETURN(auto process, ServedProcess::Start(serve));
  sides->push_back({std::move(name), std::move(process)});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Side>> StartSides(const Served& served) {
  std::vector<Side> sides;
  ABSL_RETURN_IF_ERROR(Start(
      kOurs, [&](Shared* s) { return ServeOurs(served, s); }, &sides));
  ABSL_RETURN_IF_ERROR(Start("bare, callbacks", ServeBareCallbacks, &sides));
  for (const Threads& threads : {Threads{1, 1}, Threads{1, 2}, Threads{2, 1}}) {
    const auto serve = [&](Shared* s) { return ServeBareQueue(threads, s); };
    ABSL_RETURN_IF_ERROR(Start(QueueName("bare", threads), serve, &sides));
  }
  if (served.library.empty()) return sides;
  const auto callbacks = [&](Shared* s) { return ServeLeanCallbacks(served, s); };
  ABSL_RETURN_IF_ERROR(Start("lean, callbacks", callbacks, &sides));
  for (const Threads& threads : {Threads{1, 1}, Threads{1, 4}}) {
    const auto serve = [&](Shared* s) { return ServeLeanQueue(served, threads, s); };
    ABSL_RETURN_IF_ERROR(Start(QueueName("lean", threads), serve, &sides));
  }
  return sides;
}

}  // namespace tilewire::bench
