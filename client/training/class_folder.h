// SPDX-License-Identifier: Apache-2.0
//
// Pictures in a folder per class: FOLDER/cat/1.jpg, FOLDER/dog/7.png. Classes are numbered from 0
// in the order of their names, byte by byte; names that begin with a point are left out.
#ifndef CLIENT_TRAINING_CLASS_FOLDER_H_
#define CLIENT_TRAINING_CLASS_FOLDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tilewire::client {

struct ClassFolder {
  struct Picture {
    std::string file;
    int64_t label = 0;  // into `classes`
  };
  std::vector<std::string> classes;
  std::vector<Picture> pictures;  // by class, then by name
};

// Reads names, and no picture.
//   kInvalidArgument  no folder of a class, a class without a picture, a file where a class is
//                     expected or a folder where a picture is
//   kNotFound, kPermissionDenied  a folder that cannot be read
absl::StatusOr<ClassFolder> ListClassFolder(const std::string& path);

}  // namespace tilewire::client

#endif  // CLIENT_TRAINING_CLASS_FOLDER_H_
