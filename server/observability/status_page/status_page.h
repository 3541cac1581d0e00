// The status page, as assemble.py makes it of the files beside this one.
#pragma once

namespace opserve::server {

extern const char kStatusPage[];        // HTML, all in one
extern const char kStatusPagePolicy[];  // the Content-Security-Policy that fits it

}  // namespace opserve::server
