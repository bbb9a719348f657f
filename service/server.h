// SPDX-License-Identifier: Apache-2.0
//
// The gRPC server: services, health and reflection on one port. Thread-compatible.
#ifndef SERVICE_SERVER_H_
#define SERVICE_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "grpcpp/grpcpp.h"
#include "service/models/model_repository.h"
#include "service/rpc/inference_service.h"
#include "service/rpc/model_service.h"
#include "service/rpc/primitive_service.h"
#include "service/schedule/scheduler.h"

namespace tilewire::service {

struct ServerOptions {
  std::string host = "0.0.0.0";
  int port = 8001;                                // 0: any that is free
  int max_queue = 256;                            // requests that wait
  int64_t max_message_bytes = int64_t{64} << 20;  // both ways
};

class Server {
 public:
  // Engine and models must outlive the server.
  //   kUnavailable  the port is in use, or the host is none of this machine's
  static absl::StatusOr<std::unique_ptr<Server>> Start(Engine* engine,
                                                       const ModelRepository* models,
                                                       const ServerOptions& options);
  ~Server();  // drains

  int port() const { return port_; }
  // A connection without a network.
  std::shared_ptr<grpc::Channel> InProcessChannel();

  // Health turns NOT_SERVING and new requests are refused; returns at once. May be called again.
  void StartDrain();
  // StartDrain(); returns when every admitted request has been answered and the port is closed.
  void Drain();

 private:
  Server(Engine* engine, const ModelRepository* models, const ServerOptions& options);
  void PublishHealth(const ModelRepository& models);

  Scheduler scheduler_;
  InferenceService inference_;
  PrimitiveService primitives_;
  ModelService plans_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tilewire::service

#endif  // SERVICE_SERVER_H_
