// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime through its C interface, from a library that is opened at run time: nothing of it is
// linked or included. Functions are found by their slot in the interface's table, to which versions
// only append. Models of one input. Thread-compatible.
#ifndef TESTS_BENCH_ONNX_RUNTIME_H_
#define TESTS_BENCH_ONNX_RUNTIME_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/memory/data_type.h"

namespace tilewire::bench {

class OnnxRuntime {
 public:
  // `library` is a path of libonnxruntime.so; `threads` compute one run.
  //   kNotFound  no such library, or none of that interface
  static absl::StatusOr<std::unique_ptr<OnnxRuntime>> Open(const std::string& library, int threads);

  class Session {
   public:
    Session(const OnnxRuntime* runtime, void* session) : runtime_(runtime), session_(session) {}
    ~Session();
    // The first output, whatever its type, for one input of these dims.
    absl::StatusOr<std::vector<float>> Run(const std::vector<float>& input,
                                           const std::vector<int64_t>& dims) const {
      return Run({reinterpret_cast<const char*>(input.data()), input.size() * sizeof(float)},
                 DataType::kF32, dims);
    }
    // The same for the elements of an input of any type but bf16.
    absl::StatusOr<std::vector<float>> Run(absl::string_view input, DataType type,
                                           const std::vector<int64_t>& dims) const;

   private:
    friend class OnnxRuntime;
    const OnnxRuntime* const runtime_;
    void* const session_;
    std::string input_name_, output_name_;
  };

  // With all of its graph optimisations.
  absl::StatusOr<std::unique_ptr<Session>> Load(const std::string& model) const;

 private:
  template <typename... Args>
  absl::Status Call(int slot, Args... args) const;
  template <typename... Args>
  void Release(int slot, Args... args) const;
  absl::StatusOr<std::string> NameOf(int slot, void* session) const;

  void* const* table_ = nullptr;
  void* environment_ = nullptr;
  void* memory_ = nullptr;
};

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_ONNX_RUNTIME_H_
