// SPDX-License-Identifier: Apache-2.0
//
// Turns a described primitive into one that can be executed: decodes it, judges what it would cost,
// and compiles it through the engine's cache. Thread-safe.
#ifndef SERVICE_RPC_PRIMITIVE_COMPILER_H_
#define SERVICE_RPC_PRIMITIVE_COMPILER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "engine/primitive_engine.h"
#include "protos/tilewire.pb.h"
#include "service/rpc/primitive_catalog.h"

namespace tilewire::service {

// Bounds on the cost of one primitive; operations as operation_count.h counts them.
struct PrimitiveLimits {
  double max_operations = 2e11;
  // For reference implementations, which take hundreds of times longer.
  double max_reference_operations = 2e8;
};

class PrimitiveCompiler {
 public:
  struct Compiled {
    std::shared_ptr<const DescribedPrimitive> described;
    PrimitiveCache::Found found;
  };
  using Described = std::shared_ptr<const DescribedPrimitive>;

  PrimitiveCompiler(Engine* engine, int64_t max_message_bytes, const PrimitiveLimits& limits);

  Engine& engine() const { return *engine_; }
  int64_t max_tensor_bytes() const { return max_tensor_bytes_; }

  // Compute nothing. A description is remembered under its id only once it has been compiled.
  //   kInvalidArgument    what no primitive can mean
  //   kResourceExhausted  tensors or operations beyond the limits
  absl::StatusOr<Described> Describe(const v1::PrimitiveDesc& message) const;
  // The same with the workspace of the primitive `forward_id`, which is compiled for that.
  //   kNotFound           no primitive has this id
  //   kInvalidArgument    it is of a primitive that reads no workspace, or has one already
  absl::StatusOr<Described> WithWorkspaceOf(const std::string& forward_id,
                                            const Described& described);
  //   kNotFound
  absl::StatusOr<Described> Find(const std::string& id) { return catalog_.Find(id); }

  //   the errors of PrimitiveEngine::GetPrimitive()
  //   kResourceExhausted  tensors beyond the limits; a reference implementation beyond its own
  absl::StatusOr<Compiled> Compile(Described described);

 private:
  Engine* const engine_;
  const int64_t max_tensor_bytes_;
  const PrimitiveLimits limits_;
  PrimitiveCatalog catalog_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_PRIMITIVE_COMPILER_H_
