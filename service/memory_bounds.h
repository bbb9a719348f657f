// SPDX-License-Identifier: Apache-2.0
//
// The plan for the memory of this process, and where its bounds go.
#ifndef SERVICE_MEMORY_BOUNDS_H_
#define SERVICE_MEMORY_BOUNDS_H_

#include <string>
#include <vector>

#include "service/flags.h"
#include "service/memory_plan.h"
#include "service/models/model_memory.h"

namespace tilewire::service {

// Plans what the flags wish for, beside `models`, and sets the bounds of the engine and of the
// server. To be called before these start threads.
MemoryPlan ApplyMemory(const std::vector<ServedModel>& models, Flags* flags);

ModelMemory::Bounds BoundsOfModels(const MemoryPlan& plan);

// "512 MB granted by memory.max of the control group '/a'".
std::string GrantedText(const MemoryLimit& limit);

}  // namespace tilewire::service

#endif  // SERVICE_MEMORY_BOUNDS_H_
