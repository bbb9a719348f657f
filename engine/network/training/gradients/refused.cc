// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/network/training/gradients/gradients.h"

namespace tilewire::network {

absl::Status AppendGradients(const Attention&, GradientContext&) {
  return Unimplemented("attention has a gradient only as the operations that it consists of");
}

absl::Status AppendGradients(const MaxWindow&, GradientContext&) {
  return Unimplemented("a maximum of dilated windows has no gradient");
}

absl::Status AppendGradients(const Rnn&, GradientContext&) {
  return Unimplemented("recurrent layers have no gradient");
}

absl::Status AppendGradients(const RoiAlign&, GradientContext&) {
  return Unimplemented("regions of images have no gradient");
}

}  // namespace tilewire::network
