// SPDX-License-Identifier: Apache-2.0
//
// gRPC's server reflection over this server's own streams: gRPC's own takes a thread for each of
// them. Tells the services that are registered, and the files that define these and no others.
// Thread-safe.
#ifndef SERVICE_RPC_REFLECTION_H_
#define SERVICE_RPC_REFLECTION_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "protos/reflection.grpc.pb.h"
#include "protos/reflection_v1.grpc.pb.h"
#include "service/rpc/call_host.h"
#include "service/rpc/stream_call.h"

namespace tilewire::service {

class Reflection {
 public:
  using Alpha = grpc::reflection::v1alpha::ServerReflection;
  using V1 = grpc::reflection::v1::ServerReflection;

  // All that `host` points to must outlive the calls.
  explicit Reflection(const CallHost& host);

  grpc::Service* alpha() { return &alpha_; }
  grpc::Service* v1() { return &v1_; }

  // The full names of all services, before Await(), which is called before the queue starts.
  void Tell(const std::vector<std::string>& services);
  void Await(CallQueue* queue);
  void Drain();
  // As StreamMethod::AwaitNone(), of both.
  bool AwaitNoStreams();

 private:
  using Request = grpc::reflection::v1alpha::ServerReflectionRequest;
  using Response = grpc::reflection::v1alpha::ServerReflectionResponse;
  using RawAlpha = Alpha::WithRawMethod_ServerReflectionInfo<Alpha::AsyncService>;
  using RawV1 = V1::WithRawMethod_ServerReflectionInfo<V1::AsyncService>;

  template <typename Service>
  StreamMethod::Terms TermsOf(const Method& row, Service* service);
  absl::StatusOr<OwnedJob> Answer(const grpc::ByteBuffer& request, grpc::ByteBuffer* response);
  absl::Status Find(const Request& request, Response* response) const;
  absl::Status AddFile(const google::protobuf::FileDescriptor* file, Response* response) const;

  const CallHost host_;
  RawAlpha alpha_;
  RawV1 v1_;
  std::vector<std::string> services_;
  std::set<const google::protobuf::FileDescriptor*> files_;  // that may be told
  StreamMethod alpha_streams_, v1_streams_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_REFLECTION_H_
