// Bytes that cannot be foretold, for handles.
#pragma once

#include <cstddef>
#include <string>

namespace opserve::server {

// `count` bytes of the kernel's generator. Without them handles would protect nothing, so a kernel
// that gives none ends the process; it gives them to every process since its early boot.
// Thread-safe.
std::string RandomBytes(size_t count);

}  // namespace opserve::server
