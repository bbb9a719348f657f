// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/hostile_requests.h"

namespace tilewire::testing {
namespace {

using Request = inference::ModelInferRequest;

std::string Good(Random* random) { return RandomRequest(random).SerializeAsString(); }

std::string Truncated(Random* random) {
  const std::string bytes = Good(random);
  const bool in_the_head = random->Integer(0, 1) == 0;
  return bytes.substr(0, random->Integer(0, in_the_head ? 100 : bytes.size() - 1));
}

// The first byte does not start a field: what follows is never read as a model's name.
std::string Garbage(Random* random) {
  const int64_t most[] = {1, 10, 1000, 1 << 20};
  std::string bytes(random->Integer(1, most[random->Integer(0, 3)]), '\0');
  FillGarbage(bytes.data(), bytes.size(), random->Next());
  bytes[0] &= 0x07;
  return bytes;
}

// A field whose bytes are not there, after or before everything else.
std::string WithLengthBeyondTheEnd(Random* random) {
  std::string field(1, static_cast<char>(random->Integer(1, 15) << 3 | 2));
  for (int64_t i = random->Integer(3, 8); i > 0; --i) field.push_back('\xff');
  field.push_back('\x01');
  return random->Integer(0, 1) == 0 ? field + Good(random) : Good(random) + field;
}

std::string WithEndlessNumber(Random* random) {
  std::string field(1, static_cast<char>(random->Integer(1, 15) << 3 | random->Integer(0, 1) * 2));
  return field + std::string(random->Integer(10, 5000), '\xff') + Good(random);
}

std::string WithUnknownWireType(Random* random) {
  const int64_t types[] = {3, 4, 6, 7};
  const char tag = static_cast<char>(random->Integer(1, 15) << 3 | types[random->Integer(0, 3)]);
  return Good(random) + std::string(random->Integer(1, 5000), tag);
}

// A string must be UTF-8: one byte of a name is not.
std::string WithoutUtf8(Random* random) {
  std::string bytes = Good(random);
  const char* names[] = {"digits", "image", "FP32", "layout"};
  const char* name = names[random->Integer(0, 3)];
  bytes[bytes.find(name)] = '\xff';
  return bytes;
}

// Each entry has few bytes on the wire and many in memory.
std::string Crowded(Random* random) {
  Request request;
  request.set_model_name("digits");
  auto* input = request.add_inputs();
  input->set_name("image");
  const int64_t what = random->Integer(0, 2);
  for (int64_t i = random->Integer(1 << 16, 1 << 18); i > 0; --i) {
    if (what == 0) input->add_shape(1);
    if (what == 1) input->mutable_contents()->add_bytes_contents("");
    if (what == 2) (*input->mutable_parameters())[std::to_string(i)];
  }
  input->set_datatype("FP32");
  return request.SerializeAsString();
}

std::string WithUnknownFields(Random* random) {
  std::string bytes;
  for (int64_t i = random->Integer(1, 1000); i > 0; --i) {
    bytes += std::string("\xf8\x7d", 2);  // field 2015, a number
    bytes.push_back(static_cast<char>(random->Integer(0, 127)));
  }
  return random->Integer(0, 1) == 0 ? bytes + Good(random) : Good(random) + bytes;
}

}  // namespace

std::vector<HostileKind> HostileWireFormat() {
  return {
      {"nothing at all", kInvalid, [](Random*) { return std::string(); }},
      {"truncated", kInvalid, Truncated},
      {"garbage", kInvalid, Garbage},
      {"a length beyond the end", kInvalid, WithLengthBeyondTheEnd},
      {"an endless number", kInvalid, WithEndlessNumber},
      {"an unknown wire type", kInvalid, WithUnknownWireType},
      {"crowds of small entries", kInvalid, Crowded},
      {"a string that is not UTF-8", kInvalid, WithoutUtf8},
      {"unknown fields are ignored", kOk, WithUnknownFields},
  };
}

}  // namespace tilewire::testing
