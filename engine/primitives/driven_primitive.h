// SPDX-License-Identifier: Apache-2.0
//
// A primitive that hands the pointers of an execution to its driver: generated code, and the loops
// around it.
//
//   return MakeDriven(InfoOf(request), std::move(driver),
//                     [](const DirectDriver& driver, const DrivenRun& run) {
//                       driver.Run(run.First<const float>(kArgSrc), run.First<float>(kArgDst),
//                                  run.team);
//                     });
//
// A driver is an object or a std::unique_ptr to one, and its code_bytes() count. Immutable once
// created.
#ifndef ENGINE_PRIMITIVES_DRIVEN_PRIMITIVE_H_
#define ENGINE_PRIMITIVES_DRIVEN_PRIMITIVE_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "engine/primitives/creation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

class DrivenBase : public Primitive {
 protected:
  using Primitive::Primitive;

 private:
  friend struct DrivenRun;
};

// One execution, as in Primitive::Run().
struct DrivenRun {
  template <typename T>
  T* First(int arg) const {
    return primitive.First<T>(args, arg);
  }

  const DrivenBase& primitive;
  const ExecuteArgs& args;
  std::byte* scratchpad;
  const threading::Team& team;
};

template <typename Driver, typename Function>
class DrivenPrimitive final : public DrivenBase {
 public:
  DrivenPrimitive(PrimitiveInfo info, Driver driver, Function function)
      : DrivenBase(WithCode(std::move(info), Behind(driver))),
        driver_(std::move(driver)),
        function_(std::move(function)) {}

 private:
  template <typename T>
  static const T& Behind(const T& driver) {
    return driver;
  }
  template <typename T>
  static const T& Behind(const std::unique_ptr<T>& driver) {
    return *driver;
  }

  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    function_(Behind(driver_), DrivenRun{*this, args, scratchpad, team});
  }

  const Driver driver_;
  const Function function_;
};

// `info` without the size of the driver's code. `function` is called as function(driver, run) for
// each execution, on several threads at once.
template <typename Driver, typename Function>
std::unique_ptr<Primitive> MakeDriven(PrimitiveInfo info, Driver driver, Function function) {
  return std::make_unique<DrivenPrimitive<Driver, Function>>(std::move(info), std::move(driver),
                                                             std::move(function));
}

// For drivers that have such a function of their own, Run().
template <typename Driver>
std::unique_ptr<Primitive> MakeDriven(PrimitiveInfo info, Driver driver) {
  return MakeDriven(std::move(info), std::move(driver),
                    [](const Driver& its, const DrivenRun& run) { its.Run(run); });
}

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_DRIVEN_PRIMITIVE_H_
