// Results and receipts for people and programs.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "client/cli/text/output.h"
#include "client/cpp/tensor.h"
#include "nlohmann/json.hpp"
#include "opserve/v1/operator_service.pb.h"

namespace opserve::cli {

// Dtype, shape, a summary, and the values or their file. `path`: the file that has the values;
// null: they are part of the report.
nlohmann::ordered_json ResultToJson(const Result& result, const std::string* path);
void WriteResult(const Result& result, const std::string* path, Terminal& terminal);

// A stage of a receipt.
struct ReceiptStage {
  absl::string_view name;
  int64_t (v1::Receipt::*time_ns)() const;
};

// All stages, in their order. They do not overlap and sum to the receipt's total.
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

// A table of the stages' times and shares, then the call's device and its costs.
std::string FormatReceipt(const v1::Receipt& receipt);

}  // namespace opserve::cli
