// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "tests/integration/hostile_requests.h"

namespace tilewire::testing {
namespace {

// Picture `n` has the same pixels in either layout.
void AppendPicture(int n, bool nhwc, std::string* bytes) {
  const std::vector<float> pixels = RandomFloats(kPictureFloats, n, 0, 1);
  constexpr int kArea = kPictureFloats / 3;
  for (int i = 0; i < kPictureFloats; ++i) {
    const float pixel = pixels[nhwc ? i % 3 * kArea + i / 3 : i];
    bytes->append(reinterpret_cast<const char*>(&pixel), sizeof(pixel));
  }
}

}  // namespace

inference::ModelInferRequest DigitsRequest(int batch, absl::string_view layout) {
  const bool nhwc = layout == "nhwc";
  inference::ModelInferRequest request;
  request.set_model_name("digits");
  auto* input = request.add_inputs();
  input->set_name("image");
  input->set_datatype("FP32");
  (*input->mutable_parameters())["layout"].set_string_param(std::string(layout));
  input->add_shape(batch);
  for (int dim : nhwc ? std::vector<int>{24, 20, 3} : std::vector<int>{3, 24, 20}) {
    input->add_shape(dim);
  }
  std::string* raw = request.add_raw_input_contents();
  for (int n = 0; n < batch; ++n) AppendPicture(n, nhwc, raw);
  request.add_outputs()->set_name("logits");
  request.add_outputs()->set_name("features");
  (*request.mutable_outputs(1)->mutable_parameters())["layout"].set_string_param(
      std::string(layout));
  return request;
}

inference::ModelInferRequest RandomRequest(Random* random) {
  inference::ModelInferRequest request =
      DigitsRequest(random->Integer(1, 2), random->Integer(0, 1) == 0 ? "nchw" : "nhwc");
  if (random->Integer(0, 1) == 0) request.set_model_version("1");
  if (random->Integer(0, 1) == 0) request.set_id(absl::StrCat(random->Integer(0, 999)));
  if (random->Integer(0, 1) == 0) request.clear_outputs();
  return request;
}

}  // namespace tilewire::testing
