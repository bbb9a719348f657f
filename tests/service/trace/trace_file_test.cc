// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/service/trace/traced_requests.h"

namespace tilewire::service {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

// The ids of the requests in a file of Triton's form.
std::vector<std::string> IdsIn(const std::filesystem::path& path) {
  std::vector<std::string> ids;
  for (const json& element : Read(path))
    if (element.contains("request_id")) ids.push_back(element["request_id"]);
  return ids;
}

TEST(TraceFileTest, IsWholeAfterEveryWrite) {
  const std::filesystem::path path = testing::EmptyFolder("whole") / "trace.json";
  for (const TraceForm form : {TraceForm::kChrome, TraceForm::kTriton}) {
    auto file = TraceFile::Open(path, form);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(Read(path), json::array());
    const size_t each = form == TraceForm::kChrome ? 7 : 2;
    for (size_t writes = 1; writes < 4; ++writes) {
      (*file)->Write(testing::SomeTraces(2));
      EXPECT_EQ(Read(path).size(), writes * 2 * each);
    }
    EXPECT_EQ((*file)->dropped(), 0);
  }
  EXPECT_EQ(Read(path.string() + ".1").size(), 42u) << "the file of the start before";
}

TEST(TraceFileTest, RotatesWithinItsBound) {
  const std::filesystem::path path = testing::EmptyFolder("rotated") / "trace.json";
  constexpr int64_t kMost = 4000;
  constexpr int kTraces = 40;
  auto file = TraceFile::Open(path, TraceForm::kTriton, kMost);
  ASSERT_TRUE(file.ok()) << file.status();
  std::set<std::string> seen;
  const std::vector<Trace> traces = testing::SomeTraces(kTraces);
  for (const Trace& trace : traces) {
    (*file)->Write({trace});
    EXPECT_LE(std::filesystem::file_size(path), static_cast<uintmax_t>(kMost));
    for (const std::string& id : IdsIn(path)) seen.insert(id);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kTraces)) << "one was lost";
  EXPECT_EQ((*file)->dropped(), 0);
  EXPECT_EQ(IdsIn(path).back(), "id39");
  // The two files hold the latest ones, each once.
  std::vector<std::string> kept = IdsIn(path.string() + ".1");
  for (const std::string& id : IdsIn(path)) kept.push_back(id);
  EXPECT_EQ(std::set<std::string>(kept.begin(), kept.end()).size(), kept.size());
  EXPECT_LE(std::filesystem::file_size(path.string() + ".1"), static_cast<uintmax_t>(kMost));
}

TEST(TraceFileTest, ManyTracesAtOnceAreSpreadOverFiles) {
  const std::filesystem::path path = testing::EmptyFolder("spread") / "trace.json";
  auto file = TraceFile::Open(path, TraceForm::kTriton, 8000);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->Write(testing::SomeTraces(20));
  EXPECT_EQ(IdsIn(path).size() + IdsIn(path.string() + ".1").size(), 20u);
  EXPECT_GT(IdsIn(path.string() + ".1").size(), 1u);
}

TEST(TraceFileTest, OneThatIsLargerThanTheBoundIsWritten) {
  const std::filesystem::path path = testing::EmptyFolder("small") / "trace.json";
  auto file = TraceFile::Open(path, TraceForm::kChrome, 10);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->Write(testing::SomeTraces(3));
  EXPECT_EQ(Read(path).size(), 7u);
  EXPECT_EQ((*file)->dropped(), 0);
}

// No file of this process may grow beyond a size, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  const sighandler_t handler_;
  rlimit before_ = {};
};

TEST(TraceFileTest, AFullDiskLosesTracesAndKeepsTheFileWhole) {
  const std::filesystem::path path = testing::EmptyFolder("full") / "trace.json";
  auto file = TraceFile::Open(path, TraceForm::kTriton);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->Write(testing::SomeTraces(2));
  const uintmax_t size = std::filesystem::file_size(path);
  {
    const FullDisk full(size + 300);
    for (int i = 0; i < 3; ++i) (*file)->Write(testing::SomeTraces(2));
    EXPECT_EQ((*file)->dropped(), 6);
    EXPECT_EQ(IdsIn(path).size(), 2u);
  }
  (*file)->Write(testing::SomeTraces(1));
  EXPECT_EQ(IdsIn(path).size(), 3u) << "it goes on when there is room again";
  EXPECT_EQ((*file)->dropped(), 6);
}

TEST(TraceFileTest, WhatCannotBeWrittenIsRefusedAtTheStart) {
  const std::filesystem::path folder = testing::EmptyFolder("refused");
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const struct {
    std::string path, text;
  } cases[] = {
      {folder, "is not a file"},
      {pipe, "is not a file"},
      {"/dev/null", "is not a file"},
      {folder / "absent/trace.json", "cannot open"},
  };
  for (const auto& [path, text] : cases) {
    const auto file = TraceFile::Open(path, TraceForm::kChrome);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_THAT(file.status().message(), HasSubstr(text));
    EXPECT_THAT(file.status().message(), HasSubstr(path));
  }
}

// A folder in the place of PATH.1 cannot be replaced.
TEST(TraceFileTest, AFileThatCannotBeRenamedStopsGrowing) {
  const std::filesystem::path path = testing::EmptyFolder("kept") / "trace.json";
  auto file = TraceFile::Open(path, TraceForm::kTriton, 4000);
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::create_directories(path.string() + ".1");
  (*file)->Write(testing::SomeTraces(30));
  const size_t written = IdsIn(path).size();
  EXPECT_GT(written, 1u);
  EXPECT_EQ((*file)->dropped(), static_cast<int64_t>(30 - written));
  std::filesystem::remove(path.string() + ".1");
  (*file)->Write(testing::SomeTraces(1));
  EXPECT_EQ(IdsIn(path).size(), 1u);
}

}  // namespace
}  // namespace tilewire::service
