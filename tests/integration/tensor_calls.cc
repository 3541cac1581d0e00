#include "tests/integration/tensor_calls.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "proto/codec/crc32c.h"
#include "tests/await.h"

namespace opserve::server {

absl::Status ToStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

std::string Bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::vector<float> Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::string CountingBytes(int64_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return Bytes(values);
}

std::vector<v1::UploadRequest> UploadMessages(const UploadPlan& plan) {
  std::vector<v1::UploadRequest> messages(1);
  v1::UploadHeader& header = *messages[0].mutable_header();
  header.set_dtype(v1::DATA_TYPE_FLOAT);
  header.mutable_shape()->Add(plan.shape.begin(), plan.shape.end());
  if (plan.shape.empty()) header.add_shape(plan.bytes.size() / sizeof(float));
  header.set_chunk_bytes(plan.chunk_bytes);
  if (plan.device) header.set_device(*plan.device);
  if (plan.lease_ms != 0) {
    header.mutable_lease()->set_seconds(plan.lease_ms / 1000);
    header.mutable_lease()->set_nanos(plan.lease_ms % 1000 * 1'000'000);
  }
  bool is_in_first = !plan.header_alone;
  for (size_t offset = 0; offset < plan.bytes.size(); offset += plan.chunk_bytes) {
    if (!is_in_first) messages.emplace_back();
    is_in_first = false;
    messages.back().set_data(plan.bytes.substr(offset, plan.chunk_bytes));
    messages.back().set_crc32c(codec::Crc32c(messages.back().data()));
  }
  return messages;
}

TensorCalls::TensorCalls(const std::string& target) {
  const auto channel = grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
  tensors_ = v1::TensorService::NewStub(channel);
  operators_ = v1::OperatorService::NewStub(channel);
}

TensorCalls::UploadResult TensorCalls::Upload(const std::vector<v1::UploadRequest>& messages) {
  UploadResult result;
  grpc::ClientContext context;
  const auto writer = tensors_->Upload(&context, &result.response);
  for (const v1::UploadRequest& message : messages) {
    if (!writer->Write(message)) break;  // refused; the status says why
  }
  writer->WritesDone();
  result.status = writer->Finish();
  return result;
}

TensorCalls::DownloadResult TensorCalls::Download(const std::string& handle, uint64_t chunk_bytes) {
  DownloadResult result;
  grpc::ClientContext context;
  v1::DownloadRequest request;
  request.set_handle(handle);
  request.set_chunk_bytes(chunk_bytes);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
  const auto reader = tensors_->Download(&context, request);
  v1::DownloadResponse message;
  if (reader->Read(&message)) result.header = message.header();
  while (reader->Read(&message)) {
    result.bytes += message.data();
    result.chunks.push_back(message.data().size());
    if (codec::Crc32c(message.data()) != message.crc32c()) result.checksums_are_right = false;
  }
  result.status = reader->Finish();
  return result;
}

grpc::Status TensorCalls::Renew(const std::string& handle) {
  grpc::ClientContext context;
  v1::RenewRequest request;
  request.add_handles(handle);
  v1::RenewResponse response;
  return tensors_->Renew(&context, request, &response);
}

uint32_t TensorCalls::Release(const std::string& handle) {
  grpc::ClientContext context;
  v1::ReleaseRequest request;
  request.add_handles(handle);
  v1::ReleaseResponse response;
  tensors_->Release(&context, request, &response);
  return response.released();
}

grpc::Status TensorCalls::Execute(const v1::ExecuteRequest& request,
                                  v1::ExecuteResponse* response) {
  grpc::ClientContext context;
  return operators_->Execute(&context, request, response);
}

grpc::Status TensorCalls::Prepare(const v1::PrepareRequest& request,
                                  v1::PrepareResponse* response) {
  grpc::ClientContext context;
  return operators_->Prepare(&context, request, response);
}

grpc::Status TensorCalls::ReleasePrograms(const v1::ReleaseProgramsRequest& request,
                                          v1::ReleaseProgramsResponse* response) {
  grpc::ClientContext context;
  return operators_->ReleasePrograms(&context, request, response);
}

v1::GetServerStatusResponse TensorCalls::Status() {
  grpc::ClientContext context;
  v1::GetServerStatusResponse response;
  operators_->GetServerStatus(&context, {}, &response);
  return response;
}

void TensorCalls::Await(uint32_t device,
                        const std::function<bool(const v1::DeviceStatus&)>& is_so) {
  EXPECT_TRUE(opserve::Await([&] {
    const v1::GetServerStatusResponse status = Status();
    return std::any_of(status.devices().begin(), status.devices().end(),
                       [&](const auto& one) { return one.device() == device && is_so(one); });
  }));
}

uint32_t TensorCalls::CountTensors() {
  uint32_t count = 0;
  const v1::GetServerStatusResponse status = Status();
  for (const v1::DeviceStatus& device : status.devices()) count += device.resident_tensors();
  return count;
}

}  // namespace opserve::server
