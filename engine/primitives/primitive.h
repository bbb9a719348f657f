// SPDX-License-Identifier: Apache-2.0
//
// A primitive: one operation compiled for one descriptor. Created once, executed many times.
//
//   ABSL_ASSIGN_OR_RETURN(auto relu,
//                         CreateEltwise({.op = {...}, .src = md, .dst = md}, attributes, {}));
//   ExecuteArgs args;
//   args.Set(kArgSrc, src).Set(kArgDst, dst).Set(kArgScratchpad, scratch);
//   ABSL_RETURN_IF_ERROR(relu->Execute(args, threading::Team::Serial()));
//
// Source: tests/engine/rows.txt A10-A12, S01-S04.
#ifndef ENGINE_PRIMITIVES_PRIMITIVE_H_
#define ENGINE_PRIMITIVES_PRIMITIVE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/base/aligned_buffer.h"
#include "engine/cpu/isa.h"
#include "engine/kernels/attributes.h"
#include "engine/memory/data_type.h"
#include "engine/memory/memory_desc.h"
#include "engine/primitives/arguments.h"
#include "engine/primitives/creation_record.h"
#include "engine/primitives/propagation.h"
#include "engine/threading/arena.h"

namespace tilewire {

enum class PrimitiveKind : uint8_t {
#define TILEWIRE_PRIMITIVE(Name, name) k##Name,
#include "engine/primitives/primitive_list.inc"
#undef TILEWIRE_PRIMITIVE
};
absl::string_view PrimitiveKindName(PrimitiveKind kind);  // "inner_product"

// ArgName() where the kind has names of its own: "src_layer" and "src_iter" of rnn, "indices" of
// gather.
std::string ArgName(PrimitiveKind kind, int arg);

// Pointers to the buffers of one execution, each to the start of a buffer of its descriptor's
// SizeBytes().
class ExecuteArgs {
 public:
  ExecuteArgs& Set(int arg, const void* data);  // replaces an earlier one
  void* Find(int arg) const;                    // nullptr when absent
  template <typename T>
  T* Get(int arg) const {
    return static_cast<T*>(Find(arg));
  }

 private:
  absl::InlinedVector<std::pair<int, void*>, 8> entries_;
};

// An argument of a primitive, and whether the primitive writes it: BasicInfo() says so for
// propagation backward.
struct ArgDesc {
  int arg;
  MemoryDesc desc;
  bool is_output = IsOutput(PropKind::kForwardInference, arg);
};

// Traits of an implementation for code: names are for people, and no code takes them apart.
struct ImplementationTraits {
  bool is_reference = false;  // the plain loops that the others are tested against
  bool is_integer = false;    // for integers only, where other rows are for f32
  // The bits of a result depend on where it lies in the tensor, as with Winograd's tiles: a part
  // of a result may not be computed by itself.
  bool bits_depend_on_position = false;
  bool runs_another = false;       // row of the table, under the search's limit
  bool takes_max_pooling = false;  // as the last post-op; others refuse it before `resolve`
  bool takes_prelu = false;        // as a post-op, likewise
  bool takes_mask = false;         // as a post-op, likewise
  bool takes_all_types = false;    // generated code that knows the types beyond MKL-DNN's
  uint8_t algorithm = 0;  // one of the algorithms that the primitive's header names, if it does
  Precision precision = Precision::kExact;  // what Attributes::precision has to permit
  // Where estimates of rows are compared, the row's counts so many times: it has to be faster by as
  // much, to be worth weights that are larger than those of others or in a layout of its own.
  float handicap = 1;
  PropKinds propagations = kForwardKinds;  // that the row serves; others it refuses, likewise
};

// The facts of a row of a primitive's table, besides its functions, which get it in their request.
struct ImplementationFacts {
  absl::string_view name;  // "convolution/avx512_f32_direct", of static storage
  cpu::Isa isa;            // what it needs, and so the registers that it uses
  ImplementationTraits traits;
};

// A primitive's description of itself; filled by its implementation.
struct PrimitiveInfo {
  std::string name;  // "convolution/avx512_f32_direct"
  cpu::Isa isa;      // what its implementation needs
  ImplementationTraits traits;
  PrimitiveKind kind = PrimitiveKind::kReorder;
  std::vector<ArgDesc> args;     // inputs and outputs, with the layouts it chose
  int64_t scratchpad_bytes = 0;  // needed by one execution, in either mode
  int64_t code_bytes = 0;        // generated code and tables: what the cache counts
  ScratchpadMode scratchpad_mode = ScratchpadMode::kLibrary;
  // Set by FinishCreation, not by implementations:
  bool reads_destination = false;  // a sum post-op does
  bool pools_destination = false;  // a max pooling post-op leaves one element of dst out of four
  int64_t operations = 0;          // multiplications and additions of products of matrices; else 0
  CreationRecord creation;
};

// Immutable once created: in user scratchpad mode any number of threads may Execute() one primitive
// at once on distinct buffers. In library mode one thread at a time executes a primitive that has a
// scratchpad.
class Primitive {
 public:
  virtual ~Primitive() = default;
  Primitive(const Primitive&) = delete;

  absl::string_view name() const { return info_.name; }
  PrimitiveKind kind() const { return info_.kind; }
  const PrimitiveInfo& info() const { return info_; }

  // The descriptor of an argument, the zero descriptor where there is none.
  const MemoryDesc& Desc(int arg) const;
  bool Writes(int arg) const;  // the argument is one of its outputs
  // User mode: one dimension of u8, with the SizeBytes() that the caller provides (may be 0).
  // Library mode: the zero descriptor.
  MemoryDesc ScratchpadDesc() const;
  // Library mode: bytes that the primitive holds for its scratchpad. User mode: 0.
  int64_t MemoryConsumptionBytes() const;

  // kInvalidArgument  an argument of info().args is missing, or the user's scratchpad, if its size
  //                   is not 0; see CheckElements()
  absl::Status Execute(const ExecuteArgs& args, const threading::Team& team) const;

 protected:
  explicit Primitive(PrimitiveInfo info) : info_(std::move(info)) {}
  // The first element of an argument, which T holds, or a part of it; null where the primitive has
  // no such argument.
  template <typename T>
  T* First(const ExecuteArgs& args, int arg) const {
    const MemoryDesc& desc = Desc(arg);
    if (desc.IsZero()) return nullptr;
    return reinterpret_cast<T*>(args.Get<std::byte>(arg) +
                                desc.offset0() * SizeOf(desc.data_type()));
  }
  // A precondition on the elements of the arguments, asked before each Run(); none by default. In
  // a run that is stopped it may look at some of them only.
  //   kInvalidArgument  elements that the operation has no result for; nothing is written then
  virtual absl::Status CheckElements(const ExecuteArgs&, const threading::Team&) const {
    return absl::OkStatus();
  }
  // Every argument is present; `scratchpad` has info().scratchpad_bytes, 64-byte aligned. Cannot
  // fail.
  virtual void Run(const ExecuteArgs& args, std::byte* scratchpad,
                   const threading::Team& team) const = 0;

 private:
  friend absl::Status FinishCreation(const Attributes& attributes, CreationRecord record,
                                     Primitive* primitive);
  PrimitiveInfo info_;
  AlignedBuffer library_scratchpad_;
};

// Called once after creation: stores `record` and what follows from the attributes, and gives a
// primitive in library mode its scratchpad. kResourceExhausted.
absl::Status FinishCreation(const Attributes& attributes, CreationRecord record,
                            Primitive* primitive);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_PRIMITIVE_H_
