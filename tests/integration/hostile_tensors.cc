// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/integration/hostile_requests.h"

namespace tilewire::testing {
namespace {

using Request = inference::ModelInferRequest;

// A request whose only input was spoiled.
template <typename Spoil>
std::string SpoiledInput(Random* random, Spoil spoil) {
  Request request = RandomRequest(random);
  spoil(&request, request.mutable_inputs(0));
  return request.SerializeAsString();
}

std::string WithDim(Random* random, int first, int64_t value) {
  return SpoiledInput(
      random, [&](Request*, auto* input) { input->set_shape(random->Integer(first, 3), value); });
}

std::string WithRank(Random* random) {
  return SpoiledInput(random, [random](Request*, auto* input) {
    const int64_t ranks[] = {0, 1, 2, 3, 5, 6, 12, 13, 1000, 100000};
    input->mutable_shape()->Resize(ranks[random->Integer(0, 9)], 1);
  });
}

std::string WithHugeBatch(Random* random) {
  return SpoiledInput(random, [random](Request* request, auto* input) {
    input->set_shape(0, random->Integer(100, int64_t{1} << 40));
    request->set_raw_input_contents(0, "four");
  });
}

// 5760 bytes a picture times a multiple of 2^57 is 0 modulo 2^64: the wrapped size is the true one.
std::string WithWrappingBatch(Random* random) {
  return SpoiledInput(random, [random](Request*, auto* input) {
    input->set_shape(0, (random->Integer(1, 63) << 57) + input->shape(0));
  });
}

std::string WithDatatype(Random* random) {
  return SpoiledInput(random, [random](Request*, auto* input) {
    const char* types[] = {"BOOL", "UINT8", "UINT64", "INT8",  "INT32", "FP16", "BF16",
                           "FP64", "BYTES", "fp32",   "FP32 ", "",      "float"};
    input->set_datatype(types[random->Integer(0, 12)]);
  });
}

std::string WithRawLength(Random* random) {
  return SpoiledInput(random, [random](Request* request, auto*) {
    std::string* raw = request->mutable_raw_input_contents(0);
    const int64_t longer = random->Integer(1, 4000), shorter = random->Integer(1, raw->size());
    const size_t lengths[] = {raw->size() - 1, raw->size() + 1, raw->size() + longer,
                              raw->size() - shorter, 0};
    raw->resize(lengths[random->Integer(0, 4)]);
  });
}

std::string WithRawEntries(Random* random) {
  return SpoiledInput(random, [random](Request* request, auto*) {
    if (random->Integer(0, 3) == 0) return request->clear_raw_input_contents();
    for (int64_t i = random->Integer(1, 1500); i > 0; --i) request->add_raw_input_contents("");
  });
}

void AddContents(Random* random, int64_t kind, int64_t count,
                 inference::InferTensorContents* contents) {
  for (; count > 0; --count) {
    switch (kind) {
      case 0:
        contents->add_bool_contents(true);
        break;
      case 1:
        contents->add_int_contents(random->Integer(128, INT32_MAX));
        break;
      case 2:
        contents->add_int64_contents(random->Integer(0, INT64_MAX - 1));
        break;
      case 3:
        contents->add_uint_contents(random->Integer(256, UINT32_MAX));
        break;
      case 4:
        contents->add_uint64_contents(random->Next());
        break;
      case 5:
        contents->add_fp64_contents(random->Uniform());
        break;
      case 6:
        contents->add_bytes_contents("0123");
        break;
      default:
        contents->add_fp32_contents(random->Uniform());
    }
  }
}

std::string WithRawAndTyped(Random* random) {
  return SpoiledInput(random, [random](Request*, auto* input) {
    AddContents(random, random->Integer(0, 7), random->Integer(1, kPictureFloats),
                input->mutable_contents());
  });
}

std::string WithOtherTypedField(Random* random) {
  return SpoiledInput(random, [random](Request* request, auto* input) {
    request->clear_raw_input_contents();
    const int64_t elements = kPictureFloats * random->Integer(1, 2);
    if (random->Integer(0, 1) == 0) AddContents(random, 7, elements, input->mutable_contents());
    AddContents(random, random->Integer(0, 6), elements, input->mutable_contents());
  });
}

std::string WithTypedCount(Random* random) {
  return SpoiledInput(random, [random](Request* request, auto* input) {
    request->clear_raw_input_contents();
    input->set_shape(0, 1);
    AddContents(random, 7, random->Integer(0, kPictureFloats - 1), input->mutable_contents());
  });
}

// Values that the datatype cannot hold, or a datatype that travels raw only.
std::string WithTypedDatatype(Random* random) {
  return SpoiledInput(random, [random](Request* request, auto* input) {
    const std::pair<const char*, int> types[] = {
        {"INT8", 1}, {"UINT8", 3}, {"FP16", 7}, {"BF16", 7}, {"FP16", 3}};
    const auto [name, field] = types[random->Integer(0, 4)];
    request->clear_raw_input_contents();
    input->set_datatype(name);
    AddContents(random, field, kPictureFloats, input->mutable_contents());
  });
}

std::string WithOddValues(Random* random) {
  return SpoiledInput(random, [random](Request* request, auto*) {
    using Limits = std::numeric_limits<float>;
    const float odd[] = {Limits::quiet_NaN(), Limits::signaling_NaN(), Limits::infinity(),
                         -Limits::infinity(), Limits::denorm_min(),    -1e-40f,
                         Limits::max(),       Limits::lowest()};
    std::string* raw = request->mutable_raw_input_contents(0);
    for (int64_t i = random->Integer(1, 500); i > 0; --i) {
      const float value = odd[random->Integer(0, 7)];
      std::memcpy(&(*raw)[4 * random->Integer(0, raw->size() / 4 - 1)], &value, 4);
    }
  });
}

std::string AsTyped(Random* random) {
  return SpoiledInput(random, [random](Request* request, auto* input) {
    request->clear_raw_input_contents();
    AddContents(random, 7, kPictureFloats * input->shape(0), input->mutable_contents());
  });
}

}  // namespace

std::vector<HostileKind> HostileTensors() {
  return {
      {"rank", kInvalid, WithRank},
      {"a dimension that the model fixes", kInvalid,
       [](Random* random) { return WithDim(random, 1, random->Integer(25, 1000)); }},
      {"a negative dimension", kInvalid,
       [](Random* random) {
         return WithDim(random, 0, random->Integer(0, 1) == 0 ? -1 : INT64_MIN);
       }},
      {"a zero dimension", kInvalid, [](Random* random) { return WithDim(random, 0, 0); }},
      {"a dimension of 2^40", kInvalid,
       [](Random* random) { return WithDim(random, 0, int64_t{1} << 40); }},
      {"sizes that overflow", kInvalid,
       [](Random* random) {
         return WithDim(random, 0, random->Integer(INT64_MAX / 5760, INT64_MAX - 1));
       }},
      {"sizes that wrap to the true one", kInvalid, WithWrappingBatch},
      {"a huge shape with four bytes", kInvalid, WithHugeBatch},
      {"datatype", kInvalid, WithDatatype},
      {"raw length", kInvalid, WithRawLength},
      {"raw entries", kInvalid, WithRawEntries},
      {"raw and typed together", kInvalid, WithRawAndTyped},
      {"typed contents of another kind", kInvalid, WithOtherTypedField},
      {"too few typed contents", kInvalid, WithTypedCount},
      {"typed contents that the datatype cannot hold", kInvalid, WithTypedDatatype},
      {"NaN, Inf and denormals are computed", kOk, WithOddValues},
      {"typed contents as they should be", kOk, AsTyped},
  };
}

}  // namespace tilewire::testing
