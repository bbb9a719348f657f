// SPDX-License-Identifier: Apache-2.0
//
// The settings of the log and of traces as clients see and change them. A change is a line in the
// log: each setting that is another now, with its old and its new value, and who asked for it.
// Thread-safe.
#ifndef SERVICE_RPC_SETTINGS_H_
#define SERVICE_RPC_SETTINGS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "protos/open_inference.pb.h"
#include "service/front/method_table.h"
#include "service/observe/request_log.h"
#include "service/trace/tracer.h"

namespace tilewire::service {

// Who asks, and what is open to clients.
struct SettingsClient {
  const OpenRights& open;
  absl::FunctionRef<RequestOrigin()> origin;  // asked only if a line is written
};

// Makes the changes, all or none, then tells every setting. A request without changes needs no
// right.
//   kPermissionDenied  changes, while the right to settings is not open
//   kInvalidArgument   a setting that is unknown or cannot be changed over the wire, or its value;
//                      the message names the setting
absl::Status AnswerLogSettings(const SettingsClient& client,
                               const inference::LogSettingsRequest& request,
                               inference::LogSettingsResponse* response);

// The settings of traces hold for all models: those of one model can be asked for and not be set
// apart. A setting without a value gets the one of the start; one that is sent back as it was told
// stays, whichever it is. `tracer` is null where traces are written nowhere: they can be off only.
//   the same, for changes for one model too, and
//   kFailedPrecondition  traces are to be on, and are written nowhere
absl::Status AnswerTraceSetting(const SettingsClient& client, Tracer* tracer,
                                const inference::TraceSettingRequest& request,
                                inference::TraceSettingResponse* response);

}  // namespace tilewire::service

#endif  // SERVICE_RPC_SETTINGS_H_
