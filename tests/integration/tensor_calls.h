// The tensor service as a client of the generated stubs sees it, in calls short enough for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/client_context.h"
#include "opserve/v1/error.pb.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "opserve/v1/tensor_service.grpc.pb.h"
#include "tests/bytes.h"

namespace opserve::server {

// As absl::Status, without the detail.
absl::Status ToStatus(const grpc::Status& status);

// FLOAT elements as they travel, and back.
std::string Bytes(const std::vector<float>& values);
std::vector<float> Floats(const std::string& bytes);

// `count` FLOAT elements, all different: 0, 1, 2, ...
std::string CountingBytes(int64_t count);

struct UploadPlan {
  std::string bytes;  // FLOAT elements
  uint64_t chunk_bytes = 4096;
  std::vector<int64_t> shape = {};  // empty: one axis of all elements
  std::optional<uint32_t> device = std::nullopt;
  int64_t lease_ms = 0;
  // Whether the first message has the first chunk, too.
  bool header_alone = false;
};

// The messages of an upload.
std::vector<v1::UploadRequest> UploadMessages(const UploadPlan& plan);

// One connection.
class TensorCalls {
 public:
  explicit TensorCalls(const std::string& target);

  struct UploadResult {
    grpc::Status status;
    v1::UploadResponse response;
  };
  UploadResult Upload(const std::vector<v1::UploadRequest>& messages);
  UploadResult Upload(const UploadPlan& plan) { return Upload(UploadMessages(plan)); }

  struct DownloadResult {
    grpc::Status status;
    v1::DownloadHeader header;
    std::string bytes;
    std::vector<uint64_t> chunks;     // their sizes
    bool checksums_are_right = true;  // of all chunks
  };
  DownloadResult Download(const std::string& handle, uint64_t chunk_bytes = 0);

  grpc::Status Renew(const std::string& handle);
  uint32_t Release(const std::string& handle);
  grpc::Status Execute(const v1::ExecuteRequest& request, v1::ExecuteResponse* response);

  grpc::Status Prepare(const v1::PrepareRequest& request, v1::PrepareResponse* response);
  grpc::Status ReleasePrograms(const v1::ReleaseProgramsRequest& request,
                               v1::ReleaseProgramsResponse* response);

  // Asks for the daemon's status until `is_so` holds for that of `device`.
  void Await(uint32_t device, const std::function<bool(const v1::DeviceStatus&)>& is_so);
  // Resident tensors on all devices, uploads in progress included.
  uint32_t CountTensors();

  v1::TensorService::Stub& tensors() { return *tensors_; }

 private:
  v1::GetServerStatusResponse Status();

  std::unique_ptr<v1::TensorService::Stub> tensors_;
  std::unique_ptr<v1::OperatorService::Stub> operators_;
};

}  // namespace opserve::server
