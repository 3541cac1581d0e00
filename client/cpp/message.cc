#include "client/cpp/message.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/shared_mapping.h"
#include "client/cpp/tensor_layout.h"
#include "client/cpp/time_message.h"
#include "grpcpp/support/slice.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/codec/header_arena.h"
#include "proto/codec/payload_message.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

// More than any program has results; bounds a broken daemon's answer.
constexpr size_t kMaxResultPayloads = 4096;
// gRPC counts the bytes of a message in 32 bits.
constexpr uint64_t kMaxMessageBytes = std::numeric_limits<uint32_t>::max();

// The payloads of a request under construction.
class PayloadList {
 public:
  explicit PayloadList(Borrow* borrow) : borrow_(*borrow) {}

  // Position of the payload that holds the tensor's storage.
  uint32_t Add(const Tensor& tensor) {
    const absl::Span<const std::byte> bytes = tensor.storage();
    // A linear search: requests have few storages, and most tensors have their own.
    for (size_t i = 0; i < storages_.size(); ++i) {
      const absl::Span<const std::byte> known = storages_[i]->storage();
      if (known.data() == bytes.data() && known.size() == bytes.size()) return i;
    }
    Append(tensor);
    return storages_.size() - 1;
  }

  // Adds a payload, whether there is an equal one or not.
  void Append(const Tensor& tensor) {
    storages_.push_back(&tensor);
    num_bytes_ += tensor.storage().size();
  }

  // For a message with a header of `header_bytes`. To be called once.
  absl::InlinedVector<grpc::Slice, 4> Slices(size_t header_bytes) {
    // In a message that is merged the slices are copied at once, so they may refer to the caller's
    // bytes without a borrow. Elsewhere gRPC keeps them until they are sent.
    const bool will_be_merged = codec::IsMerged(header_bytes, storages_.size(), num_bytes_);
    absl::InlinedVector<grpc::Slice, 4> slices;
    for (const Tensor* tensor : storages_) {
      const absl::Span<const std::byte> bytes = tensor->storage();
      if (will_be_merged) {
        slices.emplace_back(bytes.data(), bytes.size(), grpc::Slice::STATIC_SLICE);
      } else {
        slices.push_back(SliceOf(bytes, tensor->owner(), &borrow_));
      }
    }
    return slices;
  }
  absl::Span<const Tensor* const> storages() const { return storages_; }

 private:
  Borrow& borrow_;
  absl::InlinedVector<const Tensor*, 4> storages_;  // the request's
  uint64_t num_bytes_ = 0;
};

// As the source of an input or as a result that is wanted.
template <typename Message>
void Encode(const OutputOf& output, Message* message) {
  message->set_invocation(output.invocation);
  message->set_output(output.output);
}

// Views, of whatever kind of storage.
template <typename Tensor>
void EncodeView(const Tensor& tensor, v1::Tensor* message) {
  message->set_dtype(tensor.dtype);
  message->mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  message->mutable_strides()->Add(tensor.strides.begin(), tensor.strides.end());
}

// The value of an input, by its kind.
struct InputEncoder {
  PayloadList& payloads;
  v1::Tensor* message;

  void operator()(const Tensor& tensor) const {
    message->set_dtype(tensor.dtype());
    message->mutable_shape()->Add(tensor.shape().begin(), tensor.shape().end());
    message->mutable_strides()->Add(tensor.strides().begin(), tensor.strides().end());
    message->set_offset(tensor.offset());
    message->set_payload(payloads.Add(tensor));
  }
  void operator()(const OutputOf& output) const {
    Encode(output, message->mutable_invocation_output());
  }
  void operator()(const ResidentTensor& tensor) const {
    message->set_resident_tensor(tensor.handle);
  }
  void operator()(const SharedTensor& tensor) const {
    EncodeView(tensor, message);
    message->set_offset(tensor.offset);
    EncodeRange(tensor.range, message->mutable_shared_memory());
  }
  void operator()(const InputOf& input) const { message->set_program_input(input.number); }
  void operator()(const View& view) const {
    EncodeView(view, message);
    message->set_offset(view.offset);
    std::visit(*this, view.base);
  }
  void operator()(const Literal& literal) const {
    EncodeView(literal, message);
    message->set_literal(literal.elements);
  }
};

// The value of an input, or of each tensor of it.
struct NamedInputEncoder {
  PayloadList& payloads;
  v1::NamedTensor* message;

  void operator()(const std::vector<ListedTensor>& tensors) const {
    v1::TensorList* list = message->mutable_list();
    for (const ListedTensor& tensor : tensors) {
      std::visit(InputEncoder{payloads, list->add_tensors()}, tensor);
    }
  }
  template <typename T>
  void operator()(const T& tensor) const {
    InputEncoder{payloads, message->mutable_tensor()}(tensor);
  }
};

void EncodeOutputs(const Invocation& invocation, v1::Invocation* message) {
  for (const OutputDataType& output : invocation.output_dtypes) {
    v1::OutputRequest* wanted = message->add_outputs();
    wanted->set_name(output.output);
    wanted->set_dtype(output.dtype);
  }
  for (const std::string& name : invocation.masked_outputs) {
    const auto& named = message->outputs();
    // An output with a dtype in the request is wanted already.
    const bool has_dtype = std::any_of(named.begin(), named.end(),
                                       [&](const auto& output) { return output.name() == name; });
    if (!has_dtype) message->add_outputs()->set_name(name);
  }
}

void Encode(const Invocation& invocation, PayloadList& payloads, v1::Invocation* message) {
  message->set_operator_(invocation.operator_name);
  for (const NamedInput& input : invocation.inputs) {
    v1::NamedTensor* named = message->add_inputs();
    named->set_name(input.name);
    std::visit(NamedInputEncoder{payloads, named}, input.value);
  }
  for (const NamedAttribute& attribute : invocation.attributes) {
    EncodeAttribute(attribute, message->add_attributes());
  }
  EncodeOutputs(invocation, message);
}

void EncodeResults(const Request& request, v1::ExecuteRequest* message) {
  for (const OutputOf& result : request.results) Encode(result, message->add_results());
  // Destinations without results mean those of the last invocation. Its first output is the default
  // of the protocol.
  if (request.results.empty() && !request.destinations.empty() && !request.invocations.empty()) {
    message->add_results()->set_invocation(static_cast<uint32_t>(request.invocations.size() - 1));
  }
  const size_t count =
      std::min<size_t>(request.destinations.size(), static_cast<size_t>(message->results_size()));
  for (size_t i = 0; i < count; ++i) {
    if (!request.destinations[i]) continue;
    EncodeRange(*request.destinations[i],
                message->mutable_results(static_cast<int>(i))->mutable_shared_memory());
  }
  for (const KeptOutput& kept : request.kept) {
    v1::WantedResult* wanted = message->add_results();
    Encode(kept.output, wanted);
    v1::KeepResult* keep = wanted->mutable_keep();
    // No lease given: the daemon's own applies.
    if (kept.lease != absl::ZeroDuration()) EncodeDuration(kept.lease, keep->mutable_lease());
  }
  for (const ReplacedTensor& replaced : request.replaced) {
    v1::WantedResult* wanted = message->add_results();
    Encode(replaced.output, wanted);
    v1::ReplaceTensor* replace = wanted->mutable_replace();
    if (const auto* input = std::get_if<InputOf>(&replaced.tensor)) {
      replace->set_program_input(input->number);
    } else {
      replace->set_handle(std::get<ResidentTensor>(replaced.tensor).handle);
    }
    if (replaced.version) replace->set_version(*replaced.version);
  }
}

// Before anything is encoded of it.
// Results that are not named are one.
absl::Status CheckDestinations(const Request& request) {
  const size_t results = std::max<size_t>(request.results.size(), 1);
  if (request.destinations.size() <= results) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(request.destinations.size(), " destinations for ", results, " results"));
}

void Encode(const Request& request, PayloadList& payloads, v1::ExecuteRequest* message) {
  for (const Invocation& invocation : request.invocations) {
    Encode(invocation, payloads, message->add_invocations());
  }
  EncodeResults(request, message);
  for (const auto& donated : request.donated) {
    if (const auto* input = std::get_if<InputOf>(&donated)) {
      message->add_donated_inputs(input->number);
    } else {
      message->add_donated(std::get<ResidentTensor>(donated).handle);
    }
  }
  message->set_want_receipt(request.want_receipt);
  message->set_idempotency_key(request.idempotency_key);
  message->set_priority(request.priority);
}

absl::Status FillBuffer(const google::protobuf::MessageLite& message, PayloadList& payloads,
                        grpc::ByteBuffer* buffer) {
  // Only here is the size known. gRPC's own refusal would not tell how to send large inputs.
  *buffer = codec::BuildPayloadMessage(message, payloads.Slices(message.ByteSizeLong()));
  if (buffer->Length() <= kMaxMessageBytes) return absl::OkStatus();
  return TooLargeToSend(buffer->Length(), kMaxMessageBytes, "by gRPC");
}

// A message apart from its payloads, parsed into `header`; shared by all results that lie in it.
absl::StatusOr<std::shared_ptr<const codec::PayloadMessage>> SplitAnswer(
    const grpc::ByteBuffer& buffer, size_t max_payloads, google::protobuf::MessageLite* header) {
  absl::StatusOr<codec::PayloadMessage> split = codec::PayloadMessage::Split(buffer, max_payloads);
  if (!split.ok()) return BadAnswer(split.status().message());
  auto message = std::make_shared<const codec::PayloadMessage>(*std::move(split));
  if (absl::Status status = message->ParseHeader(header); !status.ok()) {
    return BadAnswer(status.message());
  }
  return message;
}

// A result that the daemon has left in shared memory. kFailedPrecondition: its region is gone.
absl::StatusOr<Result> DecodeShared(const v1::Result& result) {
  struct Kept {
    std::shared_ptr<const SharedMapping> mapping;
    absl::string_view bytes;
  };
  const v1::Tensor& tensor = result.tensor();
  const v1::SharedMemoryRange& range = tensor.shared_memory();
  // Before the region is looked up: a daemon's mistake must not pass as a region that is gone.
  if (ContiguousBytes(tensor.dtype(), tensor.shape()) != range.size()) {
    return BadAnswer("a result in shared memory does not fit its shape");
  }
  // The result keeps the mapping, so its bytes outlive the region.
  auto kept = std::make_shared<Kept>();
  kept->mapping = SharedMappings::Get().Find(
      {range.connection(), range.region(), range.offset(), range.size()});
  if (kept->mapping == nullptr) {
    return absl::FailedPreconditionError(
        "the result's region of shared memory was destroyed while the call ran");
  }
  kept->bytes = {reinterpret_cast<const char*>(kept->mapping->data()) + range.offset(),
                 range.size()};
  return Result(OutputOf{result.source().invocation(), result.source().output()}, tensor.dtype(),
                std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end()),
                absl::MakeConstSpan(&kept->bytes, 1), kept);
}

// A result that stayed on the device.
absl::StatusOr<ResidentTensor> DecodeKept(const v1::Result& result) {
  const v1::Tensor& tensor = result.tensor();
  if (!tensor.has_resident_tensor()) return BadAnswer("a kept result has no handle");
  return ResidentTensor{.handle = tensor.resident_tensor(),
                        .dtype = tensor.dtype(),
                        .shape = {tensor.shape().begin(), tensor.shape().end()},
                        .lease_end = DecodeTime(result.kept().lease_end()),
                        .device = result.kept().device(),
                        .version = result.kept().version()};
}

// A result that came as a payload. The daemon's numbers are not trusted: readers of the result rely
// on the size.
absl::StatusOr<Result> DecodePayload(OutputOf source, DataType dtype, std::vector<int64_t> shape,
                                     size_t position,
                                     const std::shared_ptr<const codec::PayloadMessage>& message) {
  const absl::Span<const codec::Payload> payloads = message->payloads();
  if (position >= payloads.size()) return BadAnswer("a result has no payload");
  const codec::Payload& payload = payloads[position];
  if (ContiguousBytes(dtype, shape) != payload.size) {
    return BadAnswer(absl::StrCat("a result of ", payload.size, " bytes does not fit its ",
                                  DataTypeName(dtype), " shape"));
  }
  return Result(std::move(source), dtype, std::move(shape), payload.pieces, message);
}

// The response of `header`, with the payloads of `message`.
absl::StatusOr<Response> DecodeResults(
    const v1::ExecuteResponse& header,
    const std::shared_ptr<const codec::PayloadMessage>& message) {
  Response response;
  for (const v1::Result& result : header.results()) {
    const v1::Tensor& tensor = result.tensor();
    if (result.has_kept()) {
      OPSERVE_ASSIGN_OR_RETURN(ResidentTensor kept, DecodeKept(result));
      response.kept.push_back(std::move(kept));
      continue;
    }
    if (tensor.has_shared_memory()) {
      OPSERVE_ASSIGN_OR_RETURN(Result shared, DecodeShared(result));
      response.results.push_back(std::move(shared));
      continue;
    }
    if (!tensor.has_payload()) return BadAnswer("a result has no payload");
    OPSERVE_ASSIGN_OR_RETURN(
        Result sent,
        DecodePayload({result.source().invocation(), result.source().output()}, tensor.dtype(),
                      {tensor.shape().begin(), tensor.shape().end()}, tensor.payload(), message));
    response.results.push_back(std::move(sent));
  }
  if (header.has_receipt()) response.receipt = header.receipt();
  return response;
}

// The same of a brief answer to `call`.
absl::StatusOr<Response> DecodeBrief(const v1::ExecuteResponse& header,
                                     const std::shared_ptr<const codec::PayloadMessage>& message,
                                     absl::Span<const KnownResult> known,
                                     const v1::PreparedCall& call) {
  const v1::BriefResults& brief = header.brief();
  Response response;
  int kept = 0;
  int replaced = 0;
  for (const KnownResult& one : known) {
    if (one.place == KnownResult::kPayload) {
      OPSERVE_ASSIGN_OR_RETURN(Result sent,
                               DecodePayload(one.source, one.dtype, one.shape,
                                             /*position=*/response.results.size(), message));
      response.results.push_back(std::move(sent));
      continue;
    }
    ResidentTensor& tensor = response.kept.emplace_back(
        ResidentTensor{.dtype = one.dtype, .shape = one.shape, .device = brief.device()});
    if (one.place == KnownResult::kKept) {
      if (kept == brief.kept_size()) return BadAnswer("a kept result has no handle");
      const v1::BriefTensor& made = brief.kept(kept++);
      tensor.handle = made.handle();
      tensor.lease_end = DecodeTime(made.lease_end());
    } else {
      if (replaced == brief.versions_size()) return BadAnswer("a replaced tensor has no version");
      if (one.handle.empty() && one.resident >= call.residents_size()) {
        return BadAnswer("the tensor that a result replaces is none of the call's");
      }
      tensor.handle = one.handle.empty() ? call.residents(one.resident) : one.handle;
      tensor.lease_end = absl::UnixEpoch();  // unchanged, and not told by whole answers either
      tensor.version = brief.versions(replaced++);
    }
  }
  if (kept != brief.kept_size() || replaced != brief.versions_size() ||
      response.results.size() != message->payloads().size()) {
    return BadAnswer("a brief answer has more results than the prepared program");
  }
  if (header.has_receipt()) response.receipt = header.receipt();
  return response;
}

}  // namespace

void EncodeAttribute(const NamedAttribute& attribute, v1::NamedAttribute* message) {
  struct Setter {
    v1::AttributeValue* value;
    void operator()(int64_t number) const { value->set_int64_value(number); }
    void operator()(bool flag) const { value->set_bool_value(flag); }
    void operator()(double number) const { value->set_double_value(number); }
    void operator()(const std::string& name) const { value->set_name(name); }
    void operator()(const Text& text) const { value->set_text_value(text.value); }
    void operator()(DataType dtype) const { value->set_dtype_value(dtype); }
    void operator()(const Scalar& scalar) const {
      v1::ScalarValue* to = value->mutable_scalar_value();
      to->set_dtype(scalar.dtype);
      if (const auto* integer = std::get_if<int64_t>(&scalar.value)) {
        to->set_int64_value(*integer);
      } else {
        to->set_double_value(std::get<double>(scalar.value));
      }
    }
    void operator()(const std::vector<int64_t>& numbers) const {
      value->mutable_int64_list()->mutable_values()->Add(numbers.begin(), numbers.end());
    }
    void operator()(const std::vector<bool>& flags) const {
      v1::BoolList* list = value->mutable_bool_list();
      for (const bool flag : flags) list->add_values(flag);
    }
    void operator()(const std::vector<double>& numbers) const {
      value->mutable_double_list()->mutable_values()->Add(numbers.begin(), numbers.end());
    }
  };
  message->set_name(attribute.name);
  std::visit(Setter{message->mutable_value()}, attribute.value);
}

void EncodeRange(const SharedRange& range, v1::SharedMemoryRange* message) {
  message->set_connection(range.connection);
  message->set_region(range.region);
  message->set_offset(range.offset);
  message->set_size(range.size);
}

bool HasEffects(const v1::ExecuteRequest& program) {
  // Results that are kept or replaced change the daemon's tensors; donated ones are used up.
  return !program.donated().empty() || !program.donated_inputs().empty() ||
         std::any_of(program.results().begin(), program.results().end(),
                     [](const auto& result) { return result.has_keep() || result.has_replace(); });
}

bool NeedsIdentity(const v1::ExecuteRequest& request) {
  // A prepared call does not show the effects of its program.
  return !request.has_identity() && request.idempotency_key().empty() &&
         (request.has_prepared() || HasEffects(request));
}

absl::StatusOr<RequestParts> TakeApart(const Request& request) {
  OPSERVE_RETURN_IF_ERROR(CheckDestinations(request));
  RequestParts parts;
  Borrow borrow;
  // Never released by anyone: nothing is sent, the payloads are only collected.
  PayloadList payloads(&borrow);
  Encode(request, payloads, &parts.header);
  for (const Tensor* tensor : payloads.storages()) parts.payloads.push_back(*tensor);
  return parts;
}

absl::StatusOr<EncodedRequest> EncodeMessage(const google::protobuf::MessageLite& header,
                                             absl::Span<const Tensor> tensors) {
  EncodedRequest encoded;
  PayloadList payloads(&encoded.borrow);
  for (const Tensor& tensor : tensors) payloads.Append(tensor);
  absl::Status status = FillBuffer(header, payloads, &encoded.buffer);
  if (!status.ok()) return status;
  return encoded;
}

absl::StatusOr<EncodedRequest> EncodeRequest(const Request& request, RequestNumbers* numbers) {
  OPSERVE_RETURN_IF_ERROR(CheckDestinations(request));
  EncodedRequest encoded;
  PayloadList payloads(&encoded.borrow);
  codec::HeaderArena arena;
  // The arena goes with this call: the header is in the buffer by then.
  auto& message = arena.Make<v1::ExecuteRequest>();
  Encode(request, payloads, &message);
  if (NeedsIdentity(message)) encoded.number = numbers->Take(message.mutable_identity());
  absl::Status status = FillBuffer(message, payloads, &encoded.buffer);
  if (!status.ok()) return status;
  return encoded;
}

absl::StatusOr<Response> DecodeResponse(const grpc::ByteBuffer& buffer) {
  codec::HeaderArena arena;
  auto& header = arena.Make<v1::ExecuteResponse>();
  OPSERVE_ASSIGN_OR_RETURN(const auto message, SplitAnswer(buffer, kMaxResultPayloads, &header));
  return DecodeResults(header, message);
}

absl::StatusOr<Response> DecodeResponse(const grpc::ByteBuffer& buffer,
                                        absl::Span<const KnownResult> known,
                                        const v1::PreparedCall& call) {
  codec::HeaderArena arena;
  auto& header = arena.Make<v1::ExecuteResponse>();
  OPSERVE_ASSIGN_OR_RETURN(const auto message, SplitAnswer(buffer, kMaxResultPayloads, &header));
  return header.has_brief() ? DecodeBrief(header, message, known, call)
                            : DecodeResults(header, message);
}

absl::Status DecodeMessage(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* message) {
  return SplitAnswer(buffer, /*max_payloads=*/0, message).status();
}

absl::Status BadAnswer(absl::string_view why) {
  return absl::InternalError(absl::StrCat("the daemon's answer breaks the protocol: ", why));
}

}  // namespace opserve
