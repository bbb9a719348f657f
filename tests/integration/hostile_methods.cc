// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "protos/model_service.pb.h"
#include "tests/integration/hostile_requests.h"

namespace tilewire::testing {
namespace {

constexpr auto kDenied = grpc::StatusCode::PERMISSION_DENIED;
constexpr auto kNone = grpc::StatusCode::UNIMPLEMENTED;
constexpr char kModels[] = "tilewire.v1.ModelService";

// Bytes that begin a field and end inside it.
std::string CutOff(Random* random) {
  return absl::StrCat("\x0a\x7f", std::string(random->Integer(0, 100), 'x'));
}

std::string TooLong(Random* random) {
  return absl::StrCat("\x0a", std::string(random->Integer(70'000, 1 << 20), '\x7f'));
}

// A field that no message of these has, nested into itself.
std::string Nested(Random* random) {
  std::string bytes = "\x08\x01";
  for (int64_t depth = random->Integer(100, 400); depth > 0; --depth) {
    std::string size;
    for (size_t left = bytes.size(); left > 0; left >>= 7) {
      size += static_cast<char>((left & 127) | (left > 127 ? 128 : 0));
    }
    bytes = absl::StrCat("\x0a", size, bytes);
  }
  return bytes;
}

std::string Name(const std::string& name, const std::string& version = "") {
  inference::ModelConfigRequest request;
  request.set_name(name);
  request.set_version(version);
  return request.SerializeAsString();
}

// Without '/', which no answer may hold.
std::string Unknown(Random* random) {
  const int64_t size = random->Integer(1, 60'000);
  const char letter = static_cast<char>(random->Integer(1, 127));
  return Name(std::string(size, letter == '/' ? '.' : letter));
}

std::string BadVersion(Random* random) {
  const char* const versions[] = {"-1", "1x", "0x1", " 1", "99999999999999999999", "1.0"};
  return Name("digits", versions[random->Integer(0, 5)]);
}

std::string VersionAlone(Random*) { return Name("", "1"); }

std::string SlowOutOfRange(Random* random) {
  v1::SlowRequestsRequest request;
  request.set_model("digits");
  const int32_t most[] = {-1, 1001, std::numeric_limits<int32_t>::min(),
                          std::numeric_limits<int32_t>::max()};
  request.set_most(most[random->Integer(0, 3)]);
  return request.SerializeAsString();
}

std::string SlowBeyondTime(Random* random) {
  v1::SlowRequestsRequest request;
  const int64_t since[] = {-1, std::numeric_limits<int64_t>::min(),
                           std::numeric_limits<int64_t>::max()};
  request.set_since_ms(since[random->Integer(0, 2)]);
  return request.SerializeAsString();
}

std::string Setting(Random* random) {
  inference::LogSettingsRequest request;
  const char* const names[] = {"log_file", "log_info", "", "\n", "trace_file"};
  (*request.mutable_settings())[names[random->Integer(0, 4)]].set_string_param("/etc/passwd");
  return request.SerializeAsString();
}

std::string TracedSetting(Random* random) {
  inference::TraceSettingRequest request;
  const char* const names[] = {"trace_file", "trace_level", "trace_rate", "", "\n"};
  const char* const values[] = {"/etc/passwd", "TENSORS", "0", "-1", "\n"};
  auto& setting = (*request.mutable_settings())[names[random->Integer(0, 4)]];
  for (int64_t i = random->Integer(0, 100); i > 0; --i) {
    setting.add_value(values[random->Integer(0, 4)]);
  }
  return request.SerializeAsString();
}

std::string TracesOfNoModel(Random* random) {
  inference::TraceSettingRequest request;
  request.set_model_name(std::string(random->Integer(1, 60'000), '<'));
  return request.SerializeAsString();
}

std::string Region(Random* random) {
  inference::SystemSharedMemoryRegisterRequest request;
  request.set_name(std::string(random->Integer(0, 100), 'r'));
  request.set_key("/../../etc/passwd");
  request.set_offset(UINT64_MAX);
  request.set_byte_size(UINT64_MAX);
  return request.SerializeAsString();
}

std::string ModelFile(Random* random) {
  inference::RepositoryModelLoadRequest request;
  request.set_model_name("../digits");
  (*request.mutable_parameters())["file:../../x"].set_bytes_param(
      std::string(random->Integer(1, 1 << 20), 'x'));
  return request.SerializeAsString();
}

std::string Unload(Random*) {
  inference::RepositoryModelUnloadRequest request;
  request.set_model_name("digits");
  return request.SerializeAsString();
}

}  // namespace

std::vector<HostileMethod> HostileMethods() {
  std::vector<HostileMethod> all;
  for (const char* method :
       {"ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics", "TraceSetting",
        "LogSettings", "SystemSharedMemoryStatus", "CudaSharedMemoryRegister"}) {
    all.push_back({"cut off", method, kInvalid, CutOff});
    all.push_back({"too long", method, kInvalid, TooLong});
    all.push_back({"nested", method, kInvalid, Nested});
  }
  for (const char* method : {"LiveProfile", "SlowRequests", "ServerStatus"}) {
    all.push_back({"cut off", method, kInvalid, CutOff, kModels});
    all.push_back({"too long", method, kInvalid, TooLong, kModels});
    all.push_back({"nested", method, kInvalid, Nested, kModels});
    all.push_back({"no such model", method, kNotFound, Unknown, kModels});
  }
  const HostileMethod others[] = {
      {"a bad version", "LiveProfile", kInvalid, BadVersion, kModels},
      {"a version of no model", "LiveProfile", kInvalid, VersionAlone, kModels},
      {"too many or fewer than none", "SlowRequests", kInvalid, SlowOutOfRange, kModels},
      {"a time that there is not", "SlowRequests", kInvalid, SlowBeyondTime, kModels},
      {"no such model", "ModelConfig", kNotFound, Unknown},
      {"no such model", "ModelStatistics", kNotFound, Unknown},
      {"a bad version", "ModelConfig", kInvalid, BadVersion},
      {"a bad version", "ModelStatistics", kInvalid, BadVersion},
      {"a version of no model", "ModelStatistics", kInvalid, VersionAlone},
      {"a change of the log", "LogSettings", kDenied, Setting},
      {"a change of traces", "TraceSetting", kDenied, TracedSetting},
      {"traces of no model", "TraceSetting", kNotFound, TracesOfNoModel},
      {"a region", "SystemSharedMemoryRegister", kNone, Region},
      {"a region of a device", "CudaSharedMemoryRegister", kNone, Region},
      {"a file of a model", "RepositoryModelLoad", kDenied, ModelFile},
      {"no request at all", "RepositoryModelLoad", kDenied, CutOff},
      {"an unload", "RepositoryModelUnload", kDenied, Unload},
  };
  all.insert(all.end(), std::begin(others), std::end(others));
  return all;
}

}  // namespace tilewire::testing
