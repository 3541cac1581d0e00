#include "tests/unit/client/test_tensor_service.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "opserve/v1/error.pb.h"
#include "proto/codec/crc32c.h"

namespace opserve {
namespace {

constexpr int64_t kFirstLeaseStart = 1700000000;
constexpr int64_t kDefaultLease = 600;
constexpr uint64_t kDownloadChunkBytes = 1000;
constexpr uint64_t kVersion = 7;

int64_t LeaseEnd(const google::protobuf::Duration& lease) {
  return kFirstLeaseStart + (lease.seconds() == 0 ? kDefaultLease : lease.seconds());
}

grpc::Status NoSuchTensor(const std::string& handle) {
  v1::ErrorDetail detail;
  detail.set_reason("tensor_unknown");
  v1::StatusDetails details;
  details.add_details()->PackFrom(detail);
  return {grpc::StatusCode::NOT_FOUND, "no tensor " + handle, details.SerializeAsString()};
}

// What is wrong with a chunk; nothing: OK.
grpc::Status Check(const v1::UploadRequest& message, uint64_t chunk_bytes, bool is_first,
                   bool is_after_short) {
  if (message.has_header() != is_first) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "the header belongs into the first message"};
  }
  if (message.crc32c() != codec::Crc32c(message.data())) {
    return {grpc::StatusCode::DATA_LOSS, "checksum"};
  }
  if (message.data().size() > chunk_bytes || is_after_short) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "chunk size"};
  }
  return grpc::Status::OK;
}

}  // namespace

void TestTensorService::set_upload(UploadHandler upload) {
  absl::MutexLock lock(&mutex_);
  upload_ = std::move(upload);
}

void TestTensorService::set_download(DownloadHandler download) {
  absl::MutexLock lock(&mutex_);
  download_ = std::move(download);
}

std::vector<std::string> TestTensorService::releases() {
  absl::MutexLock lock(&mutex_);
  return releases_;
}

TestTensorService::StoredTensor TestTensorService::Find(const std::string& handle) {
  absl::MutexLock lock(&mutex_);
  const auto found = tensors_.find(handle);
  return found == tensors_.end() ? StoredTensor() : found->second;
}

grpc::Status TestTensorService::Upload(grpc::ServerContext* context,
                                       grpc::ServerReader<v1::UploadRequest>* reader,
                                       v1::UploadResponse* response) {
  UploadHandler upload;
  {
    absl::MutexLock lock(&mutex_);
    upload = upload_;
  }
  return upload ? upload(context, reader, response) : Store(reader, response);
}

grpc::Status TestTensorService::Store(grpc::ServerReader<v1::UploadRequest>* reader,
                                      v1::UploadResponse* response) {
  StoredTensor tensor;
  v1::UploadRequest message;
  while (reader->Read(&message)) {
    const bool is_first = tensor.chunks.empty();
    if (is_first) tensor.header = message.header();
    const uint64_t chunk_bytes = tensor.header.chunk_bytes();
    const bool is_after_short = !is_first && tensor.chunks.back() < chunk_bytes;
    grpc::Status status = Check(message, chunk_bytes, is_first, is_after_short);
    if (!status.ok()) return status;
    tensor.chunks.push_back(message.data().size());
    tensor.elements += message.data();
  }
  absl::MutexLock lock(&mutex_);
  response->set_handle(absl::StrCat("tensor-", num_uploads_++));
  response->mutable_lease_end()->set_seconds(LeaseEnd(tensor.header.lease()));
  response->set_device(tensor.header.has_device() ? tensor.header.device() : 3);
  tensors_[response->handle()] = std::move(tensor);
  return grpc::Status::OK;
}

grpc::Status TestTensorService::Download(grpc::ServerContext* context,
                                         const v1::DownloadRequest* request,
                                         grpc::ServerWriter<v1::DownloadResponse>* writer) {
  std::vector<std::string> handles(request->handles().begin(), request->handles().end());
  if (handles.empty()) handles.push_back(request->handle());
  std::vector<StoredTensor> tensors;
  uint64_t total_bytes = 0;
  {
    absl::ReleasableMutexLock lock(&mutex_);
    if (const DownloadHandler download = download_) {
      lock.Release();
      return download(context, *request, writer);
    }
    for (const std::string& handle : handles) {
      const auto found = tensors_.find(handle);
      if (found == tensors_.end()) return NoSuchTensor(handle);
      tensors.push_back(found->second);
      total_bytes += found->second.elements.size();
    }
  }
  const uint64_t chunk_bytes =
      request->chunk_bytes() == 0 ? kDownloadChunkBytes : request->chunk_bytes();
  for (const StoredTensor& tensor : tensors) {
    v1::DownloadResponse message;
    message.mutable_header()->set_dtype(tensor.header.dtype());
    *message.mutable_header()->mutable_shape() = tensor.header.shape();
    message.mutable_header()->set_chunk_bytes(chunk_bytes);
    message.mutable_header()->set_version(kVersion);
    message.mutable_header()->set_total_bytes(std::exchange(total_bytes, 0));
    writer->Write(message);
    message.Clear();
    for (size_t sent = 0; sent < tensor.elements.size(); sent += message.data().size()) {
      message.set_data(tensor.elements.substr(sent, chunk_bytes));
      message.set_crc32c(codec::Crc32c(message.data()));
      writer->Write(message);
    }
  }
  return grpc::Status::OK;
}

grpc::Status TestTensorService::Renew(grpc::ServerContext*, const v1::RenewRequest* request,
                                      v1::RenewResponse* response) {
  absl::MutexLock lock(&mutex_);
  for (const std::string& handle : request->handles()) {
    if (tensors_.count(handle) == 0) return NoSuchTensor(handle);
    response->add_lease_ends()->set_seconds(LeaseEnd(request->lease()));
  }
  return grpc::Status::OK;
}

grpc::Status TestTensorService::Release(grpc::ServerContext*, const v1::ReleaseRequest* request,
                                        v1::ReleaseResponse* response) {
  absl::MutexLock lock(&mutex_);
  for (const std::string& handle : request->handles()) {
    response->set_released(response->released() + tensors_.erase(handle));
    releases_.push_back(handle);
  }
  return grpc::Status::OK;
}

grpc::Status TestTensorService::List(grpc::ServerContext*, const v1::ListRequest* request,
                                     v1::ListResponse* response) {
  absl::MutexLock lock(&mutex_);
  response->mutable_time()->set_seconds(kFirstLeaseStart + 60);
  const auto next = tensors_.upper_bound(request->after());
  if (next == tensors_.end()) return grpc::Status::OK;
  response->set_has_more(std::next(next) != tensors_.end());
  const auto& [handle, tensor] = *next;
  v1::TensorSummary* summary = response->add_tensors();
  summary->set_handle(handle);
  summary->set_dtype(tensor.header.dtype());
  *summary->mutable_shape() = tensor.header.shape();
  summary->set_bytes(tensor.elements.size());
  summary->set_device(tensor.header.has_device() ? tensor.header.device() : 3);
  summary->mutable_creation_time()->set_seconds(kFirstLeaseStart);
  summary->mutable_lease_end()->set_seconds(LeaseEnd(tensor.header.lease()));
  return grpc::Status::OK;
}

}  // namespace opserve
