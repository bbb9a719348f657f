// SPDX-License-Identifier: Apache-2.0
//
// The frame of every reference: a loop over the results, which a reference gives a formula for.
//
//   return CreateReferencePrimitive(
//       InfoOf(request), {.results = desc.dst.dims()},
//       [=](const ReferencePiece& piece) {
//         const float* src = piece.Get<const float>(kArgSrc);
//         float* dst = piece.Get<float>(kArgDst);
//         piece.ForEach([&](const Dims& index) { dst[...] = Formula(src[...]); });
//       });
//
// The frame cuts the results into pieces of about kOperationsPerPiece operations, lets the threads
// of the team claim them, and then zeroes the padding of the outputs. A run that is stopped leaves
// out the pieces that have not begun (threading::Team::Until), and formulas that loop over many
// operations ask, too (ForEachOperation), so that it ends soon whatever the size of the tensors.
#ifndef ENGINE_PRIMITIVES_REFERENCE_PRIMITIVE_H_
#define ENGINE_PRIMITIVES_REFERENCE_PRIMITIVE_H_

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "engine/memory/dims.h"
#include "engine/memory/index_walk.h"
#include "engine/primitives/primitive.h"
#include "engine/threading/stop.h"

namespace tilewire {

// The indices that a reference loops over.
struct ReferenceLoop {
  Dims results;          // a result per index of this box: an element, or a line along an axis
  Dims operations = {};  // about an operation per index of this box for each result
  // Asked before the loop, see Primitive::CheckElements(); nothing is by default.
  absl::AnyInvocable<absl::Status(const ExecuteArgs&, const threading::Team&) const> check =
      nullptr;
};

// Neighbouring results of one execution, in row-major order. They depend on shapes only.
class ReferencePiece {
 public:
  ReferencePiece(const ExecuteArgs& args, const Dims& results, int64_t begin, int64_t end)
      : args_(args), results_(results), begin_(begin), end_(end) {}

  template <typename T>
  T* Get(int arg) const {
    return args_.Get<T>(arg);
  }
  void* Find(int arg) const { return args_.Find(arg); }
  const ExecuteArgs& args() const { return args_; }

  // Calls visit(index) per result.
  template <typename Visit>
  void ForEach(Visit visit) const {
    Dims index = IndexAt(results_, begin_);
    for (int64_t i = begin_; i < end_; ++i) {
      visit(static_cast<const Dims&>(index));
      NextIndex(results_, &index);
    }
  }

 private:
  const ExecuteArgs& args_;
  const Dims& results_;
  const int64_t begin_, end_;
};

// For the loops over the operations of one result, which may be long: call visit(index) for every
// index of the box, or visit(i) for 0 <= i < count, until the run is stopped. The result is then
// worthless.
template <typename Visit>
void ForEachOperation(const Dims& box, Visit visit) {
  threading::StopCheck stopped;
  for (int64_t size : box) {
    if (size == 0) return;
  }
  Dims index(box.size(), 0);
  do {
    visit(static_cast<const Dims&>(index));
  } while (!stopped() && NextIndex(box, &index));
}
template <typename Visit>
void ForEachOperation(int64_t count, Visit visit) {
  threading::StopCheck stopped;
  for (int64_t i = 0; i < count && !stopped(); ++i) visit(i);
}

constexpr int64_t kOperationsPerPiece = 1 << 15;

// `compute` is called for one piece at a time, from several threads at once, denormals flushed. It
// writes the piece's results and nothing else.
std::unique_ptr<Primitive> CreateReferencePrimitive(
    PrimitiveInfo info, ReferenceLoop loop,
    absl::AnyInvocable<void(const ReferencePiece&) const> compute);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_REFERENCE_PRIMITIVE_H_
