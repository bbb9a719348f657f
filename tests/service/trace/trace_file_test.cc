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
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// The elements of a file, without names of the process and of rows.
json WithoutNames(const std::filesystem::path& path) {
  json left = json::array();
  for (const json& element : Read(path))
    if (element.value("ph", "") != "M") left.push_back(element);
  return left;
}

// The ids of the requests in a file of Triton's form.
std::vector<std::string> IdsIn(const std::filesystem::path& path) {
  std::vector<std::string> ids;
  for (const json& element : Read(path))
    if (element.contains("request_id")) ids.push_back(element["request_id"]);
  return ids;
}

std::string ContentOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::filesystem::path Before(const std::filesystem::path& path) { return path.string() + ".1"; }

absl::StatusOr<std::unique_ptr<TraceFile>> Begun(const std::filesystem::path& path, TraceForm form,
                                                 int64_t most_bytes = TraceFile::kMostBytes) {
  auto file = std::make_unique<TraceFile>(path, form, most_bytes);
  if (const absl::Status begun = file->Begin(); !begun.ok()) return begun;
  return file;
}

TEST(TraceFileTest, IsWholeAfterEveryWrite) {
  const std::filesystem::path path = testing::EmptyFolder("whole") / "trace.json";
  for (const TraceForm form : {TraceForm::kChrome, TraceForm::kTriton}) {
    auto file = Begun(path, form);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(Read(path), json::array());
    const size_t each = form == TraceForm::kChrome ? 7 : 2;
    for (size_t writes = 1; writes < 4; ++writes) {
      (*file)->Write(testing::SomeTraces(2));
      EXPECT_EQ(WithoutNames(path).size(), writes * 2 * each);
    }
    EXPECT_EQ((*file)->dropped(), 0);
  }
  EXPECT_EQ(WithoutNames(path.string() + ".1").size(), 42u) << "the file of the start before";
}

TEST(TraceFileTest, RotatesWithinItsBound) {
  const std::filesystem::path path = testing::EmptyFolder("rotated") / "trace.json";
  constexpr int64_t kMost = 4000;
  constexpr int kTraces = 40;
  auto file = Begun(path, TraceForm::kTriton, kMost);
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
  auto file = Begun(path, TraceForm::kTriton, 8000);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->Write(testing::SomeTraces(20));
  EXPECT_EQ(IdsIn(path).size() + IdsIn(path.string() + ".1").size(), 20u);
  EXPECT_GT(IdsIn(path.string() + ".1").size(), 1u);
}

TEST(TraceFileTest, OneThatIsLargerThanTheBoundIsWritten) {
  const std::filesystem::path path = testing::EmptyFolder("small") / "trace.json";
  auto file = Begun(path, TraceForm::kChrome, 10);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->Write(testing::SomeTraces(3));
  EXPECT_EQ(WithoutNames(path).size(), 7u);
  EXPECT_EQ(Read(path).size(), 9u) << "each file names the process and its row";
  EXPECT_EQ((*file)->dropped(), 0);
}

TEST(TraceFileTest, TouchesNothingUntilItBegins) {
  const std::filesystem::path path = testing::EmptyFolder("untouched") / "trace.json";
  TraceFile file(path, TraceForm::kTriton);
  EXPECT_FALSE(std::filesystem::exists(path));
  file.Write(testing::SomeTraces(2));
  EXPECT_EQ(IdsIn(path).size(), 2u);
  EXPECT_TRUE(file.Begin().ok());
  EXPECT_EQ(IdsIn(path).size(), 2u) << "it had begun";
  TraceFile nowhere(path.parent_path(), TraceForm::kTriton);
  nowhere.Write(testing::SomeTraces(2));
  EXPECT_EQ(nowhere.dropped(), 2);
  EXPECT_FALSE(nowhere.Begin().ok());
}

TEST(TraceFileTest, ASecondServerOnTheSameFileIsRefused) {
  const std::filesystem::path path = testing::EmptyFolder("shared") / "trace.json";
  auto first = Begun(path, TraceForm::kTriton, 2000);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto expect_in_use = [&path] {
    const auto second = Begun(path, TraceForm::kChrome);
    EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
    EXPECT_THAT(second.status().message(), HasSubstr(path.string()));
    EXPECT_THAT(second.status().message(), HasSubstr("name another file"));
  };
  (*first)->Write(testing::SomeTraces(1));
  expect_in_use();
  EXPECT_EQ(IdsIn(path).size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(Before(path)));
  while (!std::filesystem::exists(Before(path))) (*first)->Write(testing::SomeTraces(1));
  expect_in_use();
  EXPECT_EQ((*first)->dropped(), 0);
  first->reset();
  EXPECT_TRUE(Begun(path, TraceForm::kChrome).ok());
}

TEST(TraceFileTest, AnEmptyTraceReplacesNone) {
  const std::filesystem::path path = testing::EmptyFolder("empty") / "trace.json";
  {
    auto file = Begun(path, TraceForm::kTriton);
    ASSERT_TRUE(file.ok()) << file.status();
    (*file)->Write(testing::SomeTraces(3));
  }
  EXPECT_TRUE(Begun(path, TraceForm::kTriton).ok());
  for (const char* text : {"[\n]\n", "[\n", "[", ""}) {  // cut off by the end of a machine too
    std::ofstream(path) << text;
    EXPECT_TRUE(Begun(path, TraceForm::kTriton).ok()) << text;
    EXPECT_EQ(ContentOf(path), "[\n]\n");
    EXPECT_EQ(IdsIn(Before(path)).size(), 3u) << text;
  }
}

TEST(TraceFileTest, ContentThatIsNoTraceStaysAsItIs) {
  const std::filesystem::path folder = testing::EmptyFolder("precious");
  const std::string texts[] = {"precious\n",
                               "[1, 2]\n",
                               "[]\n",
                               "[\n\n]\n",
                               "{}",
                               "\n",
                               std::string(8, '\0'),
                               "[\n{\"id\":\"7\"}\n]\n",
                               "[\n{\"name\":\"request\",\"price\":1}\n]\n"};
  for (const std::string& text : texts) {
    for (const char* name : {"trace", "trace.1"}) {
      const std::filesystem::path path = testing::EmptyFolder("precious") / name;
      std::ofstream(path) << text;
      const auto file = Begun(folder / "trace", TraceForm::kChrome);
      EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << text;
      EXPECT_THAT(file.status().message(), HasSubstr(path.string() + " holds something else"));
      EXPECT_EQ(ContentOf(path), text);
      EXPECT_FALSE(std::filesystem::exists(Before(path)));
    }
  }
}

TEST(TraceFileTest, LinksLeadToTheFileThatIsRenamed) {
  const std::filesystem::path folder = testing::EmptyFolder("links");
  const std::filesystem::path link = folder / "link.json", real = folder / "far" / "trace.json";
  std::filesystem::create_directories(real.parent_path());
  std::filesystem::create_symlink(real, link);
  EXPECT_THAT(std::string(Begun(link, TraceForm::kTriton).status().message()),
              HasSubstr("leads to no file"));
  std::ofstream(real).flush();
  for (int starts = 0; starts < 2; ++starts) {
    auto file = Begun(link, TraceForm::kTriton);
    ASSERT_TRUE(file.ok()) << file.status();
    (*file)->Write(testing::SomeTraces(2));
  }
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_FALSE(std::filesystem::exists(Before(link)));
  EXPECT_EQ(IdsIn(real).size(), 2u);
  EXPECT_EQ(IdsIn(Before(real)).size(), 2u);
}

// Others have moved the file away, and put an empty one in its place.
TEST(TraceFileTest, AFileThatWasMovedAwayIsNotRotated) {
  const std::filesystem::path folder = testing::EmptyFolder("moved"), path = folder / "trace.json";
  auto file = Begun(path, TraceForm::kTriton, 4000);
  ASSERT_TRUE(file.ok()) << file.status();
  while (!std::filesystem::exists(Before(path))) (*file)->Write(testing::SomeTraces(1));
  const std::string before = ContentOf(Before(path));
  std::filesystem::rename(path, folder / "moved.json");
  std::ofstream(path).flush();
  while (std::filesystem::file_size(path) == 0) (*file)->Write(testing::SomeTraces(1));
  EXPECT_EQ(ContentOf(Before(path)), before);
  EXPECT_EQ(IdsIn(path).size(), 1u);
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
  auto file = Begun(path, TraceForm::kTriton);
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

TEST(TraceFileTest, AFullDiskAtTheStartLosesTracesUntilThereIsRoom) {
  for (const bool has_traces : {false, true}) {
    const std::filesystem::path path = testing::EmptyFolder("full_start") / "trace.json";
    if (has_traces) TraceFile(path, TraceForm::kTriton).Write(testing::SomeTraces(4));
    TraceFile file(path, TraceForm::kTriton);
    absl::Status begun;
    {
      const FullDisk full(2);
      begun = file.Begin();
      for (int i = 0; i < 3; ++i) file.Write(testing::SomeTraces(2));
    }
    EXPECT_TRUE(begun.ok()) << begun;
    EXPECT_EQ(file.dropped(), 6);
    file.Write(testing::SomeTraces(1));
    EXPECT_EQ(IdsIn(path).size(), 1u);
    EXPECT_EQ(file.dropped(), 6);
    EXPECT_EQ(std::filesystem::exists(Before(path)), has_traces);
    if (has_traces) {
      EXPECT_EQ(IdsIn(Before(path)).size(), 4u);
    }
  }
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
      {"/dev/null", "below /dev"},
      {"/dev/stdout", "below /dev"},
      {"/tmp/../dev/stdout", "below /dev"},
      {"/proc/self/fd/1", "below /proc"},
      {folder / "absent/trace.json", "cannot open"},
  };
  for (const auto& [path, text] : cases) {
    const auto file = Begun(path, TraceForm::kChrome);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_THAT(file.status().message(), HasSubstr(text));
    EXPECT_THAT(file.status().message(), HasSubstr(path));
  }
}

// A folder in the place of PATH.1 cannot be replaced.
TEST(TraceFileTest, AFileThatCannotBeRenamedStopsGrowing) {
  const std::filesystem::path path = testing::EmptyFolder("kept") / "trace.json";
  auto file = Begun(path, TraceForm::kTriton, 4000);
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
