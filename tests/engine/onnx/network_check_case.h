// SPDX-License-Identifier: Apache-2.0
//
// Networks of one operation that keeps its contract, or breaks it.
#ifndef TESTS_ENGINE_ONNX_NETWORK_CHECK_CASE_H_
#define TESTS_ENGINE_ONNX_NETWORK_CHECK_CASE_H_

#include <utility>
#include <vector>

#include "engine/network/network_check.h"
#include "tests/engine/onnx/fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::reader {

using network::Network;
using network::ValueId;

// A tensor of f32 unless a type is given.
struct T {
  Dims dims;
  DataType type = DataType::kF32;
};
constexpr DataType kU8 = DataType::kU8, kS32 = DataType::kS32;

struct CheckCase {
  const char* why;
  network::OperationParams params;
  std::vector<T> srcs;
  T dst;
  const char* lacks;  // null: the contract is kept
};

inline Network NetworkOfCheck(const CheckCase& c) {
  Network network;
  std::vector<ValueId> srcs;
  for (const T& src : c.srcs) {
    srcs.push_back(static_cast<ValueId>(network.values.size()));
    network.values.push_back({absl::StrCat("x", srcs.back()), src.type, src.dims});
  }
  network.inputs = srcs;
  const auto dst = static_cast<ValueId>(network.values.size());
  network.values.push_back({"y", c.dst.type, c.dst.dims});
  network.operations.push_back({"n", c.params, srcs, dst});
  network.outputs = {dst};
  return network;
}

inline void ExpectChecked(const std::vector<CheckCase>& cases) {
  for (const CheckCase& c : cases) {
    const absl::Status status = network::CheckNetwork(NetworkOfCheck(c));
    if (c.lacks == nullptr) {
      EXPECT_TRUE(status.ok()) << c.why << ": " << status;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << c.why;
      EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("node 'n' lacks ", c.lacks))) << c.why;
    }
  }
}

inline network::Operation WithResult(network::OperationParams params, std::vector<ValueId> srcs) {
  network::Operation operation{"n", std::move(params), std::move(srcs), 3};
  operation.more_dsts = {4};
  return operation;
}

// Sources 0 to 2, a result 3, a further one 4.
inline Network WithFurther(std::vector<T> tensors, network::Operation operation) {
  Network network;
  for (const T& tensor : tensors)
    network.values.push_back({absl::StrCat("x", network.values.size()), tensor.type, tensor.dims});
  network.inputs = {0, 1, 2};
  network.operations = {std::move(operation)};
  network.outputs = {3};
  return network;
}

}  // namespace tilewire::reader

#endif  // TESTS_ENGINE_ONNX_NETWORK_CHECK_CASE_H_
