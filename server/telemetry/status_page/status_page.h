// The pages for people, as assemble.py makes them: the status page of the files beside this one,
// the runbook of deploy/RUNBOOK.md.
#pragma once

#include <array>

#include "absl/types/span.h"

namespace opserve::server {

extern const char kStatusPage[];        // HTML, all in one
extern const char kStatusPagePolicy[];  // the Content-Security-Policy that fits it

extern const char kRunbookPage[];  // likewise
extern const char kRunbookPagePolicy[];

// A figure that the status page draws over time: a metric's samples, summed by the values of some
// labels. A histogram's buckets have the label "le".
struct Figure {
  const char* key;
  const char* metric;                 // a histogram's without _bucket
  std::array<const char*, 2> labels;  // the second may be null: there is one
  const char* where_label = nullptr;  // null: of all samples
  const char* where_value = nullptr;
};

absl::Span<const Figure> Figures();

}  // namespace opserve::server
