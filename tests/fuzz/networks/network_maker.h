// SPDX-License-Identifier: Apache-2.0
//
// Grows an ONNX model node by node. Each node is tried alone, on inputs of the same shapes and
// types, and kept only if the engine takes it there: a model that is made so is mostly one that can
// be served. Everything follows from the state of `random`.
#ifndef TESTS_FUZZ_NETWORKS_NETWORK_MAKER_H_
#define TESTS_FUZZ_NETWORKS_NETWORK_MAKER_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/memory/dims.h"
#include "engine/onnx/specialization.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {

using ElementType = onnx::TensorProto::DataType;
using Attributes = std::vector<onnx::AttributeProto>;

// A tensor of the model; one without a name is an input that is left out.
struct Made {
  std::string name;
  Dims dims;
  ElementType type = onnx::TensorProto::FLOAT;
  bool is_known = false;  // a constant

  bool exists() const { return !name.empty(); }
  int rank() const { return static_cast<int>(dims.size()); }
  // By axis, counted from the end where that is negative; 1 outside.
  int64_t size(int axis) const {
    const int d = axis < 0 ? axis + rank() : axis;
    return d >= 0 && d < rank() ? dims[d] : 1;
  }
};

inline std::vector<int64_t> ListOf(const Dims& dims) { return {dims.begin(), dims.end()}; }

class NetworkMaker {
 public:
  // Work is that of all nodes, in multiplications and moved elements.
  NetworkMaker(Random& random, int64_t opset, int64_t most_work);

  Random& random() { return random_; }
  int64_t opset() const { return opset_; }

  Made Input(Dims dims, ElementType type = onnx::TensorProto::FLOAT);
  // Multiples of 1/8 from `low` to `high`.
  Made Floats(Dims dims, float low = -1, float high = 1);
  Made Number(float number, int rank = 0);
  Made Integers(std::vector<int64_t> values);
  // Integers, or truth values, of a type from `low` to `high`.
  Made IntegersOf(Dims dims, ElementType type, int64_t low, int64_t high);

  // The outputs of the node, or nothing if it was refused. `op` is named as in the table of
  // operators.
  std::vector<Made> Nodes(const std::string& op, const std::vector<Made>& inputs,
                          const Attributes& attributes = {}, int outputs = 1);
  // The same of a node of one output, which has no name if it was refused, or if the first input
  // has none.
  Made Node(const std::string& op, const std::vector<Made>& inputs,
            const Attributes& attributes = {});

  // A tensor that is computed, mostly a late one; of this rank and type if there is one, else a new
  // input of few elements.
  Made Any();
  Made AnyOf(int least_rank, int most_rank, ElementType type = onnx::TensorProto::FLOAT);
  // Small sizes, in all at most 400 elements.
  Dims RandomDims(int rank);

  // Adds what computes nothing yet: outputs for what nothing reads.
  onnx::ModelProto Finish();
  const std::vector<Made>& inputs() const { return inputs_; }
  const std::set<std::string>& operators() const { return operators_; }
  // Operators of which the second reads what the first one gives, as "first second".
  const std::set<std::string>& neighbours() const { return neighbours_; }

 private:
  std::string NewName(const char* kind);
  Made Keep(Made made, onnx::TensorProto elements);
  // The outputs of a node alone, with outputs of unknown dims.
  std::vector<Made> Try(const onnx::NodeProto& node, const std::vector<Made>& inputs);
  Made Result(const reader::Operand& operand, const network::Network& network,
              const std::string& name);

  Random& random_;
  const int64_t opset_;
  int64_t work_left_;
  OnnxBuilder model_;
  std::map<std::string, onnx::TensorProto> known_;  // constants, by name
  std::vector<Made> inputs_, computed_;
  std::set<std::string> read_;
  std::set<std::string> operators_, neighbours_;
  std::map<std::string, std::string> operator_of_;  // by what it gives
  int names_ = 0;
};

}  // namespace tilewire::testing

#endif  // TESTS_FUZZ_NETWORKS_NETWORK_MAKER_H_
