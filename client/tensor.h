// SPDX-License-Identifier: Apache-2.0
//
// Tensors as clients send and receive them, and what a server says of its models' tensors.
#ifndef CLIENT_TENSOR_H_
#define CLIENT_TENSOR_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tilewire::client {

// Where the channels stand in memory, and in the shape, of a tensor [N, C, spatial...].
enum class Layout : uint8_t { kNchw = 0, kNhwc = 1 };
absl::string_view LayoutName(Layout layout);  // "nchw"

// The protocol's name of a C++ type: "FP32" of float.
template <typename T>
constexpr absl::string_view DatatypeName() {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "no type of the protocol");
  if constexpr (std::is_same_v<T, bool>) return "BOOL";
  constexpr absl::string_view kNames[3][4] = {{"UINT8", "UINT16", "UINT32", "UINT64"},
                                              {"INT8", "INT16", "INT32", "INT64"},
                                              {"", "", "FP32", "FP64"}};
  constexpr int kKind = std::is_floating_point_v<T> ? 2 : std::is_signed_v<T> ? 1 : 0;
  return kNames[kKind][sizeof(T) == 8 ? 3 : sizeof(T) / 2];
}

// A tensor as it travels: row-major, little-endian, unpadded.
struct Tensor {
  std::string name;
  std::string datatype = "FP32";
  std::vector<int64_t> shape;  // in the order of `layout`
  Layout layout = Layout::kNchw;
  std::string bytes;

  // A copy of `values`, of the type that they have.
  template <typename T>
  static Tensor From(std::string name, std::vector<int64_t> shape, absl::Span<const T> values,
                     Layout layout = Layout::kNchw) {
    Tensor tensor{std::move(name), std::string(DatatypeName<T>()), std::move(shape), layout,
                  std::string(values.size() * sizeof(T), '\0')};
    if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    return tensor;
  }
  static Tensor FromFloats(std::string name, std::vector<int64_t> shape,
                           absl::Span<const float> values, Layout layout = Layout::kNchw);

  // The elements where they lie, valid while `bytes` is neither changed nor moved.
  //   kFailedPrecondition  the datatype is another one, or the size is not a multiple of T's
  template <typename T>
  absl::StatusOr<absl::Span<const T>> View() const {
    const absl::Status status = CheckHolds(DatatypeName<T>(), sizeof(T));
    if (!status.ok()) return status;
    return absl::Span<const T>(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
  }
  // A copy of the elements; errors as of View<float>().
  absl::StatusOr<std::vector<float>> Floats() const;

 private:
  absl::Status CheckHolds(absl::string_view wanted, size_t size) const;
};

// Describes an input or output of a model. `shape` is [N, C, spatial...]; -1 is chosen by each
// request.
struct TensorMetadata {
  std::string name, datatype;
  std::vector<int64_t> shape;
};

// The tensor's shape with `batch` in the place of an open first dimension and `free_size` of
// others.
std::vector<int64_t> ClosedShape(const TensorMetadata& tensor, int64_t batch, int64_t free_size);
// "Nx3x24x20"; N for a leading -1, ? elsewhere.
std::string ShapeText(absl::Span<const int64_t> shape);

}  // namespace tilewire::client

#endif  // CLIENT_TENSOR_H_
