// Messages that are given to gRPC for good. It copies a ByteBuffer that it is to send, with all its
// references to slices, since the caller may still use it; of these it takes the buffer itself.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/byte_buffer.h"

namespace opserve::server {

// Written once.
class GivenMessage {
 public:
  // Takes *bytes.
  explicit GivenMessage(grpc::ByteBuffer* bytes) { bytes_.Swap(bytes); }

 private:
  friend class grpc::SerializationTraits<GivenMessage, void>;
  mutable grpc::ByteBuffer bytes_;  // gRPC's templates pass messages as constants
};

// The numbers of a service's methods are their places in its description.
inline int MethodNumber(absl::string_view full_name) {
  return google::protobuf::DescriptorPool::generated_pool()
      ->FindMethodByName(std::string(full_name))
      ->index();
}

// A generated service with raw methods, whose calls may be answered by given messages, too: its own
// functions know no other type than ByteBuffer.
template <typename Generated>
class GivingService final : public Generated {
 public:
  // As the generated RequestXxx, of the method with the number.
  void RequestUnary(int method, grpc::ServerContext* rpc, grpc::ByteBuffer* request,
                    grpc::ServerAsyncResponseWriter<GivenMessage>* writer,
                    grpc::ServerCompletionQueue* queue, void* tag) {
    this->RequestAsyncUnary(method, rpc, request, writer, queue, queue, tag);
  }
  void RequestStream(int method, grpc::ServerContext* rpc,
                     grpc::ServerAsyncReaderWriter<GivenMessage, grpc::ByteBuffer>* stream,
                     grpc::ServerCompletionQueue* queue, void* tag) {
    this->RequestAsyncBidiStreaming(method, rpc, stream, queue, queue, tag);
  }
};

}  // namespace opserve::server

namespace grpc {

template <>
class SerializationTraits<opserve::server::GivenMessage, void> {
 public:
  static Status Serialize(const opserve::server::GivenMessage& message, ByteBuffer* to,
                          bool* owns_buffer) {
    to->Swap(&message.bytes_);
    *owns_buffer = true;
    return Status::OK;
  }
};

}  // namespace grpc
