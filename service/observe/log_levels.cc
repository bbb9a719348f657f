// SPDX-License-Identifier: Apache-2.0
#include "service/observe/log_levels.h"

#include "spdlog/spdlog.h"

namespace tilewire::service {

LogLevels CurrentLogLevels() {
  const spdlog::level::level_enum level = spdlog::get_level();
  LogLevels levels = {.error = level <= spdlog::level::err,
                      .warning = level <= spdlog::level::warn,
                      .info = level <= spdlog::level::info};
  if (level <= spdlog::level::debug) levels.verbose = level <= spdlog::level::trace ? 2 : 1;
  return levels;
}

absl::Status CheckLogLevels(const LogLevels& levels) {
  const bool ordered = (levels.error || !levels.warning) && (levels.warning || !levels.info) &&
                       (levels.info || levels.verbose == 0);
  if (!ordered) {
    return absl::InvalidArgumentError(
        "one threshold decides which lines are logged: log_verbose_level needs log_info, log_info "
        "needs log_warning, log_warning needs log_error");
  }
  return absl::OkStatus();
}

void SetLogLevels(const LogLevels& levels) {
  spdlog::level::level_enum level = spdlog::level::off;
  if (levels.error) level = spdlog::level::err;
  if (levels.warning) level = spdlog::level::warn;
  if (levels.info) level = spdlog::level::info;
  if (levels.verbose > 0) level = spdlog::level::debug;
  if (levels.verbose > 1) level = spdlog::level::trace;
  spdlog::set_level(level);
}

}  // namespace tilewire::service
