// Takes the place of the vendor's header of this name: the part of Ascend C that our kernel uses,
// on the CPU.
#pragma once

#include <cstdint>
#include <cstring>

#include "copy.h"
#include "synchronization.h"
#include "tensor.h"
#include "vector.h"

#define __aicore__
#define __global__
#define __gm__
using GM_ADDR = uint8_t*;

#define KERNEL_TASK_TYPE_DEFAULT(type) static_assert(true)
#define REGISTER_TILING_DEFAULT(type) static_assert(true)
#define GET_TILING_DATA_WITH_STRUCT(type, name, address) \
  type name;                                             \
  std::memcpy(&name, address, sizeof(name))
