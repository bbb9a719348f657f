// SPDX-License-Identifier: Apache-2.0
//
// Creates a single primitive on a server and runs it: ReLU of six floats.
//   bazel-bin/client/primitive 127.0.0.1:8001
#include <cstdio>

#include "client/client.h"

int main(int argc, char** argv) {
  namespace v1 = tilewire::v1;
  using tilewire::client::Tensor;
  auto client = tilewire::client::Client::Connect(argc > 1 ? argv[1] : "127.0.0.1:8001");
  if (!client.ok()) return std::puts(client.status().ToString().c_str()), 1;

  v1::ExecuteRequest request;
  v1::Eltwise* relu = request.mutable_primitive()->mutable_eltwise();
  relu->mutable_op()->set_algorithm(v1::ELTWISE_RELU);
  for (v1::MemoryDesc* desc : {relu->mutable_src(), relu->mutable_dst()}) {
    for (const int64_t dim : {1, 2, 1, 3}) desc->add_dims(dim);
    desc->set_type(v1::DATA_TYPE_F32);
    desc->set_tag("nchw");
  }
  v1::Tensor* src = request.add_inputs();
  src->set_argument(v1::ARGUMENT_SRC);
  *src->mutable_desc() = relu->src();
  src->set_content(Tensor::FromFloats("src", {6}, {-1, 2, -3, 4, -5, 6}).bytes);

  const auto result = (*client)->Execute(request, absl::Seconds(60));
  if (!result.ok()) return std::puts(result.status().ToString().c_str()), 1;
  std::printf("%s:", result->implementation().c_str());
  const Tensor dst{.name = "dst", .bytes = result->outputs(0).content()};
  for (const float value : *dst.View<float>()) std::printf(" %g", value);
  std::printf("\n");
  return 0;
}
