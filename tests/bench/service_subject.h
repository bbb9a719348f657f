// SPDX-License-Identifier: Apache-2.0
//
// The subject of the service's bench: models in a folder of their own, a model in this process with
// the request that a server would get for the same run, and a caller that sends it.
#ifndef TESTS_BENCH_SERVICE_SUBJECT_H_
#define TESTS_BENCH_SERVICE_SUBJECT_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "grpcpp/grpcpp.h"

namespace tilewire::bench {

// A folder of models that goes with it. Thread-compatible.
class Repository {
 public:
  // With one ONNX file, or without: an average over 600 KB, and some convolutions.
  explicit Repository(const std::string& model);
  ~Repository();

  std::string FileOf(const std::string& model) const;
  std::string path() const { return path_.string(); }
  // The models for what is short and for what fills the cores; perhaps the same.
  const std::string& small() const { return small_; }
  const std::string& large() const { return large_; }

 private:
  std::filesystem::path path_;
  std::string small_, large_;
};

// Immutable once loaded.
struct Subject {
  std::shared_ptr<const Model> model;
  Dims dims;
  std::string image;
  grpc::ByteBuffer request;

  absl::Status Run() const;  // in this process
};

// A model of one input; its open dimensions become `batch`.
//   kUnimplemented  the model has several inputs
absl::StatusOr<Subject> LoadSubject(Engine* engine, const Repository& repository,
                                    const std::string& name, int64_t batch = 1);

// One connection. Thread-compatible.
class Caller {
 public:
  explicit Caller(int port);
  // The bytes of the answer, or the server's refusal.
  absl::StatusOr<int64_t> Call(const grpc::ByteBuffer& request);

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_SERVICE_SUBJECT_H_
