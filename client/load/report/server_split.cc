// SPDX-License-Identifier: Apache-2.0
#include "client/load/report/server_split.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>

#include "protos/open_inference.pb.h"

namespace tilewire::client {
namespace {

std::optional<absl::Duration> Microseconds(const inference::ModelInferResponse& response,
                                           const char* name) {
  const auto found = response.parameters().find(name);
  if (found == response.parameters().end()) return std::nullopt;
  const inference::InferParameter& value = found->second;
  switch (value.parameter_choice_case()) {
    case inference::InferParameter::kInt64Param:
      return absl::Microseconds(value.int64_param());
    case inference::InferParameter::kUint64Param:
      return absl::Microseconds(static_cast<double>(value.uint64_param()));
    case inference::InferParameter::kDoubleParam:
      return absl::Microseconds(value.double_param());
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<ServerSplit> SplitOf(const grpc::ByteBuffer& answer) {
  inference::ModelInferResponse response;
  grpc::ByteBuffer bytes = answer;
  if (!grpc::GenericDeserialize<grpc::ProtoBufferReader, google::protobuf::Message>(&bytes,
                                                                                    &response)
           .ok()) {
    return std::nullopt;
  }
  const auto compute = Microseconds(response, "compute_us");
  if (!compute) return std::nullopt;
  const auto reorder = Microseconds(response, "reorder_us");
  return ServerSplit{
      .compute = std::max(*compute - reorder.value_or(absl::ZeroDuration()), absl::ZeroDuration()),
      .queue = Microseconds(response, "queue_us"),
      .reorder = reorder,
      .encode = Microseconds(response, "encode_us")};
}

}  // namespace tilewire::client
