// SPDX-License-Identifier: Apache-2.0
//
// Lists of operations of many families, as in families.txt, and the two sides that run them: ours
// and the peer at its best, one thread, scratchpads and weights brought along in the layouts that
// each side chose. Thread-compatible.
#ifndef TESTS_BENCH_OPERATION_H_
#define TESTS_BENCH_OPERATION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/cpu/isa.h"

namespace tilewire::bench {

struct Operation {
  std::string family, name, kind;
  std::map<std::string, int64_t> sizes;

  int64_t at(const char* size) const { return sizes.at(size); }
  // u8 x s8 to u8 with a scale for each output channel, or one of matmul; f32 otherwise.
  bool IsInteger() const { return kind.starts_with("u8s8_"); }
  int64_t out() const { return (at("in") + 2 * at("p") - at("k")) / at("s") + 1; }
};

// Lines that do not name an operation are left out.
std::vector<Operation> ReadOperations(const std::string& path);

class RunnableOperation {
 public:
  virtual ~RunnableOperation() = default;
  virtual void Run() = 0;
  virtual std::string name() const = 0;  // of the implementation
  // For an operation that computes nothing: the size of a copy that reads and writes as much; else
  // 0.
  virtual int64_t MovedBytes() const { return 0; }
};

// Ends the process with a message where the side does not implement the operation.
std::unique_ptr<RunnableOperation> MakeOurs(const Operation& operation, cpu::Isa max_isa);
// In the fastest of the layouts nChw16c, nChw8c, nhwc and nchw where the peer takes what it is
// given.
std::unique_ptr<RunnableOperation> MakeOneDnn(const Operation& operation);
// oneDNN's; of an operation that it does not have, our reference implementation.
std::unique_ptr<RunnableOperation> MakePeer(const Operation& operation, cpu::Isa max_isa);

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_OPERATION_H_
