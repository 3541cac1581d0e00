// The stages of a receipt, in their order.
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "opserve/v1/operator_service.pb.h"

namespace opserve::cli {

struct ReceiptStage {
  absl::string_view name;
  int64_t (v1::Receipt::*time_ns)() const;
};

// They do not overlap and sum to the receipt's total.
inline constexpr std::array kReceiptStages = {
    ReceiptStage{"read", &v1::Receipt::read_ns},
    ReceiptStage{"validate", &v1::Receipt::validate_ns},
    ReceiptStage{"queue", &v1::Receipt::queue_ns},
    ReceiptStage{"h2d", &v1::Receipt::h2d_ns},
    ReceiptStage{"prepare", &v1::Receipt::prepare_ns},
    ReceiptStage{"execute", &v1::Receipt::execute_ns},
    ReceiptStage{"d2h", &v1::Receipt::d2h_ns},
    ReceiptStage{"write", &v1::Receipt::write_ns},
};

}  // namespace opserve::cli
