// SPDX-License-Identifier: Apache-2.0
#include "client/npy.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tilewire::client {
namespace {

struct NpyType {
  const char* datatype;
  const char* npy;
  int64_t size;
};

constexpr NpyType kNpyTypes[] = {{"BOOL", "|b1", 1},   {"UINT8", "|u1", 1}, {"INT8", "|i1", 1},
                                 {"UINT16", "<u2", 2}, {"INT16", "<i2", 2}, {"FP16", "<f2", 2},
                                 {"BF16", "", 2},      {"FP32", "<f4", 4},  {"UINT32", "<u4", 4},
                                 {"INT32", "<i4", 4},  {"FP64", "<f8", 8},  {"INT64", "<i8", 8},
                                 {"UINT64", "<u8", 8}};

absl::Status NotNpy(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a .npy file that can be read: ", why));
}

// The text after "'name':" in the header, which is a Python dictionary.
absl::string_view ValueOf(absl::string_view header, absl::string_view name) {
  const size_t at = header.find(absl::StrCat("'", name, "':"));
  if (at == absl::string_view::npos) return "";
  return absl::StripLeadingAsciiWhitespace(header.substr(at + name.size() + 3));
}

bool ParseShape(absl::string_view value, std::vector<int64_t>* shape) {
  if (!absl::ConsumePrefix(&value, "(")) return false;
  const size_t end = value.find(')');
  if (end == absl::string_view::npos) return false;
  for (absl::string_view dim : absl::StrSplit(value.substr(0, end), ',', absl::SkipWhitespace())) {
    if (!absl::SimpleAtoi(dim, &shape->emplace_back()) || shape->back() < 0) return false;
  }
  return true;
}

// Takes the header from the front of the file.
bool TakeHeader(absl::string_view* file, absl::string_view* header) {
  if (!absl::ConsumePrefix(file, "\x93NUMPY") || file->size() < 6) return false;
  const bool wide = (*file)[0] >= 2;
  size_t length = 0;
  for (int i = wide ? 3 : 1; i >= 0; --i)
    length = length << 8 | static_cast<uint8_t>((*file)[2 + i]);
  file->remove_prefix(wide ? 6 : 4);
  if (length > file->size()) return false;
  *header = file->substr(0, length);
  file->remove_prefix(length);
  return true;
}

// `text` begins with the value of 'descr': a word in quotes, or a list of fields.
std::string WhyNoType(absl::string_view text) {
  const size_t end = text.find('\'', 1);
  const bool is_word = absl::StartsWith(text, "'") && end != text.npos;
  if (!is_word) return "its elements are records; save one field";
  return absl::StrCat("its elements are of type ", text.substr(0, end + 1),
                      absl::StartsWith(text, "'>")
                          ? "; save array.astype(array.dtype.newbyteorder('<'))"
                          : ", which are not numbers that are read");
}

}  // namespace

int64_t SizeOfDatatype(absl::string_view datatype) {
  for (const NpyType& type : kNpyTypes) {
    if (datatype == type.datatype) return type.size;
  }
  return 0;
}

absl::StatusOr<NpyArray> ReadNpy(absl::string_view file) {
  absl::string_view header;
  if (!TakeHeader(&file, &header)) return NotNpy("it has no header");
  const absl::string_view type_text = ValueOf(header, "descr");
  NpyArray array;
  double bytes = 0;
  for (const NpyType& type : kNpyTypes) {
    if (*type.npy == 0 || !absl::StartsWith(type_text, absl::StrCat("'", type.npy, "'"))) continue;
    array.datatype = type.datatype;
    bytes = static_cast<double>(type.size);
  }
  if (array.datatype.empty()) return NotNpy(WhyNoType(type_text));
  if (!absl::StartsWith(ValueOf(header, "fortran_order"), "False"))
    return NotNpy("it is in column-major order; save numpy.ascontiguousarray(x)");
  if (!ParseShape(ValueOf(header, "shape"), &array.shape)) return NotNpy("its shape");
  for (const int64_t dim : array.shape) bytes *= static_cast<double>(dim);
  if (bytes != static_cast<double>(file.size())) {
    return NotNpy(absl::StrCat("it holds ", file.size(), " bytes, its header says ", bytes));
  }
  array.bytes = std::string(file);
  return array;
}

}  // namespace tilewire::client
