// SPDX-License-Identifier: Apache-2.0
//
// Sparse initializers and constants, and files that ask for more than they hold.
#include "engine/onnx/file/sparse_tensor.h"

#include "tests/engine/onnx/fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::reader {
namespace {

using testing::StatusIs;

onnx::SparseTensorProto Sparse(const std::vector<float>& values,
                               const std::vector<int64_t>& indices,
                               const std::vector<int64_t>& index_dims,
                               const std::vector<int64_t>& dims) {
  onnx::SparseTensorProto sparse;
  sparse.mutable_values()->set_name("s");
  sparse.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  sparse.mutable_values()->add_dims(static_cast<int64_t>(values.size()));
  for (float value : values) sparse.mutable_values()->add_float_data(value);
  sparse.mutable_indices()->set_data_type(onnx::TensorProto::INT64);
  for (int64_t dim : index_dims) sparse.mutable_indices()->add_dims(dim);
  for (int64_t index : indices) sparse.mutable_indices()->add_int64_data(index);
  for (int64_t dim : dims) sparse.add_dims(dim);
  return sparse;
}

// y = x + s of [2,3], with s a sparse initializer, or a Constant.
OnnxBuilder SumWith(const onnx::SparseTensorProto& sparse, bool as_constant = false) {
  OnnxBuilder model;
  model.Input("x", {2, 3});
  if (as_constant) {
    onnx::AttributeProto value;
    value.set_name("sparse_value");
    value.set_type(onnx::AttributeProto::SPARSE_TENSOR);
    *value.mutable_sparse_tensor() = sparse;
    model.Node("Constant", {}, {"s"}, {value});
  } else {
    *model.proto().mutable_graph()->add_sparse_initializer() = sparse;
  }
  model.Node("Add", {"x", "s"}, {"y"}).Output("y");
  return model;
}

TEST(SparseTensorTest, BothFormsOfIndicesBecomeDense) {
  const onnx::SparseTensorProto linear = Sparse({7, 8}, {1, 5}, {2}, {2, 3}),
                                tuples = Sparse({7, 8}, {0, 1, 1, 2}, {2, 2}, {2, 3});
  for (const bool as_constant : {false, true}) {
    for (const onnx::SparseTensorProto& sparse : {linear, tuples}) {
      EXPECT_EQ(Computed(SumWith(sparse, as_constant), {{2, 3}}, {{1, 1, 1, 1, 1, 1}}),
                (std::vector<Elements>{{1, 8, 1, 1, 1, 9}}));
    }
  }
}

TEST(SparseTensorTest, NoValuesAreZeros) {
  EXPECT_EQ(Computed(SumWith(Sparse({}, {}, {0}, {2, 3})), {{2, 3}}, {{1, 2, 3, 4, 5, 6}}),
            (std::vector<Elements>{{1, 2, 3, 4, 5, 6}}));
}

TEST(SparseTensorTest, WhatDoesNotFitIsInvalid) {
  struct Case {
    onnx::SparseTensorProto sparse;
    const char* message;
  };
  const Case cases[] = {
      {Sparse({7, 8}, {1, 6}, {2}, {2, 3}), "index 1 is outside its dims"},
      {Sparse({7, 8}, {-1, 5}, {2}, {2, 3}), "index 0 is outside its dims"},
      {Sparse({7, 8}, {0, 1, 1, 3}, {2, 2}, {2, 3}), "index 1 is outside its dims"},
      {Sparse({7, 8}, {5, 5}, {2}, {2, 3}), "index 1 does not ascend"},
      {Sparse({7, 8}, {0, 1, 2}, {3}, {2, 3}), "indices that do not fit the values"},
      {Sparse({7, 8}, {0, 1, 2, 3, 4, 5}, {2, 3}, {2, 3}), "indices that do not fit the values"},
      {Sparse({7}, {0}, {1}, {-2, 3}), "malformed dims or values"},
      {Sparse({}, {}, {0}, {-2, 3}), "malformed dims or values"},
      {Sparse({7}, {0}, {1}, {int64_t{1} << 40, int64_t{1} << 40}), "malformed dims or values"},
  };
  for (const Case& c : cases) {
    for (const bool as_constant : {false, true}) {
      EXPECT_THAT(Open(SumWith(c.sparse, as_constant)).status(),
                  StatusIs(absl::StatusCode::kInvalidArgument, c.message));
    }
  }
}

TEST(SparseTensorTest, AFewBytesDoNotAskForGigabytes) {
  const int64_t most = kMostSparseElements;
  EXPECT_THAT(Open(SumWith(Sparse({7}, {0}, {1}, {most + 1}))).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, "elements, zeros included"));
  EXPECT_THAT(Open(SumWith(Sparse({7}, {0}, {1}, {kMostSparseInNode + 1}), true)).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, "elements, zeros included"));
  OnnxBuilder two = SumWith(Sparse({7}, {0}, {1}, {most / 2 + 1}));
  onnx::SparseTensorProto other = Sparse({7}, {0}, {1}, {most / 2 + 1});
  other.mutable_values()->set_name("other");
  *two.proto().mutable_graph()->add_sparse_initializer() = other;
  EXPECT_THAT(Open(two).status(), StatusIs(absl::StatusCode::kResourceExhausted, "'other'"));
}

TEST(SparseTensorTest, APartThatIsMissingIsNamed) {
  onnx::SparseTensorProto sparse = Sparse({7}, {0}, {1}, {2, 3});
  sparse.clear_indices();
  EXPECT_THAT(Open(SumWith(sparse)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "without values or indices"));
}

}  // namespace
}  // namespace tilewire::reader
