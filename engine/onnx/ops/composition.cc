// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/composition.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace tilewire::reader {
namespace {

constexpr int64_t kOpsetOfTexts = 25;

std::vector<std::string> Words(absl::string_view text, char separator) {
  std::vector<std::string> words = absl::StrSplit(text, separator, absl::SkipWhitespace());
  for (std::string& word : words) absl::StripAsciiWhitespace(&word);
  return words;
}

absl::Status MalformedText(absl::string_view text) {
  return Internal("a composition with a malformed part: ", text);
}

// Splits at commas that are not in brackets.
std::vector<std::string> ArgumentTexts(absl::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) absl::StripAsciiWhitespace(&part);
  if (parts.size() == 1 && parts[0].empty()) parts.clear();
  return parts;
}

absl::Status ReadValue(absl::string_view text, onnx::AttributeProto* attribute) {
  int64_t integer = 0;
  float number = 0;
  if (absl::ConsumePrefix(&text, "@")) {
    attribute->set_ref_attr_name(std::string(text));
  } else if (absl::ConsumePrefix(&text, "'") && absl::ConsumeSuffix(&text, "'")) {
    attribute->set_type(onnx::AttributeProto::STRING);
    attribute->set_s(std::string(text));
  } else if (absl::ConsumePrefix(&text, "[") && absl::ConsumeSuffix(&text, "]")) {
    attribute->set_type(onnx::AttributeProto::INTS);
    for (const std::string& word : Words(text, ',')) {
      if (!absl::SimpleAtoi(word, &integer)) return MalformedText(text);
      attribute->add_ints(integer);
    }
  } else if (absl::SimpleAtoi(text, &integer)) {
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(integer);
  } else if (absl::SimpleAtof(text, &number)) {
    attribute->set_type(onnx::AttributeProto::FLOAT);
    attribute->set_f(number);
  } else {
    return MalformedText(text);
  }
  return absl::OkStatus();
}

// "a, b = Op(x, y, name=value)"
absl::Status ReadStatement(absl::string_view text, onnx::NodeProto* node) {
  const size_t equals = text.find('='), open = text.find('(');
  if (equals == text.npos || open == text.npos || open < equals || !absl::EndsWith(text, ")"))
    return MalformedText(text);
  for (const std::string& output : Words(text.substr(0, equals), ',')) node->add_output(output);
  const absl::string_view name =
      absl::StripAsciiWhitespace(text.substr(equals + 1, open - equals - 1));
  const size_t dot = name.rfind('.');
  if (dot == name.npos) {
    node->set_op_type(std::string(name));
  } else {
    node->set_domain(std::string(name.substr(0, dot)));
    node->set_op_type(std::string(name.substr(dot + 1)));
  }
  for (const std::string& argument : ArgumentTexts(text.substr(open + 1, text.size() - open - 2))) {
    const std::vector<std::string> parts = absl::StrSplit(argument, absl::MaxSplits('=', 1));
    if (parts.size() == 1) {
      node->add_input(argument == "_" ? "" : argument);
      continue;
    }
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(parts[0]);
    ABSL_RETURN_IF_ERROR(ReadValue(parts[1], attribute));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<onnx::FunctionProto> ReadComposition(absl::string_view text,
                                                    absl::string_view attributes) {
  const size_t arrow = text.find("->"), colon = text.find(':');
  if (arrow == text.npos || colon == text.npos || colon < arrow) return MalformedText(text);
  onnx::FunctionProto function;
  for (const std::string& input : Words(text.substr(0, arrow), ',')) function.add_input(input);
  for (const std::string& output : Words(text.substr(arrow + 2, colon - arrow - 2), ','))
    function.add_output(output);
  for (const std::string& attribute : Words(attributes, ' ')) function.add_attribute(attribute);
  for (const std::string& statement : Words(text.substr(colon + 1), ';'))
    ABSL_RETURN_IF_ERROR(ReadStatement(statement, function.add_node()));
  function.add_opset_import()->set_version(kOpsetOfTexts);
  onnx::OperatorSetIdProto* contributed = function.add_opset_import();
  contributed->set_domain("com.microsoft");
  contributed->set_version(1);
  return function;
}

std::string PassedOn(absl::string_view attributes) {
  return absl::StrJoin(Words(attributes, ' '), ", ", [](std::string* out, const std::string& name) {
    absl::StrAppend(out, name, "=@", name);
  });
}

std::string NumberText(double number) { return absl::StrFormat("%.9e", number); }

std::string ConstantText(absl::string_view name, double number) {
  return absl::StrCat(name, " = Constant(value_float=", NumberText(number), ");");
}

}  // namespace tilewire::reader
