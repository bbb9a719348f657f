// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/sparse_tensor.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::reader {

using network::Constant;
using network::ConstantPtr;
namespace {

absl::Status InvalidSparse(const Constant& values, absl::string_view what) {
  return InvalidArgument("sparse tensor '", values.name.substr(0, 200), "': ", what);
}

// Where value `i` is in row-major order; nullopt: outside.
std::optional<int64_t> PlaceOf(const Constant& indices, int64_t i, const Dims& dims,
                               int64_t elements) {
  if (indices.dims.size() == 1) {
    const int64_t place = indices.ints[i];
    return place >= 0 && place < elements ? std::optional(place) : std::nullopt;
  }
  int64_t place = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t index = indices.ints[i * static_cast<int64_t>(dims.size()) + d];
    if (index < 0 || index >= dims[d]) return std::nullopt;
    place = place * dims[d] + index;
  }
  return place;
}

absl::StatusOr<std::vector<int64_t>> PlacesOf(const Constant& values, const Constant& indices,
                                              const Dims& dims, int64_t elements) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < values.count(); ++i) {
    const std::optional<int64_t> place = PlaceOf(indices, i, dims, elements);
    if (!place) return InvalidSparse(values, absl::StrCat("index ", i, " is outside its dims"));
    if (!places.empty() && *place <= places.back())
      return InvalidSparse(values, absl::StrCat("index ", i, " does not ascend"));
    places.push_back(*place);
  }
  return places;
}

}  // namespace

absl::StatusOr<ConstantPtr> MakeDense(const ConstantPtr& values, const ConstantPtr& indices,
                                      const Dims& dims, int64_t* room) {
  const std::optional<int64_t> elements = ElementCount(dims);
  const bool any_negative = absl::c_any_of(dims, [](int64_t dim) { return dim < 0; });
  if (dims.size() > kMaxRank || any_negative || !elements || values->dims.size() != 1)
    return InvalidSparse(*values, "malformed dims or values");
  const Dims of_rank = {values->count(), static_cast<int64_t>(dims.size())};
  if (indices->is_float || (indices->dims != values->dims && indices->dims != of_rank))
    return InvalidSparse(*values, "indices that do not fit the values");
  if (*elements > *room) {
    return ResourceExhausted("sparse tensor '", values->name.substr(0, 200), "' of dims ",
                             DimsToString(dims), ": it may have ", *room,
                             " elements, zeros included");
  }
  *room -= *elements;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr given, network::InMemory(values));
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr at, network::InMemory(indices));
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> places, PlacesOf(*given, *at, dims, *elements));
  if (given->is_float) {
    std::vector<float> floats(*elements, 0.0f);
    for (size_t i = 0; i < places.size(); ++i) floats[places[i]] = given->floats[i];
    auto dense =
        std::make_shared<Constant>(*network::MakeFloats(given->name, dims, std::move(floats)));
    dense->declared = given->declared;
    dense->small = given->small;
    dense->is_sparse = true;
    return ConstantPtr(std::move(dense));
  }
  std::vector<int64_t> ints(*elements, 0);
  for (size_t i = 0; i < places.size(); ++i) ints[places[i]] = given->ints[i];
  auto dense = std::make_shared<Constant>(*network::MakeInts(given->name, dims, std::move(ints)));
  dense->integers = given->integers;
  dense->declared = given->declared;
  dense->small = given->small;
  return ConstantPtr(std::move(dense));
}

}  // namespace tilewire::reader
