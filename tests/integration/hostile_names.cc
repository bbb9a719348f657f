// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "tests/integration/hostile_requests.h"

namespace tilewire::testing {
namespace {

using Request = inference::ModelInferRequest;

constexpr int64_t kMegabyte = 1 << 20;

// 1 to `most` letters.
std::string Letters(Random* random, int64_t most = 40) {
  std::string letters(random->Integer(1, most), 'x');
  for (size_t i = 0; i < std::min<size_t>(letters.size(), 100); ++i) {
    letters[i] = static_cast<char>(random->Integer('A', 'Z'));
  }
  return letters;
}

std::string Megabyte(Random* random) { return Letters(random, 9) + std::string(kMegabyte, 'x'); }

// A mistake that a client may make in a name: longer, shorter, another case, a control character,
// another.
std::string Misspelt(Random* random, std::string name) {
  switch (random->Integer(0, 6)) {
    case 0:
      return name + Letters(random);
    case 1:
      return name.substr(0, random->Integer(1, name.size() - 1));
    case 2:
      name[0] = static_cast<char>(name[0] - 'a' + 'A');
      return name;
    case 3:
      return name + '\0';
    case 4:
      return name + "\n\r\x7f\"'";
    case 5:
      return "\xc3\xa4\xe2\x82\xac" + name;
    default:
      return Letters(random, 200);
  }
}

template <typename Spoil>
std::string Spoiled(Random* random, Spoil spoil) {
  Request request = RandomRequest(random);
  spoil(&request);
  return request.SerializeAsString();
}

std::string WithModel(Random* random, const std::string& name) {
  return Spoiled(random, [&name](Request* request) { request->set_model_name(name); });
}

std::string WithVersion(Random* random) {
  const std::string versions[] = {"1.0",
                                  "-1",
                                  "+1",
                                  " 1",
                                  "1 ",
                                  "0x1",
                                  "latest",
                                  "1e0",
                                  "99999999999999999999",
                                  std::string("1\0", 2),
                                  Letters(random),
                                  Megabyte(random)};
  return Spoiled(random, [&](Request* request) {
    request->set_model_version(versions[random->Integer(0, 11)]);
  });
}

std::string WithInputName(Random* random) {
  const std::string name =
      random->Integer(0, 9) == 0 ? Megabyte(random) : Misspelt(random, "image");
  return Spoiled(random, [&](Request* request) {
    request->mutable_inputs(0)->set_name(random->Integer(0, 9) == 0 ? "" : name);
  });
}

// One more input with contents: the model's own again, or one it does not have.
std::string WithMoreInputs(Random* random) {
  return Spoiled(random, [random](Request* request) {
    for (int64_t i = random->Integer(1, 20); i > 0; --i) {
      *request->add_inputs() = request->inputs(0);
      request->add_raw_input_contents(request->raw_input_contents(0));
    }
    if (random->Integer(0, 1) == 0) {
      request->mutable_inputs(random->Integer(0, request->inputs_size() - 1))
          ->set_name(Letters(random));
    }
  });
}

std::string WithoutInputs(Random* random) {
  return Spoiled(random, [random](Request* request) {
    request->clear_inputs();
    if (random->Integer(0, 1) == 0) request->clear_raw_input_contents();
  });
}

std::string WithOutputName(Random* random) {
  const std::string name =
      random->Integer(0, 9) == 0 ? Megabyte(random) : Misspelt(random, "features");
  return Spoiled(random, [&](Request* request) {
    request->add_outputs()->set_name(random->Integer(0, 9) == 0 ? "" : name);
  });
}

std::string WithOutputTwice(Random* random) {
  return Spoiled(random, [random](Request* request) {
    request->clear_outputs();
    for (int64_t i = random->Integer(3, 3000); i > 0; --i) {
      request->add_outputs()->set_name(i % 2 == 0 ? "logits" : "features");
    }
  });
}

std::string WithAMillionOutputs(Random* random) {
  std::string bytes = RandomRequest(random).SerializeAsString();
  for (int i = 0; i < 1000000; ++i) bytes += std::string_view("\x32\x03\x0a\x01x", 5);
  return bytes;
}

// Somewhere that `layout` is read.
inference::InferParameter* LayoutOf(Random* random, Request* request) {
  if (random->Integer(0, 1) == 0) {
    return &(*request->mutable_inputs(0)->mutable_parameters())["layout"];
  }
  request->clear_outputs();
  request->add_outputs()->set_name("features");
  return &(*request->mutable_outputs(0)->mutable_parameters())["layout"];
}

std::string WithLayoutOfAnotherKind(Random* random) {
  return Spoiled(random, [random](Request* request) {
    inference::InferParameter* layout = LayoutOf(random, request);
    switch (random->Integer(0, 4)) {
      case 0:
        return layout->set_bool_param(true);
      case 1:
        return layout->set_int64_param(random->Next());
      case 2:
        return layout->set_double_param(random->Uniform());
      case 3:
        return layout->set_uint64_param(random->Next());
      default:
        return layout->clear_parameter_choice();
    }
  });
}

std::string WithUnknownLayout(Random* random) {
  const std::string words[] = {
      "CHWN", "nChw16c", "", "any", "nchw ", Misspelt(random, "nhcw"), Megabyte(random)};
  return Spoiled(random, [&](Request* request) {
    LayoutOf(random, request)->set_string_param(words[random->Integer(0, 6)]);
  });
}

std::string WithLayoutOfAMatrix(Random* random) {
  return Spoiled(random, [](Request* request) {
    request->clear_outputs();
    request->add_outputs()->set_name("logits");
    (*request->mutable_outputs(0)->mutable_parameters())["layout"].set_string_param("nhwc");
  });
}

// The shape is in the order of one layout, the parameter names the other.
std::string WithTheOtherLayout(Random* random) {
  const bool nhwc = random->Integer(0, 1) == 0;
  Request request = DigitsRequest(random->Integer(1, 2), nhwc ? "nhwc" : "nchw");
  (*request.mutable_inputs(0)->mutable_parameters())["layout"].set_string_param(nhwc ? "nchw"
                                                                                     : "nhwc");
  return request.SerializeAsString();
}

void AddUnknown(Random* random, int64_t count,
                google::protobuf::Map<std::string, inference::InferParameter>* parameters) {
  for (; count > 0; --count) (*parameters)[Letters(random)].set_int64_param(random->Next());
}

std::string WithUnknownParameters(Random* random) {
  return Spoiled(random, [random](Request* request) {
    AddUnknown(random, random->Integer(0, 500), request->mutable_parameters());
    AddUnknown(random, random->Integer(0, 500), request->mutable_inputs(0)->mutable_parameters());
    for (auto& output : *request->mutable_outputs()) {
      AddUnknown(random, random->Integer(0, 500), output.mutable_parameters());
    }
  });
}

std::string WithId(Random* random) {
  const std::string ids[] = {"", Megabyte(random), Letters(random), std::string("\0\n", 2)};
  return Spoiled(random, [&](Request* request) { request->set_id(ids[random->Integer(0, 3)]); });
}

}  // namespace

std::vector<HostileKind> HostileNames() {
  return {
      {"no model name", kInvalid, [](Random* random) { return WithModel(random, ""); }},
      {"an unknown model", kNotFound,
       [](Random* random) { return WithModel(random, Misspelt(random, "digits")); }},
      {"a model name that climbs", kNotFound,
       [](Random* random) { return WithModel(random, std::string(random->Integer(1, 9), '.')); }},
      {"a model name of a megabyte", kNotFound,
       [](Random* random) { return WithModel(random, Megabyte(random)); }},
      {"a version that is not an integer", kInvalid, WithVersion},
      {"a version that there is not", kNotFound,
       [](Random* random) {
         return Spoiled(random, [random](Request* request) {
           request->set_model_version(absl::StrCat(random->Integer(2, INT64_MAX - 2)));
         });
       }},
      {"an unknown input", kInvalid, WithInputName},
      {"inputs twice or unknown ones more", kInvalid, WithMoreInputs},
      {"no input", kInvalid, WithoutInputs},
      {"an unknown output", kInvalid, WithOutputName},
      {"an output twice or more", kInvalid, WithOutputTwice},
      {"a million outputs", kInvalid, WithAMillionOutputs},
      {"layout of another kind", kInvalid, WithLayoutOfAnotherKind},
      {"an unknown layout", kInvalid, WithUnknownLayout},
      {"nhwc of a matrix", kInvalid, WithLayoutOfAMatrix},
      {"a shape in the order of the other layout", kInvalid, WithTheOtherLayout},
      {"too many parameters", kInvalid,
       [](Random* random) {
         return Spoiled(random, [random](Request* request) {
           for (int64_t i = random->Integer(1025, 3000); i > 0; --i) {
             (*request->mutable_parameters())[absl::StrCat(i)].set_bool_param(true);
           }
         });
       }},
      {"unknown parameters are ignored", kOk, WithUnknownParameters},
      {"any id is echoed", kOk, WithId},
  };
}

}  // namespace tilewire::testing
