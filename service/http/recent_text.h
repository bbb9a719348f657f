// SPDX-License-Identifier: Apache-2.0
//
// A text that costs something to make: made anew four times a second at most, and otherwise told as
// it was. Thread-compatible.
#ifndef SERVICE_HTTP_RECENT_TEXT_H_
#define SERVICE_HTTP_RECENT_TEXT_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace tilewire::service {

class RecentText {
 public:
  static constexpr absl::Duration kShortestPause = absl::Milliseconds(250);

  explicit RecentText(std::function<std::string()> make) : make_(std::move(make)) {}

  const std::string& Get(absl::Time now) {
    if (now - made_ < kShortestPause) return text_;
    text_ = make_();
    made_ = now;
    return text_;
  }

 private:
  const std::function<std::string()> make_;
  std::string text_;
  absl::Time made_ = absl::InfinitePast();
};

}  // namespace tilewire::service

#endif  // SERVICE_HTTP_RECENT_TEXT_H_
