// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "absl/strings/match.h"
#include "tests/fuzz/networks/node_guess.h"
#include "tests/support/random_choice.h"

namespace tilewire::testing {
namespace {

using onnx::TensorProto;

// Ranks and types of first inputs that are not any, or f32.
struct First {
  int least_rank = 0, most_rank = 8;
  std::vector<ElementType> types;
};
const std::map<std::string, First>& Firsts() {
  static const std::vector<ElementType> bytes = {TensorProto::UINT8, TensorProto::INT8};
  static const std::vector<ElementType> integers = {TensorProto::INT64, TensorProto::INT32,
                                                    TensorProto::UINT8};
  static const auto* const firsts =
      new std::map<std::string, First>{{"Conv", {3, 5, {}}},
                                       {"ConvTranspose", {3, 5, {}}},
                                       {"ConvInteger", {3, 5, bytes}},
                                       {"MatMulInteger", {1, 5, bytes}},
                                       {"QLinearConv", {3, 5, bytes}},
                                       {"QLinearMatMul", {2, 5, bytes}},
                                       {"DequantizeLinear", {0, 6, bytes}},
                                       {"MaxPool", {3, 5, {}}},
                                       {"AveragePool", {3, 5, {}}},
                                       {"LpPool", {3, 5, {}}},
                                       {"Gemm", {2, 2, {}}},
                                       {"LSTM", {3, 3, {}}},
                                       {"GRU", {3, 3, {}}},
                                       {"RNN", {3, 3, {}}},
                                       {"Attention", {3, 4, {}}},
                                       {"com.microsoft.MultiHeadAttention", {3, 3, {}}},
                                       {"GridSample", {4, 4, {}}},
                                       {"RoiAlign", {4, 4, {}}},
                                       {"DepthToSpace", {4, 4, {}}},
                                       {"SpaceToDepth", {4, 4, {}}},
                                       {"Where", {0, 8, {TensorProto::BOOL}}},
                                       {"Not", {0, 8, {TensorProto::BOOL}}},
                                       {"And", {0, 8, {TensorProto::BOOL}}},
                                       {"Or", {0, 8, {TensorProto::BOOL}}},
                                       {"Xor", {0, 8, {TensorProto::BOOL}}},
                                       {"BitShift", {0, 8, integers}},
                                       {"BitwiseAnd", {0, 8, integers}},
                                       {"BitwiseOr", {0, 8, integers}},
                                       {"BitwiseXor", {0, 8, integers}},
                                       {"BitwiseNot", {0, 8, integers}},
                                       {"OneHot", {0, 5, {TensorProto::INT64}}}};
  return *firsts;
}

}  // namespace

Made GuessFirst(NetworkMaker& maker, const reader::OpRow& row) {
  Random& random = maker.random();
  const std::string name(row.name);
  const auto first = Firsts().find(name);
  if (Chance(random, 8)) return maker.Any();
  if (first != Firsts().end()) {
    const First& f = first->second;
    return maker.AnyOf(f.least_rank, f.most_rank,
                       f.types.empty() ? TensorProto::FLOAT : PickOf(random, f.types));
  }
  if (absl::StartsWith(name, "com.microsoft.QLinear"))
    return maker.AnyOf(1, 5, Pick(random, {TensorProto::UINT8, TensorProto::INT8}));
  // Operators that move elements, and functions of elements, take all types.
  if (Chance(random, 15)) {
    return maker.AnyOf(0, 6,
                       Pick(random, {TensorProto::UINT8, TensorProto::INT8, TensorProto::INT32,
                                     TensorProto::INT64, TensorProto::BOOL, TensorProto::DOUBLE,
                                     TensorProto::FLOAT16, TensorProto::UINT16}));
  }
  return maker.AnyOf(0, 8);
}

}  // namespace tilewire::testing
