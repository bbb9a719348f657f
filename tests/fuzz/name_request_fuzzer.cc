// SPDX-License-Identifier: Apache-2.0
//
// Requests that hold names and numbers only. The first byte says which, the second is the size of
// the slices. What is accepted must survive being written and read again.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "protos/model_service.pb.h"
#include "protos/open_inference.pb.h"
#include "protos/tilewire.pb.h"
#include "service/wire/message_limits.h"
#include "tests/fuzz/slices.h"

namespace tilewire::service {
namespace {

std::vector<const google::protobuf::Message*> Requests() {
  return {&inference::ServerLiveRequest::default_instance(),
          &inference::ServerReadyRequest::default_instance(),
          &inference::ModelReadyRequest::default_instance(),
          &inference::ServerMetadataRequest::default_instance(),
          &inference::ModelMetadataRequest::default_instance(),
          &inference::RepositoryIndexRequest::default_instance(),
          &v1::ExplainRequest::default_instance(),
          &v1::LiveProfileRequest::default_instance(),
          &v1::SlowRequestsRequest::default_instance(),
          &v1::ListImplementationsRequest::default_instance(),
          &v1::CacheStatisticsRequest::default_instance(),
          &inference::ModelConfigRequest::default_instance(),
          &inference::ModelStatisticsRequest::default_instance(),
          &inference::RepositoryModelLoadRequest::default_instance(),
          &inference::RepositoryModelUnloadRequest::default_instance(),
          &inference::SystemSharedMemoryRegisterRequest::default_instance(),
          &inference::CudaSharedMemoryRegisterRequest::default_instance(),
          &inference::TraceSettingRequest::default_instance(),
          &inference::LogSettingsRequest::default_instance(),
          &v1::ServerStatusRequest::default_instance()};
}

}  // namespace
}  // namespace tilewire::service

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace tilewire::service;
  static const auto requests = Requests();
  if (size < 2) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(bytes) + 2, size - 2);
  const auto request =
      std::unique_ptr<google::protobuf::Message>(requests[bytes[0] % requests.size()]->New());
  if (!ParseLimited(tilewire::fuzz::InSlices(text, bytes[1]), request.get()).ok()) return 0;
  const std::string written = request->SerializeAsString();
  const auto again = std::unique_ptr<google::protobuf::Message>(request->New());
  TILEWIRE_CHECK(again->ParseFromString(written), "what was accepted can be read again");
  return 0;
}
