// SPDX-License-Identifier: Apache-2.0
//
// The settings of the log and of traces as clients see and change them. Thread-safe.
#ifndef SERVICE_RPC_SETTINGS_H_
#define SERVICE_RPC_SETTINGS_H_

#include "absl/status/status.h"
#include "protos/open_inference.pb.h"
#include "service/front/method_table.h"
#include "service/trace/tracer.h"

namespace tilewire::service {

// Makes the changes, all or none, then tells every setting. A request without changes needs no
// right.
//   kPermissionDenied  changes, while the right to settings is not open
//   kInvalidArgument   a setting that is unknown or cannot be changed over the wire, or its value;
//                      the message names the setting
absl::Status AnswerLogSettings(const OpenRights& open, const inference::LogSettingsRequest& request,
                               inference::LogSettingsResponse* response);

// The settings of traces hold for all models: those of one model can be asked for and not be set
// apart. A setting without a value gets the one of the start; one that is sent back as it was told
// stays, whichever it is. `tracer` is null where traces are written nowhere: they can be off only.
//   the same, for changes for one model too, and
//   kFailedPrecondition  traces are to be on, and are written nowhere
absl::Status AnswerTraceSetting(const OpenRights& open, Tracer* tracer,
                                const inference::TraceSettingRequest& request,
                                inference::TraceSettingResponse* response);

}  // namespace tilewire::service

#endif  // SERVICE_RPC_SETTINGS_H_
