// SPDX-License-Identifier: Apache-2.0
//
// A model repository on disk for FakeEngine, in a folder of the running test.
#ifndef TESTS_SUPPORT_ECHO_REPOSITORY_H_
#define TESTS_SUPPORT_ECHO_REPOSITORY_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tilewire::testing {

// At once, so that a loader never sees a part of the text.
inline void WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::filesystem::path copy = path;
  copy += ".copy";
  std::ofstream(copy) << text;
  std::filesystem::rename(copy, path);
}

// Writes versions 1 and 2 of the model "echo" and returns the repository's folder.
inline std::filesystem::path WriteEchoRepository() {
  const auto folder = std::filesystem::path(::testing::TempDir()) /
                      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  WriteFile(folder / "echo/1/model.onnx", "");
  WriteFile(folder / "echo/2/model.onnx", "");
  return folder;
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_ECHO_REPOSITORY_H_
