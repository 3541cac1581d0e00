// The tensor service of a daemon for tests of clients: stock protobuf, tensors in a map.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "opserve/v1/tensor_service.grpc.pb.h"

namespace opserve {

// Checks what it is sent by the protocol's rules. Handles are "tensor-0", "tensor-1", ...; every
// device asked for exists, 3 is the one chosen else. Leases end at 1700000000 s plus what was asked
// for, or 600 s. Lists say that it is 60 s later than that, and have one tensor each.
class TestTensorService final : public v1::TensorService::Service {
 public:
  using UploadHandler = std::function<grpc::Status(
      grpc::ServerContext*, grpc::ServerReader<v1::UploadRequest>*, v1::UploadResponse*)>;
  using DownloadHandler = std::function<grpc::Status(
      grpc::ServerContext*, const v1::DownloadRequest&, grpc::ServerWriter<v1::DownloadResponse>*)>;

  struct StoredTensor {
    v1::UploadHeader header;
    std::vector<size_t> chunks;  // their sizes, in order
    std::string elements;
  };

  // Answers uploads or downloads instead.
  void set_upload(UploadHandler upload) ABSL_LOCKS_EXCLUDED(mutex_);
  void set_download(DownloadHandler download) ABSL_LOCKS_EXCLUDED(mutex_);

  // The handles that were to be released, in order.
  std::vector<std::string> releases() ABSL_LOCKS_EXCLUDED(mutex_);

  // The tensor with this handle; empty if there is none.
  StoredTensor Find(const std::string& handle) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  grpc::Status Upload(grpc::ServerContext* context, grpc::ServerReader<v1::UploadRequest>* reader,
                      v1::UploadResponse* response) override;
  grpc::Status Download(grpc::ServerContext* context, const v1::DownloadRequest* request,
                        grpc::ServerWriter<v1::DownloadResponse>* writer) override;
  grpc::Status Renew(grpc::ServerContext* context, const v1::RenewRequest* request,
                     v1::RenewResponse* response) override;
  grpc::Status Release(grpc::ServerContext* context, const v1::ReleaseRequest* request,
                       v1::ReleaseResponse* response) override;
  grpc::Status List(grpc::ServerContext* context, const v1::ListRequest* request,
                    v1::ListResponse* response) override;

  grpc::Status Store(grpc::ServerReader<v1::UploadRequest>* reader, v1::UploadResponse* response)
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  UploadHandler upload_ ABSL_GUARDED_BY(mutex_);
  DownloadHandler download_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, StoredTensor> tensors_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> releases_ ABSL_GUARDED_BY(mutex_);
  size_t num_uploads_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace opserve
