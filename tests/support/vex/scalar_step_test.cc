// SPDX-License-Identifier: Apache-2.0
//
// Scalar instructions step by step in software, against the machine that runs them.
#include "tests/support/vex/scalar_step.h"

#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/jit/generator.h"
#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

class ScalarFunction final : public jit::Generator {
 public:
  using Body = std::function<void(ScalarFunction*)>;
  explicit ScalarFunction(const Body& body) : Generator("test/scalar"), body_(body) {}

 private:
  void Emit() override { body_(this); }
  const Body& body_;
};

// Registers of code that is about to begin, with the address 0 to return to.
class SoftwareThread {
 public:
  explicit SoftwareThread(const void* entry) {
    registers_[REG_RIP] = reinterpret_cast<greg_t>(entry);
    registers_[REG_RSP] = reinterpret_cast<greg_t>(&stack_.back());
  }

  greg_t& operator[](int which) { return registers_[which]; }
  bool Step() { return StepScalar(registers_); }
  bool RunsToItsEnd() {
    while (registers_[REG_RIP] != 0) {
      if (!Step()) return false;
    }
    return registers_[REG_RSP] == reinterpret_cast<greg_t>(&stack_.back() + 1);
  }

 private:
  std::array<uint64_t, 64> stack_ = {};
  gregset_t registers_ = {};
};

TEST(ScalarStepTest, RunsFunctionsWithLoopsAndCalls) {
  const ScalarFunction::Body body = [](ScalarFunction* code) {
    using namespace Xbyak::util;
    Xbyak::Label loop, far_loop, add_three, begin;
    code->jmp(begin, Xbyak::CodeGenerator::T_NEAR);
    code->L(add_three);
    code->lea(r10, ptr[r10 + 3]);
    code->ret();
    code->L(begin);
    code->mov(r10, rdi);
    code->mov(r12, rsi);
    code->lea(r9, ptr[rip + add_three]);
    code->L(loop);
    code->call(r9);
    code->prefetcht0(ptr[r9 + r12 * 4 + 1024]);
    code->lea(r10, ptr[r10 + r12 * 2 - 1]);
    code->dec(r12);
    code->jnz(loop);
    code->mov(r11, rsi);
    code->L(far_loop);
    code->sub(r10, -128);
    code->add(r10, 100000);
    code->inc(r10);
    code->add(r11, -1);
    code->jnz(far_loop, Xbyak::CodeGenerator::T_NEAR);
    code->mov(rax, r10);
    code->ret();
  };
  const auto code = jit::Compile<ScalarFunction>(body);
  ASSERT_TRUE(code.ok()) << code.status();
  const auto expected = [](int64_t from, int64_t times) {
    for (int64_t i = times; i > 0; --i) from += 3 + i * 2 - 1;
    return from + times * (128 + 100000 + 1);
  };
  for (const auto& [from, times] : std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {-7, 30}}) {
    SoftwareThread thread((*code)->entry<const void*>());
    thread[REG_RDI] = from;
    thread[REG_RSI] = times;
    ASSERT_TRUE(thread.RunsToItsEnd());
    EXPECT_EQ(thread[REG_RAX], expected(from, times));
  }
}

// `operation` on rdx.
void ExpectFlagsOfTheMachine(const std::function<void(ScalarFunction*)>& operation, int64_t value) {
  constexpr greg_t kCompared = 0x8C5;  // OF, SF, ZF, PF, CF
  using namespace Xbyak::util;
  const ScalarFunction::Body body = [&](ScalarFunction* code) {
    code->mov(rdx, rdi);
    code->stc();
    operation(code);
    code->pushfq();
    code->pop(qword[rsi]);
    code->mov(rax, rdx);
    code->ret();
  };
  const auto code = jit::Compile<ScalarFunction>(body);
  ASSERT_TRUE(code.ok()) << code.status();
  uint64_t flags = 0;
  const int64_t result = (*code)->entry<int64_t (*)(int64_t, uint64_t*)>()(value, &flags);

  SoftwareThread thread((*code)->entry<const void*>());
  thread[REG_RDI] = value;
  ASSERT_TRUE(thread.Step());  // mov
  EXPECT_FALSE(thread.Step()) << "stc is none of its instructions";
  ++thread[REG_RIP];
  thread[REG_EFL] = 1;
  ASSERT_TRUE(thread.Step());
  EXPECT_EQ(thread[REG_RDX], result);
  EXPECT_EQ(thread[REG_EFL] & kCompared, static_cast<greg_t>(flags) & kCompared) << value;
}

TEST(ScalarStepTest, SetsTheFlagsOfTheMachine) {
  using Xbyak::util::rdx;
  for (const int64_t value : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{5}, int64_t{1000},
                              INT64_MIN, INT64_MAX, INT64_MIN + 4, INT64_MAX - 4}) {
    ExpectFlagsOfTheMachine([](ScalarFunction* code) { code->add(rdx, 5); }, value);
    ExpectFlagsOfTheMachine([](ScalarFunction* code) { code->sub(rdx, 5); }, value);
    ExpectFlagsOfTheMachine([](ScalarFunction* code) { code->add(rdx, -1000); }, value);
    ExpectFlagsOfTheMachine([](ScalarFunction* code) { code->sub(rdx, 1000); }, value);
    ExpectFlagsOfTheMachine([](ScalarFunction* code) { code->inc(rdx); }, value);
    ExpectFlagsOfTheMachine([](ScalarFunction* code) { code->dec(rdx); }, value);
  }
}

TEST(ScalarStepTest, LeavesOtherCodeAlone) {
  const std::vector<std::vector<uint8_t>> others = {
      {0x8D, 0x00},              // lea of 32 bits
      {0x48, 0x8D, 0xC0},        // lea of a register
      {0x83, 0xC0, 1},           // add of 32 bits
      {0x48, 0x83, 0x00, 1},     // add to memory
      {0x48, 0x83, 0xE0, 1},     // and
      {0xFF, 0xC0},              // inc of 32 bits
      {0xFF, 0xE0},              // jmp rax
      {0x48, 0xFF, 0x08},        // dec of memory
      {0x8B, 0xC1},              // mov of 32 bits
      {0x48, 0x8B, 0x00},        // mov from memory
      {0x0F, 0x84, 0, 0, 0, 0},  // jz
      {0x74, 0},                 // jz
  };
  for (std::vector<uint8_t> code : others) {
    code.resize(16);
    SoftwareThread thread(code.data());
    EXPECT_FALSE(thread.Step()) << absl::StrCat(absl::Hex(code[0]), " ", absl::Hex(code[1]));
    EXPECT_EQ(thread[REG_RIP], reinterpret_cast<greg_t>(code.data()));
  }
}

}  // namespace
}  // namespace tilewire::testing
