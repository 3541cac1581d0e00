// What is counted of every request.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/observability/metrics.h"
#include "server/observability/stage_clock.h"

namespace opserve::server {

// Thread-safe. The tenant of every request is "default".
class RequestMetrics {
 public:
  // `operators`: the catalogue's names. `devices`: the ids that may occur.
  RequestMetrics(std::vector<std::string> operators, std::vector<int32_t> devices);

  // Where a request belongs: an operator's position in the list; kProgram for several invocations;
  // kUnknown if it was refused before that was known.
  static constexpr int kProgram = -1;
  static constexpr int kUnknown = -2;

  struct Request {
    int op = kUnknown;
    std::optional<int32_t> device;  // none: it did not get to one
    absl::Status status;
    const StageClock* clock = nullptr;
    uint64_t request_bytes = 0;   // as received
    uint64_t response_bytes = 0;  // as sent; 0 on failure
  };
  void Record(const Request& request);

  // Host bytes copied on behalf of requests.
  void RecordCopies(uint64_t to_device_bytes, uint64_t from_device_bytes);

  std::vector<prometheus::MetricFamily> Collect() const;

 private:
  static constexpr int kCodes = 17;

  struct PerOperator {
    PerOperator(std::string name, size_t devices);
    std::string name;
    // By device (the last: none) and code.
    std::vector<std::array<std::atomic<uint64_t>, kCodes>> requests;
    std::vector<std::unique_ptr<Histogram>> stages;  // kStages of them, then the total
    Histogram request_bytes{BytesBounds()};
    Histogram response_bytes{BytesBounds()};
  };

  PerOperator& Of(int op);
  size_t DeviceIndex(std::optional<int32_t> device) const;
  std::string DeviceLabel(size_t index) const;

  const std::vector<int32_t> devices_;
  std::vector<std::unique_ptr<PerOperator>> operators_;  // then "program" and "unknown"
  std::vector<std::atomic<uint64_t>> rejections_;        // by position in the set of reasons
  std::atomic<uint64_t> bytes_to_device_ = 0;
  std::atomic<uint64_t> bytes_from_device_ = 0;
};

}  // namespace opserve::server
