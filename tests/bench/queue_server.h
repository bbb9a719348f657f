// SPDX-License-Identifier: Apache-2.0
//
// The leanest server on gRPC's completion queues: each of a few threads takes what has happened
// from its queue, runs what was received, and answers. ModelInfer only.
#ifndef TESTS_BENCH_QUEUE_SERVER_H_
#define TESTS_BENCH_QUEUE_SERVER_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "protos/open_inference.grpc.pb.h"

namespace tilewire::bench {

// Serves until the process ends.
class QueueServer {
 public:
  // Any of the threads may call it, several at a time.
  using Handler =
      std::function<grpc::Status(const grpc::ByteBuffer& request, grpc::ByteBuffer* response)>;
  struct Threads {
    int queues = 1, per_queue = 1;
  };

  //   kInternal  it does not start
  static absl::StatusOr<std::unique_ptr<QueueServer>> Start(const Threads& threads,
                                                            Handler handler);

  int port() const { return port_; }

 private:
  using Service = inference::GRPCInferenceService::WithRawMethod_ModelInfer<
      inference::GRPCInferenceService::AsyncService>;
  struct Call;

  explicit QueueServer(Handler handler) : handler_(std::move(handler)) {}
  void Work(grpc::ServerCompletionQueue* queue);

  const Handler handler_;
  int port_ = 0;
  Service service_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::thread> threads_;
};

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_QUEUE_SERVER_H_
