// SPDX-License-Identifier: Apache-2.0
//
// Fingerprints of a model's files, which tell that the files have changed without reading them.
#ifndef SERVICE_MODELS_FILE_STAMP_H_
#define SERVICE_MODELS_FILE_STAMP_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "service/models/served_model.h"

namespace tilewire::service {

// Per file: its path, device and inode, size, and in nanoseconds when its contents and its status
// last changed. The last one cannot be set back, so that a file which was overwritten with its time
// kept is seen.
using FileStamp =
    std::vector<std::tuple<std::string, uint64_t, uint64_t, int64_t, int64_t, int64_t>>;

// The stamp of all files in the version's folder and the folders below it, which may hold weights,
// and of those beside it (labels, settings), at most 1000; of a file that stands alone, only its
// own, its labels' and its tuning's. Leaves out files that cannot be read.
FileStamp StampOf(const ServedModel& served);

// The bytes of all its files.
int64_t SizeOf(const FileStamp& stamp);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_FILE_STAMP_H_
