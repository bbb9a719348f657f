// SPDX-License-Identifier: Apache-2.0
#include "client/training/class_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using tilewire::testing::StatusIs;

// A folder of this test with empty files, and folders, whose names end in a slash.
std::string FolderWith(const std::vector<std::string>& names) {
  static int number = 0;
  const std::filesystem::path root =
      std::filesystem::path(::testing::TempDir()) / absl::StrCat("class_folder_", ++number);
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root);
  for (const std::string& name : names) {
    std::filesystem::create_directories((root / name).parent_path());
    if (!name.ends_with("/")) std::ofstream(root / name).put('x');
  }
  return root.string();
}

TEST(ClassFolder, ClassesAndPicturesAreInTheOrderOfTheirNames) {
  const std::string root =
      FolderWith({"dog/2.png", "cat/b.jpg", "cat/a.jpg", "Zebra/1.png", ".git/x", "cat/.hidden"});
  ASSERT_OK_AND_ASSIGN(const ClassFolder folder, ListClassFolder(root));
  EXPECT_THAT(folder.classes, ElementsAre("Zebra", "cat", "dog")) << "byte by byte";
  std::vector<std::string> found;
  for (const ClassFolder::Picture& picture : folder.pictures)
    found.push_back(absl::StrCat(picture.label, " ", picture.file));
  EXPECT_THAT(
      found,
      ElementsAre(absl::StrCat("0 ", root, "/Zebra/1.png"), absl::StrCat("1 ", root, "/cat/a.jpg"),
                  absl::StrCat("1 ", root, "/cat/b.jpg"), absl::StrCat("2 ", root, "/dog/2.png")));
}

TEST(ClassFolder, NamesThatAreNumbersAreInTheOrderOfTheNumbers) {
  ASSERT_OK_AND_ASSIGN(const ClassFolder numbers,
                       ListClassFolder(FolderWith({"10/a.png", "2/a.png", "0/a.png", "02/a.png"})));
  EXPECT_THAT(numbers.classes, ElementsAre("0", "02", "2", "10"));
  ASSERT_OK_AND_ASSIGN(const ClassFolder mixed,
                       ListClassFolder(FolderWith({"10/a.png", "2/a.png", "cat/a.png"})));
  EXPECT_THAT(mixed.classes, ElementsAre("10", "2", "cat"));
}

TEST(ClassFolder, APipeIsNoPicture) {
  const std::string root = FolderWith({"cat/a.jpg"});
  ASSERT_EQ(mkfifo((root + "/cat/b.jpg").c_str(), 0600), 0);
  EXPECT_THAT(ListClassFolder(root),
              StatusIs(absl::StatusCode::kInvalidArgument, "/cat/b.jpg' is not a regular file"));
}

TEST(ClassFolder, NothingIsLeftOutSilently) {
  const std::string empty = FolderWith({});
  EXPECT_THAT(ListClassFolder(empty), StatusIs(absl::StatusCode::kInvalidArgument,
                                               absl::StrCat("'", empty,
                                                            "' is empty; it must have a folder of "
                                                            "pictures for each class")
                                                   .c_str()));
  EXPECT_THAT(ListClassFolder(FolderWith({"cat/a.jpg", "dog/"})),
              StatusIs(absl::StatusCode::kInvalidArgument, "/dog' has no picture"));
  EXPECT_THAT(
      ListClassFolder(FolderWith({"cat/a.jpg", "b.jpg"})),
      StatusIs(absl::StatusCode::kInvalidArgument, "/b.jpg' is not a folder; each class is one"));
  EXPECT_THAT(
      ListClassFolder(FolderWith({"cat/small/a.jpg"})),
      StatusIs(absl::StatusCode::kInvalidArgument, "/cat/small' is a folder within a class"));
  EXPECT_THAT(ListClassFolder(empty + "/none"), StatusIs(absl::StatusCode::kNotFound, "/none'"));
}

}  // namespace
}  // namespace tilewire::client
