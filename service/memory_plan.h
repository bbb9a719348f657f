// SPDX-License-Identifier: Apache-2.0
//
// How the memory that is granted is shared, so that all bounds together fit into it: a request that
// would exceed one is refused, and the system has no reason to end the process.
//
//   code          a sixteenth: compiled primitives that are kept
//   reserve       a sixteenth: what is allocated in between, page tables, buffers of sockets; an
//                 eighth of what may be mapped
//   connections   a third of what models leave, at most a quarter of all: what gRPC holds for them
//   the rest      models, their loads, and requests, which get at most half of all
//
// Pure functions.
#ifndef SERVICE_MEMORY_PLAN_H_
#define SERVICE_MEMORY_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "service/granted_memory.h"

namespace tilewire::service {

// In bytes; unset: it follows what is granted.
struct MemoryWishes {
  std::optional<int64_t> message, transport, work, code;
};

// The memory that is taken before any is shared out.
struct MemoryNeeds {
  MemoryUse used;           // before the server starts threads,
  int threads = 0;          // of which there will be so many,
  int64_t stack_bytes = 0;  // with stacks of so much
  int64_t models = 0;       // what models are expected to hold
};

struct MemoryPlan {
  MemoryLimit limit;      // the one that leaves least
  int64_t message = 0;    // the largest message, both ways
  int64_t transport = 0;  // connections: the quota of gRPC, which may exceed it somewhat
  int64_t code = 0;       // compiled primitives, and again the plans of each model
  int64_t idle_answers = 0;
  int64_t shared = 0;  // models, their loads and requests together
  int64_t work = 0;    // requests, as long as models leave as much
  bool work_is_fixed = false;
  int heaps = 1;        // of the allocator: each keeps some of what was freed in it
  std::string refusal;  // empty, or why nothing can be served, and what is needed
  std::string warning;  // empty, or that the wishes do not fit
};

// `limits` are not empty.
MemoryPlan PlanMemory(const std::vector<MemoryLimit>& limits, const MemoryNeeds& needs,
                      const MemoryWishes& wishes);

}  // namespace tilewire::service

#endif  // SERVICE_MEMORY_PLAN_H_
