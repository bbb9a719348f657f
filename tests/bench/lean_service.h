// SPDX-License-Identifier: Apache-2.0
//
// The leanest server around ONNX Runtime: it answers ModelInfer of one model of one f32 input, on
// the thread that receives it and with generated messages, and checks nothing. What our server does
// beyond that (queues, limits, deadlines, layouts, statistics) it does not have.
#ifndef TESTS_BENCH_LEAN_SERVICE_H_
#define TESTS_BENCH_LEAN_SERVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "protos/open_inference.grpc.pb.h"
#include "tests/bench/onnx_runtime.h"

namespace tilewire::bench {

// On gRPC's callbacks, or on the threads of a QueueServer by Answer().
class LeanService final : public inference::GRPCInferenceService::CallbackService {
 public:
  // `library` is a path of libonnxruntime.so, `threads` compute one run.
  //   kNotFound, kInternal  as OnnxRuntime
  static absl::StatusOr<std::unique_ptr<LeanService>> Create(const std::string& library,
                                                             const std::string& model, int threads);

  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const inference::ModelInferRequest* request,
                                       inference::ModelInferResponse* response) override;

  // Parses and serialises as generated code does.
  grpc::Status Answer(const grpc::ByteBuffer& request, grpc::ByteBuffer* response) const;

 private:
  LeanService() = default;

  std::unique_ptr<OnnxRuntime> runtime_;
  std::unique_ptr<OnnxRuntime::Session> session_;
};

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_LEAN_SERVICE_H_
