// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/served_process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <limits>
#include <new>
#include <vector>

#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/engine.h"
#include "grpcpp/grpcpp.h"
#include "service/models/model_repository.h"
#include "service/server.h"
#include "tests/bench/lean_service.h"

namespace tilewire::bench {
namespace {

using Inference = inference::GRPCInferenceService;

constexpr absl::Duration kLongestStart = absl::Minutes(2);

// Serves `service` alone, on a port that is told once it answers.
absl::StatusOr<std::unique_ptr<grpc::Server>> StartServer(grpc::Service* service,
                                                          std::atomic<int>* told) {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::InternalError("a server beside ours does not start");
  told->store(port);
  return server;
}

}  // namespace

// The least that answers a ModelInfer: looks at nothing.
class ServedProcess::BareService final
    : public Inference::WithRawCallbackMethod_ModelInfer<Inference::CallbackService> {
 public:
  explicit BareService(Shared* shared) : shared_(shared) {}

  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer*,
                                       grpc::ByteBuffer* response) override {
    const auto bytes = static_cast<size_t>(shared_->answer_bytes.load());
    // As many slices as our answers have; the bytes belong to this service.
    const grpc::Slice slices[] = {
        grpc::Slice(std::string(64, 'h')),
        grpc::Slice(answer_.data(), std::min(bytes, answer_.size()), grpc::Slice::STATIC_SLICE)};
    *response = grpc::ByteBuffer(slices, 2);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  Shared* const shared_;
  const std::vector<char> answer_ = std::vector<char>(4 << 20);
};

absl::StatusOr<std::unique_ptr<ServedProcess>> ServedProcess::Start(const Served& served) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return absl::InternalError("no memory to share");
  auto process = std::unique_ptr<ServedProcess>(new ServedProcess(new (memory) Shared));
  process->child_ = fork();
  if (process->child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const absl::Status status = Serve(served, process->shared_);
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    _exit(1);
  }
  const absl::Time start = absl::Now();
  while (process->bare_port() == 0) {
    absl::SleepFor(absl::Milliseconds(10));
    const bool ended = waitpid(process->child_, nullptr, WNOHANG) != 0;
    if (ended || absl::Now() - start > kLongestStart) {
      return absl::InternalError("the server did not start");
    }
  }
  return process;
}

ServedProcess::~ServedProcess() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  munmap(shared_, sizeof(Shared));
}

absl::Status ServedProcess::Serve(const Served& served, Shared* shared) {
  ABSL_ASSIGN_OR_RETURN(const auto engine, Engine::Create({.threads = served.threads}));
  ABSL_ASSIGN_OR_RETURN(const auto models,
                        service::ModelRepository::OpenDirectory(served.repository, engine.get()));
  service::ServerOptions options;
  options.host = "127.0.0.1";
  options.port = 0;
  ABSL_ASSIGN_OR_RETURN(const auto server,
                        service::Server::Start(engine.get(), models.get(), options));
  std::unique_ptr<LeanService> lean;
  std::unique_ptr<grpc::Server> lean_server;
  if (!served.library.empty()) {
    ABSL_ASSIGN_OR_RETURN(lean, LeanService::Create(served.library, served.model, served.threads));
    ABSL_ASSIGN_OR_RETURN(lean_server, StartServer(lean.get(), &shared->lean_port));
  }
  CountAllocations(&shared->allocations);
  shared->port.store(server->port());
  BareService bare(shared);
  ABSL_ASSIGN_OR_RETURN(const auto bare_server, StartServer(&bare, &shared->bare_port));
  while (true) pause();
}

}  // namespace tilewire::bench
