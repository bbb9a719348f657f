// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_sink.h"

#include <utility>

#include "spdlog/spdlog.h"

namespace tilewire::service {

void TraceSink::Drop(int64_t traces, const std::string& why) {
  dropped_.fetch_add(traces, std::memory_order_relaxed);
  if (std::exchange(told_, true)) return;
  spdlog::warn("traces are lost: {}; they are counted in tilewire_traces_dropped_total", why);
}

}  // namespace tilewire::service
