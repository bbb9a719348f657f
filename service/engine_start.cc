// SPDX-License-Identifier: Apache-2.0
#include "service/engine_start.h"

#include "engine/threading/background_thread.h"
#include "engine/threading/pinning.h"
#include "engine/threading/urgent_work.h"
#include "service/schedule/time_slice.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

void OfferCoresAlways() {
  spdlog::info(
      "the system has no slices of time that a thread asks for, as Linux has since 6.12: compute "
      "threads offer their cores to others all the time");
  threading::UrgentWork::ExpectAlways();
}

}  // namespace

// The compute threads inherit the slices of the thread that makes them.
absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const EngineOptions& options,
                                                    bool pin_threads) {
  if (!AskForShortSlices()) OfferCoresAlways();
  absl::StatusOr<std::unique_ptr<Engine>> engine = absl::InternalError("not started");
  {
    const threading::BackgroundThread starter("tw-start", [&] {
      AskForOrdinarySlices();
      engine = Engine::Create(options);
    });
  }
  if (engine.ok() && pin_threads) threading::PinThreads(&(*engine)->arena());
  return engine;
}

}  // namespace tilewire::service
