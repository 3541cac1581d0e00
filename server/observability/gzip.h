// Compression of answers over HTTP.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace opserve::server {

// `text` in the gzip format, at the speed that suits a scrape.
std::string Gzip(absl::string_view text);

}  // namespace opserve::server
