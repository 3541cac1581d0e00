#include "client/cpp/message.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/support/slice.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/codec/payload_message.h"

namespace opserve {
namespace {

// Up to here a copy costs less than a reference that is counted and released.
constexpr size_t kCopiedBytes = 4096;
constexpr size_t kMaxResultPayloads = 4096;
constexpr uint64_t kMaxMessageBytes = std::numeric_limits<uint32_t>::max();

grpc::Slice ReferTo(absl::Span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  // gRPC only reads the bytes of messages it sends; its slices are not const because others are
  // written.
  auto* data = const_cast<std::byte*>(bytes.data());
  auto* hold = new std::shared_ptr<const void>(std::move(owner));
  return grpc::Slice(
      data, bytes.size(),
      [](void* held) { delete static_cast<std::shared_ptr<const void>*>(held); }, hold);
}

// The payloads of a request under construction.
class PayloadList {
 public:
  explicit PayloadList(Borrow* borrow) : borrow_(*borrow) {}

  // Position of the payload that holds the tensor's storage.
  uint32_t Add(const Tensor& tensor) {
    const absl::Span<const std::byte> bytes = tensor.storage();
    for (size_t i = 0; i < storages_.size(); ++i) {
      if (storages_[i].data() == bytes.data() && storages_[i].size() == bytes.size()) return i;
    }
    storages_.push_back(bytes);
    num_bytes_ += bytes.size();
    slices_.push_back(bytes.size() <= kCopiedBytes ? grpc::Slice(bytes.data(), bytes.size())
                      : tensor.owner() != nullptr  ? ReferTo(bytes, tensor.owner())
                                                   : ReferTo(bytes, borrow_.Hold()));
    return slices_.size() - 1;
  }

  absl::Span<const grpc::Slice> slices() const { return slices_; }
  uint64_t num_bytes() const { return num_bytes_; }

 private:
  Borrow& borrow_;
  std::vector<absl::Span<const std::byte>> storages_;
  std::vector<grpc::Slice> slices_;
  uint64_t num_bytes_ = 0;
};

void Encode(const OutputOf& output, v1::InvocationOutput* message) {
  message->set_invocation(output.invocation);
  message->set_output(output.output);
}

void Encode(const Tensor& tensor, PayloadList& payloads, v1::Tensor* message) {
  message->set_dtype(tensor.dtype());
  message->mutable_shape()->Add(tensor.shape().begin(), tensor.shape().end());
  message->mutable_strides()->Add(tensor.strides().begin(), tensor.strides().end());
  message->set_offset(tensor.offset());
  message->set_payload(payloads.Add(tensor));
}

void Encode(const NamedAttribute& attribute, v1::NamedAttribute* message) {
  struct Setter {
    v1::AttributeValue* value;
    void operator()(int64_t number) const { value->set_int64_value(number); }
    void operator()(bool flag) const { value->set_bool_value(flag); }
    void operator()(double number) const { value->set_double_value(number); }
    void operator()(const std::string& name) const { value->set_name(name); }
  };
  message->set_name(attribute.name);
  std::visit(Setter{message->mutable_value()}, attribute.value);
}

void Encode(const Invocation& invocation, PayloadList& payloads, v1::Invocation* message) {
  message->set_operator_(invocation.operator_name);
  for (const NamedInput& input : invocation.inputs) {
    v1::NamedTensor* named = message->add_inputs();
    named->set_name(input.name);
    if (const auto* tensor = std::get_if<Tensor>(&input.value)) {
      Encode(*tensor, payloads, named->mutable_tensor());
    } else {
      Encode(std::get<OutputOf>(input.value), named->mutable_tensor()->mutable_invocation_output());
    }
  }
  for (const NamedAttribute& attribute : invocation.attributes) {
    Encode(attribute, message->add_attributes());
  }
  for (const OutputDataType& output : invocation.output_dtypes) {
    v1::OutputRequest* wanted = message->add_outputs();
    wanted->set_name(output.output);
    wanted->set_dtype(output.dtype);
  }
}

absl::Status BadAnswer(absl::string_view why) {
  return absl::InternalError(absl::StrCat("the daemon's answer breaks the protocol: ", why));
}

// Bytes of a contiguous tensor; false if there is no such tensor.
bool ContiguousBytes(const v1::Tensor& tensor, uint64_t* num_bytes) {
  *num_bytes = DataTypeBytes(tensor.dtype());
  bool is_representable = *num_bytes != 0;
  bool is_empty = false;
  for (const int64_t extent : tensor.shape()) {
    if (extent < 0) return false;
    is_empty |= extent == 0;
    is_representable &=
        !__builtin_mul_overflow(*num_bytes, static_cast<uint64_t>(extent), num_bytes);
  }
  if (is_empty && DataTypeBytes(tensor.dtype()) != 0) {
    *num_bytes = 0;
    return true;
  }
  return is_representable;
}

}  // namespace

std::shared_ptr<const void> Borrow::Hold() {
  if (std::shared_ptr<const void> hold = hold_.lock()) return hold;
  released_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<const void> hold(released_.get(),
                                   [released = released_](const void*) { *released = true; });
  hold_ = hold;
  return hold;
}

absl::StatusOr<EncodedRequest> EncodeRequest(const Request& request) {
  EncodedRequest encoded;
  PayloadList payloads(&encoded.borrow);
  v1::ExecuteRequest message;
  for (const Invocation& invocation : request.invocations) {
    Encode(invocation, payloads, message.add_invocations());
  }
  for (const OutputOf& result : request.results) Encode(result, message.add_results());
  message.set_want_receipt(request.want_receipt);

  encoded.buffer = codec::BuildPayloadMessage(message, payloads.slices());
  if (encoded.buffer.Length() > kMaxMessageBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request's tensors have ", payloads.num_bytes(),
                     " bytes; a message can have ", kMaxMessageBytes));
  }
  return encoded;
}

absl::StatusOr<Response> DecodeResponse(const grpc::ByteBuffer& buffer) {
  absl::StatusOr<codec::PayloadMessage> split =
      codec::PayloadMessage::Split(buffer, kMaxResultPayloads);
  if (!split.ok()) return BadAnswer(split.status().message());
  const auto message = std::make_shared<const codec::PayloadMessage>(*std::move(split));
  v1::ExecuteResponse header;
  if (absl::Status status = message->ParseHeader(&header); !status.ok()) {
    return BadAnswer(status.message());
  }

  Response response;
  for (const v1::Result& result : header.results()) {
    const v1::Tensor& tensor = result.tensor();
    const absl::Span<const codec::Payload> payloads = message->payloads();
    uint64_t num_bytes = 0;
    if (!tensor.has_payload() || tensor.payload() >= payloads.size()) {
      return BadAnswer("a result has no payload");
    }
    const codec::Payload& payload = payloads[tensor.payload()];
    if (!ContiguousBytes(tensor, &num_bytes) || num_bytes != payload.size) {
      return BadAnswer(absl::StrCat("a result of ", payload.size, " bytes does not fit its ",
                                    DataTypeName(tensor.dtype()), " shape"));
    }
    response.results.emplace_back(
        OutputOf{result.source().invocation(), result.source().output()}, tensor.dtype(),
        std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end()), payload.pieces,
        message);
  }
  if (header.has_receipt()) response.receipt = std::move(*header.mutable_receipt());
  return response;
}

}  // namespace opserve
