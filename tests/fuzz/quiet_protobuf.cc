// SPDX-License-Identifier: Apache-2.0
//
// Protobuf's lines about strings that are not UTF-8 take longer than decoding; the server silences
// them, too.
#include "google/protobuf/stubs/logging.h"

namespace {

[[maybe_unused]] google::protobuf::LogHandler* const before =
    google::protobuf::SetLogHandler(nullptr);

}  // namespace
