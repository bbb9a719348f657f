// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/threading/threads.h"

namespace tilewire::threading {
namespace {

class StdThreads final : public Threads {
 public:
  void Start(absl::AnyInvocable<void()> body) override { threads_.emplace_back(std::move(body)); }
  void Join() override {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Threads> MakeThreads(int) { return std::make_unique<StdThreads>(); }

}  // namespace tilewire::threading
