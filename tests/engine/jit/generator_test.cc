// SPDX-License-Identifier: Apache-2.0
#include "engine/jit/generator.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/diagnostics.h"
#include "engine/base/line_writer.h"
#include "engine/jit/dump_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::jit {
namespace {

using ::testing::HasSubstr;

class Answer final : public Generator {
 public:
  Answer() : Generator("test/answer") {}

 private:
  void Emit() override {
    Preamble();
    mov(rbx, 42);
    mov(r15, rbx);
    mov(rax, r15);
    Postamble();
  }
};

class MissingLabel final : public Generator {
 public:
  MissingLabel() : Generator("test/missing_label") {}

 private:
  void Emit() override {
    Xbyak::Label nowhere;
    jmp(nowhere, T_NEAR);
  }
};

class Endless final : public Generator {
 public:
  Endless() : Generator("test/endless", 4096) {}

 private:
  void Emit() override {
    while (true) nop();
  }
};

// The permissions ("r-xp") of the mapping that holds `address`; empty when there is none.
std::string PermissionsAt(const void* address) {
  const auto wanted = reinterpret_cast<uint64_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    const std::vector<std::string> range = absl::StrSplit(fields[0], '-');
    uint64_t begin = 0, end = 0;
    if (!absl::SimpleHexAtoi(range[0], &begin) || !absl::SimpleHexAtoi(range[1], &end)) continue;
    if (begin <= wanted && wanted < end) return fields[1];
  }
  return "";
}

// Before any test: the environment is read once.
const bool kDumpsWanted = [] {
  const char* folder = std::getenv("TEST_TMPDIR");
  if (folder == nullptr) return false;
  setenv("TILEWIRE_DUMP_JIT", folder, /*overwrite=*/1);
  setenv("TILEWIRE_PERF_MAP", "1", /*overwrite=*/1);
  return true;
}();

TEST(GeneratorTest, CodeRunsAndIsNeverWritableAndExecutable) {
  const auto answer = Compile<Answer>();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)->entry<int (*)()>()(), 42);
  EXPECT_EQ((*answer)->name(), "test/answer");
  EXPECT_GT((*answer)->code_bytes(), 0u);
  EXPECT_EQ(PermissionsAt((*answer)->getCode()).substr(0, 3), "r-x");
}

TEST(GeneratorTest, NoPageIsWritableAndExecutable) {
  const auto answer = Compile<Answer>();
  ASSERT_TRUE(answer.ok());
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    EXPECT_FALSE(absl::StrContains(line, " rwx")) << line;
  }
}

TEST(GeneratorTest, UndefinedLabelIsAnInternalError) {
  const absl::Status status = Compile<MissingLabel>().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
}

TEST(GeneratorTest, ErrorsHaveNoMangledNames) {
  const char* name = typeid(Endless).name();
  EXPECT_EQ(ToStatus(name, Xbyak::Error(Xbyak::ERR_CANT_ALLOC)),
            absl::ResourceExhaustedError("the system has no memory for generated code"));
  const std::string bug(ToStatus(name, Xbyak::Error(Xbyak::ERR_BAD_PARAMETER)).message());
  EXPECT_THAT(bug, ::testing::HasSubstr("::Endless: ")) << bug;
  EXPECT_THAT(bug, ::testing::StartsWith("tilewire::")) << bug;
}

TEST(GeneratorTest, CodeOverItsBoundIsUnimplemented) {
  const absl::Status status = Compile<Endless>().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

TEST(GeneratorTest, DumpHoldsTheCode) {
  if (!kDumpsWanted) GTEST_SKIP() << "TEST_TMPDIR is not set";
  const auto answer = Compile<Answer>();
  ASSERT_TRUE(answer.ok());
  const std::string code(reinterpret_cast<const char*>((*answer)->getCode()),
                         (*answer)->code_bytes());
  int dumps = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::getenv("TEST_TMPDIR"))) {
    const std::string name = entry.path().filename();
    if (!absl::StartsWith(name, "test_answer.") || !absl::EndsWith(name, ".bin")) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(bytes, code) << name;
    ++dumps;
  }
  EXPECT_GT(dumps, 0);
}

TEST(GeneratorTest, RecordsHaveTheFilesThatWereDumpedMeanwhile) {
  if (!kDumpsWanted) GTEST_SKIP() << "TEST_TMPDIR is not set";
  const std::filesystem::path folder = std::getenv("TEST_TMPDIR");
  const DumpRecord outer;
  ASSERT_TRUE(Compile<Answer>().ok());
  {
    const DumpRecord inner;
    ASSERT_TRUE(Compile<Answer>().ok());
    ASSERT_EQ(inner.files().size(), 1u);
    EXPECT_TRUE(std::filesystem::exists(folder / inner.files()[0])) << inner.files()[0];
  }
  ASSERT_EQ(outer.files().size(), 2u);
  EXPECT_NE(outer.files()[0], outer.files()[1]);
}

TEST(GeneratorTest, TheFirstDumpThatCannotBeWrittenIsSaidOnce) {
  static std::string lines;
  SetLineWriter([](absl::string_view line) { absl::StrAppend(&lines, line); });
  const Diagnostics before = ActiveDiagnostics();
  Diagnostics diagnostics = before;
  diagnostics.dump_jit = "/proc/self";
  SetDiagnostics(diagnostics);
  const DumpRecord record;
  EXPECT_TRUE(Compile<Answer>().ok()) << "the work itself went well";
  EXPECT_TRUE(Compile<Answer>().ok());
  SetDiagnostics(before);
  SetLineWriter(nullptr);
  EXPECT_THAT(record.files(), ::testing::IsEmpty());
  EXPECT_THAT(lines, HasSubstr("dumps of code: '/proc/self/test_answer."));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
}

TEST(GeneratorTest, DumpsNeedAFolderThatCanBeWritten) {
  if (!kDumpsWanted) GTEST_SKIP() << "TEST_TMPDIR is not set";
  EXPECT_EQ(CheckDumpFolder(std::getenv("TEST_TMPDIR")), absl::OkStatus());
  EXPECT_THAT(CheckDumpFolder("/nowhere/at/all").message(), HasSubstr("'/nowhere/at/all'"));
  EXPECT_EQ(CheckDumpFolder(""), absl::OkStatus());
}

TEST(GeneratorTest, PerfMapNamesTheCode) {
  if (!kDumpsWanted) GTEST_SKIP() << "TEST_TMPDIR is not set";
  const auto answer = Compile<Answer>();
  ASSERT_TRUE(answer.ok());
  const std::string path = absl::StrCat("/tmp/perf-", getpid(), ".map");
  std::ifstream file(path);
  const std::string lines{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(lines,
              HasSubstr(absl::StrCat(absl::Hex(reinterpret_cast<uint64_t>((*answer)->getCode())),
                                     " ", absl::Hex((*answer)->code_bytes()), " test/answer\n")));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tilewire::jit
