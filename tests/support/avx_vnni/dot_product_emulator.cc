// SPDX-License-Identifier: Apache-2.0
#include "tests/support/avx_vnni/dot_product_emulator.h"

#include <cpuid.h>
#include <signal.h>
#include <ucontext.h>

#include <cstring>

#include "engine/cpu/isa.h"
#include "tests/support/avx_vnni/dot_product.h"
#include "tests/support/vex/scalar_step.h"

namespace tilewire::testing {
namespace {

constexpr int kHalf = 16;  // bytes of a vector: its halves are saved apart

struct sigaction action_before;
bool is_installed = false;
size_t upper_halves = 0;  // where they begin in what the kernel saved

// The vector registers of the interrupted code, as XSAVE lays them out.
class SavedVectors {
 public:
  explicit SavedVectors(ucontext_t* context)
      : lower_(reinterpret_cast<uint8_t*>(context->uc_mcontext.fpregs->_xmm)),
        area_(reinterpret_cast<uint8_t*>(context->uc_mcontext.fpregs)) {}

  VectorBytes Get(int index) const {
    VectorBytes vector = {};
    if (IsSaved(kSse)) std::memcpy(vector.data(), lower_ + index * kHalf, kHalf);
    if (IsSaved(kAvx)) std::memcpy(vector.data() + kHalf, Upper(index), kHalf);
    return vector;
  }
  void Set(int index, const VectorBytes& vector) {
    Save(kSse, lower_);
    Save(kAvx, Upper(0));
    std::memcpy(lower_ + index * kHalf, vector.data(), kHalf);
    std::memcpy(Upper(index), vector.data() + kHalf, kHalf);
  }

 private:
  // Bits of the states that are saved; what is not is zeros.
  static constexpr uint64_t kSse = 2, kAvx = 4;
  static constexpr size_t kStates = 512;  // where these bits are

  uint8_t* Upper(int index) const { return area_ + upper_halves + index * kHalf; }
  uint64_t States() const {
    uint64_t states;
    std::memcpy(&states, area_ + kStates, sizeof(states));
    return states;
  }
  bool IsSaved(uint64_t state) const { return (States() & state) != 0; }
  // Makes the state one that is saved, with zeros in its 16 registers.
  void Save(uint64_t state, uint8_t* registers) {
    if (IsSaved(state)) return;
    std::memset(registers, 0, 16 * kHalf);
    const uint64_t states = States() | state;
    std::memcpy(area_ + kStates, &states, sizeof(states));
  }

  uint8_t *const lower_, *const area_;
};

// Runs the dot product at RIP, if there is one.
bool StepDotProduct(greg_t* registers, SavedVectors* vectors) {
  const auto what = DecodeDotProduct(reinterpret_cast<const uint8_t*>(registers[REG_RIP]));
  if (!what) return false;
  vectors->Set(what->sum, Compute(*what, vectors->Get(what->sum), vectors->Get(what->a),
                                  vectors->Get(what->b)));
  registers[REG_RIP] += DotProduct::kLength;
  return true;
}

bool StepLoad(greg_t* registers, SavedVectors* vectors) {
  const auto what = DecodeVectorLoad(reinterpret_cast<const uint8_t*>(registers[REG_RIP]));
  if (!what) return false;
  const std::byte* const from =
      AddressWithoutIndex(what->from, registers, what->length) + IndexOf(what->from, registers);
  const int step = what->broadcasts ? 0 : 4;
  VectorBytes vector = {};
  for (int lane = 0; lane < what->lanes; ++lane)
    std::memcpy(vector.data() + 4 * lane, from + step * lane, 4);
  vectors->Set(what->to, vector);
  registers[REG_RIP] += what->length;
  return true;
}

// A signal takes longer than what follows, so that it runs all that it can.
void OnIllegalInstruction(int signal, siginfo_t* info, void* context) {
  auto* const interrupted = static_cast<ucontext_t*>(context);
  greg_t* const registers = interrupted->uc_mcontext.gregs;
  SavedVectors vectors(interrupted);
  if (StepDotProduct(registers, &vectors)) {
    while (StepDotProduct(registers, &vectors) || StepLoad(registers, &vectors) ||
           StepScalar(registers)) {
    }
    return;
  }
  if ((action_before.sa_flags & SA_SIGINFO) != 0)
    return action_before.sa_sigaction(signal, info, context);
  sigaction(SIGILL, &action_before, nullptr);  // which gets the instruction, executed once more
}

// After the software tiles, which end the process at what they do not know, and before the
// initialisers of any test, which may ask for BestIsa().
__attribute__((constructor(102))) void Install() {
  __builtin_cpu_init();
  uint32_t size = 0, ecx = 0, edx = 0, offset = 0;
  const bool has_upper_halves = __get_cpuid_count(0xD, 2, &size, &offset, &ecx, &edx) != 0;
  if (__builtin_cpu_supports("avxvnni") || !__builtin_cpu_supports("avx2") || !has_upper_halves)
    return;
  upper_halves = offset;
  struct sigaction action = {};
  action.sa_sigaction = OnIllegalInstruction;
  action.sa_flags = SA_SIGINFO;
  is_installed = sigaction(SIGILL, &action, &action_before) == 0;
  if (is_installed) cpu::CountAsPresent(cpu::Isa::kAvx2Vnni);
}

}  // namespace

bool DotProductsAreEmulated() { return is_installed; }

}  // namespace tilewire::testing
