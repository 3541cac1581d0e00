// Protobuf's maps have two members more where the compiler says that it builds for ThreadSanitizer.
// The packaged protobuf was not built like that, so their layout would differ between it and a
// ThreadSanitizer build, whose include path begins here.
#pragma once

#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include_next <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")
