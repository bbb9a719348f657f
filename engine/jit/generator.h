// SPDX-License-Identifier: Apache-2.0
//
// The base of every code generator. A derived class emits its code once, in Emit(). Compile() then
// seals the pages to be read and executed: they are never writable and executable together.
//
//   class ReluAvx512 final : public jit::Generator { ... void Emit() override { ... } };
//   ABSL_ASSIGN_OR_RETURN(auto relu, jit::Compile<ReluAvx512>(config));
//   relu->entry<void (*)(const Args*)>()(&args);
//
// A sealed generator is immutable: any number of threads may run its code.
#ifndef ENGINE_JIT_GENERATOR_H_
#define ENGINE_JIT_GENERATOR_H_

#include <memory>
#include <string>
#include <typeinfo>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {

class Generator : public Xbyak::CodeGenerator {
 public:
  static constexpr size_t kMaxCodeBytes = 256 * 1024;

  ~Generator() override = default;

  absl::string_view name() const { return name_; }  // "convolution/avx512_f32_direct"
  size_t code_bytes() const { return getSize(); }

  template <typename Function>
  Function entry() const {
    return getCode<Function>();
  }

  // Emits, seals, and writes the dump and the perf map that engine/base/diagnostics.h asks for.
  // Called by Compile(); throws Xbyak::Error.
  void EmitAndSeal();

 protected:
  explicit Generator(absl::string_view name, size_t max_code_bytes = kMaxCodeBytes);

  // The whole function, from its first instruction to ret() and its tables.
  virtual void Emit() = 0;

  // Saves and restores System V's callee-saved registers rbx, rbp and r12 to r15. rdi, which holds
  // the argument, is untouched.
  void Preamble();
  void Postamble();  // with vzeroupper and ret

 private:
  std::string name_;
};

// Whether kernels can be dumped to `folder`; an empty name asks for no dumps.
//   kInvalidArgument  it is not a folder that can be written
absl::Status CheckDumpFolder(const std::string& folder);

// The status that an Xbyak exception stands for.
absl::Status ToStatus(absl::string_view name, const Xbyak::Error& error);

// Emits G once and seals it. Holds the only catch block in the engine: Xbyak reports by exception.
//   kResourceExhausted  executable memory could not be mapped or protected
//   kUnimplemented      the code is longer than its bound
//   kInternal           the generator emitted an invalid instruction (a bug)
template <typename G, typename... Args>
absl::StatusOr<std::unique_ptr<const G>> Compile(Args&&... args) {
  try {
    auto generator = std::make_unique<G>(std::forward<Args>(args)...);
    generator->EmitAndSeal();
    return std::unique_ptr<const G>(std::move(generator));
  } catch (const Xbyak::Error& error) {
    return ToStatus(typeid(G).name(), error);
  }
}

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_GENERATOR_H_
