// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/onnx_runtime.h"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "tests/bench/typed_elements.h"

namespace tilewire::bench {
namespace {

// Positions in the interface's function table, as version 5 has them.
enum Slot {
  kGetErrorMessage = 2,
  kCreateSession = 7,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetGraphOptimizationLevel = 23,
  kSessionGetInputName = 36,
  kSessionGetOutputName = 37,
  kCreateTensorWithData = 49,
  kGetTensorMutableData = 51,
  kGetTensorElementType = 60,
  kGetTensorShapeElementCount = 64,
  kGetTensorTypeAndShape = 65,
  kCreateCpuMemoryInfo = 69,
  kAllocatorFree = 76,
  kGetAllocatorWithDefaultOptions = 78,
  kReleaseStatus = 93,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseTensorTypeAndShape = 99,
  kReleaseSessionOptions = 100,
  kCreateEnvWithGlobalThreadPools = 119,
  kDisablePerSessionThreads = 120,
  kCreateThreadingOptions = 121,
  kSetGlobalIntraOpNumThreads = 147,
  kSetGlobalInterOpNumThreads = 148,
};
constexpr uint32_t kInterfaceVersion = 5;
constexpr int kAllOptimizations = 99, kErrorsOnly = 3;
// By their numbers in the interface.
constexpr DataType kTypes[] = {DataType::kUndef, DataType::kF32,  DataType::kU8,  DataType::kS8,
                               DataType::kU16,   DataType::kS16,  DataType::kS32, DataType::kS64,
                               DataType::kUndef, DataType::kBool, DataType::kF16, DataType::kF64,
                               DataType::kU32,   DataType::kU64};

int NumberOf(DataType type) {
  return static_cast<int>(std::find(std::begin(kTypes), std::end(kTypes), type) - kTypes);
}

struct ApiBase {
  void* const* (*get_api)(uint32_t version);
  const char* (*get_version)();
};

}  // namespace

template <typename... Args>
absl::Status OnnxRuntime::Call(int slot, Args... args) const {
  void* const status = reinterpret_cast<void* (*)(Args...)>(table_[slot])(args...);
  if (status == nullptr) return absl::OkStatus();
  const auto message = reinterpret_cast<const char* (*)(const void*)>(table_[kGetErrorMessage]);
  absl::Status error = absl::InternalError(absl::StrCat("ONNX Runtime: ", message(status)));
  Release(kReleaseStatus, status);
  return error;
}

template <typename... Args>
void OnnxRuntime::Release(int slot, Args... args) const {
  reinterpret_cast<void (*)(Args...)>(table_[slot])(args...);
}

absl::StatusOr<std::unique_ptr<OnnxRuntime>> OnnxRuntime::Open(const std::string& library,
                                                               int threads) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::NotFoundError(dlerror());
  const auto base = reinterpret_cast<const ApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  if (base == nullptr) return absl::NotFoundError(absl::StrCat(library, " is not an ONNX Runtime"));
  auto runtime = std::make_unique<OnnxRuntime>();
  runtime->table_ = base()->get_api(kInterfaceVersion);
  if (runtime->table_ == nullptr)
    return absl::NotFoundError(absl::StrCat(library, " lacks the interface's version 5"));
  void* options = nullptr;
  ABSL_RETURN_IF_ERROR(runtime->Call(kCreateThreadingOptions, &options));
  ABSL_RETURN_IF_ERROR(runtime->Call(kSetGlobalIntraOpNumThreads, options, threads));
  ABSL_RETURN_IF_ERROR(runtime->Call(kSetGlobalInterOpNumThreads, options, 1));
  ABSL_RETURN_IF_ERROR(runtime->Call(kCreateEnvWithGlobalThreadPools, int{kErrorsOnly}, "bench",
                                     options, &runtime->environment_));
  ABSL_RETURN_IF_ERROR(runtime->Call(kCreateCpuMemoryInfo, 1, 0, &runtime->memory_));
  return runtime;
}

absl::StatusOr<std::string> OnnxRuntime::NameOf(int slot, void* session) const {
  void* allocator = nullptr;
  char* name = nullptr;
  ABSL_RETURN_IF_ERROR(Call(kGetAllocatorWithDefaultOptions, &allocator));
  ABSL_RETURN_IF_ERROR(Call(slot, session, size_t{0}, allocator, &name));
  std::string copy = name;
  ABSL_RETURN_IF_ERROR(Call(kAllocatorFree, allocator, static_cast<void*>(name)));
  return copy;
}

absl::StatusOr<std::unique_ptr<OnnxRuntime::Session>> OnnxRuntime::Load(
    const std::string& model) const {
  void *options = nullptr, *handle = nullptr;
  ABSL_RETURN_IF_ERROR(Call(kCreateSessionOptions, &options));
  ABSL_RETURN_IF_ERROR(Call(kDisablePerSessionThreads, options));
  ABSL_RETURN_IF_ERROR(Call(kSetGraphOptimizationLevel, options, int{kAllOptimizations}));
  ABSL_RETURN_IF_ERROR(Call(kCreateSession, environment_, model.c_str(), options, &handle));
  Release(kReleaseSessionOptions, options);
  auto session = std::make_unique<Session>(this, handle);
  ABSL_ASSIGN_OR_RETURN(session->input_name_, NameOf(kSessionGetInputName, handle));
  ABSL_ASSIGN_OR_RETURN(session->output_name_, NameOf(kSessionGetOutputName, handle));
  return session;
}

OnnxRuntime::Session::~Session() { runtime_->Release(kReleaseSession, session_); }

absl::StatusOr<std::vector<float>> OnnxRuntime::Session::Run(
    absl::string_view input, DataType type, const std::vector<int64_t>& dims) const {
  void *value = nullptr, *output = nullptr, *shape = nullptr;
  const char *input_name = input_name_.c_str(), *output_name = output_name_.c_str();
  ABSL_RETURN_IF_ERROR(runtime_->Call(kCreateTensorWithData, runtime_->memory_,
                                      const_cast<char*>(input.data()), input.size(), dims.data(),
                                      dims.size(), NumberOf(type), &value));
  const absl::Status ran = runtime_->Call(kRun, session_, static_cast<void*>(nullptr), &input_name,
                                          &value, size_t{1}, &output_name, size_t{1}, &output);
  runtime_->Release(kReleaseValue, value);
  ABSL_RETURN_IF_ERROR(ran);
  void* elements = nullptr;
  size_t count = 0;
  int number = 0;
  ABSL_RETURN_IF_ERROR(runtime_->Call(kGetTensorTypeAndShape, output, &shape));
  ABSL_RETURN_IF_ERROR(runtime_->Call(kGetTensorShapeElementCount, shape, &count));
  ABSL_RETURN_IF_ERROR(runtime_->Call(kGetTensorElementType, shape, &number));
  ABSL_RETURN_IF_ERROR(runtime_->Call(kGetTensorMutableData, output, &elements));
  std::vector<float> result = FloatsOf(kTypes[number], elements, static_cast<int64_t>(count));
  runtime_->Release(kReleaseTensorTypeAndShape, shape);
  runtime_->Release(kReleaseValue, output);
  return result;
}

}  // namespace tilewire::bench
