// SPDX-License-Identifier: Apache-2.0
//
// Lines on standard error about what primitives do, when the environment asks for them:
//
//   TILEWIRE_VERBOSE=1   tilewire,execute,convolution/avx512_f32_direct,src f32:1x64x56x56:nChw16c
//   ...,0.412 ms TILEWIRE_VERBOSE=2   and tilewire,create:cache_miss,... ,
//   tilewire,create:cache_hit,...
//
// Source: ROWS.md V01-V04, C05. Thread-safe.
#ifndef ENGINE_PRIMITIVES_VERBOSE_H_
#define ENGINE_PRIMITIVES_VERBOSE_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

// 0, 1 or 2; read once.
int VerboseLevel();

// One line with what happened, to whom, and how long it took.
void WriteVerboseLine(absl::string_view event, const PrimitiveInfo& primitive,
                      absl::Duration duration);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_VERBOSE_H_
