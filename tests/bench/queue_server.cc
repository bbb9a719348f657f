// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/queue_server.h"

#include <limits>
#include <optional>

namespace tilewire::bench {
namespace {

// Calls that a thread's queue may receive while their handlers run.
constexpr int kCallsPerThread = 8;

}  // namespace

// Serves one request after the other.
struct QueueServer::Call {
  void Await(Service* service, grpc::ServerCompletionQueue* queue) {
    response.Clear();
    writer.reset();
    context.emplace();
    writer.emplace(&*context);
    received = false;
    service->RequestModelInfer(&*context, &request, &*writer, queue, queue, this);
  }

  std::optional<grpc::ServerContext> context;
  std::optional<grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>> writer;
  grpc::ByteBuffer request, response;
  bool received = false;
};

absl::StatusOr<std::unique_ptr<QueueServer>> QueueServer::Start(const Threads& threads,
                                                                Handler handler) {
  std::unique_ptr<QueueServer> server(new QueueServer(std::move(handler)));
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &server->port_);
  builder.RegisterService(&server->service_);
  for (int i = 0; i < threads.queues; ++i) server->queues_.push_back(builder.AddCompletionQueue());
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) return absl::InternalError("a queue's server does not start");
  for (const auto& queue : server->queues_) {
    for (int i = 0; i < threads.per_queue; ++i) {
      server->threads_.emplace_back([&server = *server, q = queue.get()] { server.Work(q); });
    }
  }
  return server;
}

void QueueServer::Work(grpc::ServerCompletionQueue* queue) {
  for (int i = 0; i < kCallsPerThread; ++i) (new Call)->Await(&service_, queue);
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
    auto* const call = static_cast<Call*>(tag);
    if (call->received || !ok) {
      call->Await(&service_, queue);
      continue;
    }
    call->received = true;
    const grpc::Status status = handler_(call->request, &call->response);
    call->request.Clear();
    call->writer->Finish(call->response, status, call);
  }
}

}  // namespace tilewire::bench
