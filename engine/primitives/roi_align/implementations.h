// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_ROI_ALIGN_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_ROI_ALIGN_IMPLEMENTATIONS_H_

#include "engine/primitives/roi_align/roi_align.h"

namespace tilewire::roi_align {

PrimitiveInfo InfoOf(const Request<RoiAlignDesc>& request);

TILEWIRE_ROW(RoiAlignDesc, ChannelsLast);

TILEWIRE_ROW(RoiAlignDesc, Reference);

}  // namespace tilewire::roi_align

#endif  // ENGINE_PRIMITIVES_ROI_ALIGN_IMPLEMENTATIONS_H_
