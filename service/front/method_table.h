// SPDX-License-Identifier: Apache-2.0
//
// The methods of the server as a table: who may call each, and how large its request may be. A
// handler is registered with the row that MethodNamed() finds while the code is compiled, so that a
// handler without a row does not compile. Constants and pure functions.
#ifndef SERVICE_FRONT_METHOD_TABLE_H_
#define SERVICE_FRONT_METHOD_TABLE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tilewire::service {

enum class Right : uint8_t {
  kHealth,
  kMetadata,
  kInfer,
  kStatistics,
  kExplain,
  kPrimitives,
  kRepository,  // which models are served
  kSettings,    // of the log and of traces
  kReflection,
};
absl::string_view RightName(Right right);  // "repository"

// A set of rights. Those that change the server are closed unless the operator opens them; all
// others are open.
class OpenRights {
 public:
  bool Has(Right right) const { return (bits_ >> static_cast<int>(right) & 1) != 0; }
  void Open(Right right) { bits_ |= 1u << static_cast<int>(right); }

 private:
  static constexpr uint32_t kClosed =
      1u << static_cast<int>(Right::kRepository) | 1u << static_cast<int>(Right::kSettings);
  uint32_t bits_ = ~kClosed;
};

enum class RequestBound : uint8_t { kNames, kMessage };

struct Method {
  absl::string_view service, rpc;
  Right right;
  RequestBound bound;
  bool probe;  // a health check calls it
};

// The bytes of a request that holds names and numbers only.
constexpr int64_t kMaxNameRequestBytes = 64 << 10;

// The largest request, where a message may have `max_message_bytes`.
constexpr int64_t MostRequestBytes(const Method& method, int64_t max_message_bytes) {
  if (method.bound == RequestBound::kMessage || max_message_bytes < kMaxNameRequestBytes) {
    return max_message_bytes;
  }
  return kMaxNameRequestBytes;
}

inline constexpr Method kMethods[] = {
#define TILEWIRE_METHOD(service, rpc, right, bound, probe) \
  {service, rpc, Right::right, RequestBound::bound, probe},
#include "service/front/method_table.inc"
#undef TILEWIRE_METHOD
};

// Does not compile where the table has no such row.
consteval const Method& MethodNamed(absl::string_view service, absl::string_view rpc) {
  for (const Method& method : kMethods) {
    if (method.service == service && method.rpc == rpc) return method;
  }
  throw "service/front/method_table.inc has no row for this method";
}

//   kPermissionDenied  the right is not open; the message names it and `what` takes it
absl::Status CheckRight(absl::string_view what, Right right, const OpenRights& open);

//   kInvalidArgument  the request is larger than the method's may be
absl::Status CheckRequestBytes(const Method& method, int64_t bytes, int64_t max_message_bytes);

}  // namespace tilewire::service

#endif  // SERVICE_FRONT_METHOD_TABLE_H_
