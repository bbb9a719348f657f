// SPDX-License-Identifier: Apache-2.0
//
// One case: a model, its inputs and the outputs that any implementation must give.
#ifndef TESTS_CONFORMANCE_CONFORMANCE_CASE_H_
#define TESTS_CONFORMANCE_CONFORMANCE_CASE_H_

#include <string>
#include <vector>

#include "engine/engine.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::testing {

// Which inputs are given at run time, each in its own type; all others become initializers.
// kNumbers: those that give no shapes, axes or truth values: not s32, s64 or bool.
enum class Given { kAll = 0, kNumbers, kFirst, kNone };

struct ConformanceResult {
  enum class Outcome { kPassed, kRefused, kWrong } outcome = Outcome::kRefused;
  Given given = Given::kAll;  // of a case that passed
  std::string reason;         // of one that did not
};

// The bytes of a ModelProto and of the TensorProtos.
struct CaseFiles {
  std::string model;
  std::vector<std::string> inputs, outputs;
};

// Reads an ONNX backend case: DIR/model.onnx, DIR/test_data_set_0/{input,output}_<i>.pb.
CaseFiles ReadCase(const std::string& directory);

// Loads and runs the case in the first way that the engine accepts. `scratch` is a
// file to write models to. A wrong answer in any accepted way is wrong.
ConformanceResult RunConformanceCase(Engine& engine, const CaseFiles& files,
                                     const std::string& scratch);

// Runs the case with dimension 0, then 1, of each of its inputs being 0, all inputs given. Each run
// is to be refused or to give outputs of as many bytes as their dims say; an answer of other bytes
// is wrong. Counts the runs that were answered.
struct EmptiedResult {
  int answered = 0;
  std::string wrong;
};
EmptiedResult RunEmptiedCase(Engine& engine, const CaseFiles& files, const std::string& scratch);

// Loads and runs the case with one thing of the first node spoilt at a time: an input left out, an
// attribute of integers at its limits, an input of integers at its limits. Each run is to be
// refused or answered; returns how many were answered.
int RunSpoiltCase(Engine& engine, const CaseFiles& files, const std::string& scratch);

}  // namespace tilewire::testing

#endif  // TESTS_CONFORMANCE_CONFORMANCE_CASE_H_
