// Writes what the fuzzers start from: make_seeds DIRECTORY makes DIRECTORY/TARGET/NAME.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "inference/grpc_service.pb.h"
#include "ops/catalog/catalog.h"
#include "opserve/v1/operator_service.pb.h"
#include "opserve/v1/session.pb.h"
#include "opserve/v1/shared_memory.pb.h"
#include "opserve/v1/tensor_service.pb.h"
#include "proto/dtypes/tensor_spec.h"
#include "tests/integration/deposit_messages.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/golden_request.h"
#include "tests/integration/http2_frames.h"
#include "tests/integration/session_calls.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::fuzz {
namespace {

namespace fs = std::filesystem;

class Seeds {
 public:
  explicit Seeds(fs::path directory) : directory_(std::move(directory)) {}

  void Add(const std::string& target, const std::string& input) {
    fs::create_directories(directory_ / target);
    std::ofstream(directory_ / target / absl::StrCat("seed", count_++)) << input;
  }

 private:
  const fs::path directory_;
  int count_ = 0;
};

std::string ReadFile(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A call of L1LossBackward on tensors of `dtype` and `shape`.
v1::ExecuteRequest Call(v1::DataType dtype, const std::vector<int64_t>& shape) {
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_("L1LossBackward");
  const auto bytes = static_cast<size_t>(NumElements(shape) * DtypeBytes(dtype));
  for (const char* name : {"grad_output", "self", "target"}) {
    v1::NamedTensor* named = invocation->add_inputs();
    named->set_name(name);
    named->mutable_tensor()->set_dtype(dtype);
    named->mutable_tensor()->mutable_shape()->Add(shape.begin(), shape.end());
    named->mutable_tensor()->set_payload(request.payloads_size());
    request.add_payloads(std::string(bytes, static_cast<char>(0x3c + request.payloads_size())));
  }
  return request;
}

std::vector<v1::ExecuteRequest> Requests() {
  std::vector<v1::ExecuteRequest> requests;
  for (const catalog::OperatorDescriptor* op : catalog::AllOperators()) {
    requests.push_back(GoldenRequest(*op));
  }
  for (const DtypeFacts& facts : AllDtypes()) requests.push_back(Call(facts.dtype, {2, 3}));
  requests.push_back(Call(v1::DATA_TYPE_FLOAT, {}));
  requests.push_back(Call(v1::DATA_TYPE_FLOAT, {0, 4}));
  // A transposed view, and one that repeats an element.
  requests.push_back(Call(v1::DATA_TYPE_FLOAT, {3, 3}));
  v1::Invocation* invocation = requests.back().mutable_invocations(0);
  for (const int64_t stride : {1, 3}) {
    invocation->mutable_inputs(0)->mutable_tensor()->add_strides(stride);
    invocation->mutable_inputs(1)->mutable_tensor()->add_strides(0);
  }
  invocation->mutable_inputs(1)->mutable_tensor()->set_offset(2);
  // A chain, with two results.
  requests.push_back(Call(v1::DATA_TYPE_FLOAT, {4}));
  *requests.back().add_invocations() = v1::Invocation(requests.back().invocations(0));
  v1::Tensor* chained = requests.back().mutable_invocations(1)->mutable_inputs(0)->mutable_tensor();
  chained->Clear();
  chained->mutable_invocation_output()->set_invocation(0);
  requests.back().add_results()->set_invocation(1);
  requests.back().add_results()->set_invocation(0);
  requests.back().set_idempotency_key("key");
  return requests;
}

void AddMessages(Seeds& seeds) {
  for (const v1::ExecuteRequest& request : Requests()) {
    const std::string bytes = request.SerializeAsString();
    seeds.Add("execute", absl::StrCat(std::string("\0", 1), bytes));
    seeds.Add("payload_message", absl::StrCat(std::string("\0\7", 2), bytes));
    v1::ExecuteStreamRequest streamed;
    streamed.set_id(7);
    streamed.mutable_timeout()->set_seconds(1);
    *streamed.mutable_request() = request;
    streamed.mutable_request()->clear_payloads();
    *streamed.mutable_payloads() = request.payloads();
    seeds.Add("payload_message", absl::StrCat("\2\5", streamed.SerializeAsString()));
  }
  v1::ExecuteResponse response;
  response.add_results()->mutable_tensor()->set_payload(0);
  response.mutable_receipt()->set_total_ns(1234567);
  response.add_payloads("result");
  seeds.Add("payload_message", absl::StrCat("\1\3", response.SerializeAsString()));
}

// The same calls in the other protocol: with raw elements, typed ones, and in shared memory.
void AddInferences(Seeds& seeds) {
  for (const catalog::OperatorDescriptor* op : catalog::AllOperators()) {
    inference::ModelInferRequest request;
    request.set_model_name(std::string(op->name));
    request.set_id("7");
    for (const catalog::AttributeDescriptor& attribute : op->attributes) {
      (*request.mutable_parameters())[std::string(attribute.name)].set_int64_param(0);
    }
    for (const catalog::InputDescriptor& input : op->inputs) {
      auto* tensor = request.add_inputs();
      tensor->set_name(absl::StrCat(input.name, input.is_list ? ".0" : ""));
      tensor->set_datatype(
          std::string(FindDtype(catalog::ToWire(input.dtypes.front()))->inference));
      tensor->add_shape(2);
    }
    inference::ModelInferRequest raw = request;
    raw.add_outputs()->set_name(op->outputs.front().name);
    (*raw.mutable_parameters())["priority"].set_uint64_param(1);
    (*raw.mutable_parameters())["timeout"].set_int64_param(1000);
    inference::ModelInferRequest shared = raw;
    for (int i = 0; i < request.inputs_size(); ++i) {
      for (int n = 0; n < 2; ++n) {
        request.mutable_inputs(i)->mutable_contents()->add_fp32_contents(static_cast<float>(i));
      }
      raw.add_raw_input_contents(std::string(8, static_cast<char>(0x3c + i)));
      auto& parameters = *shared.mutable_inputs(i)->mutable_parameters();
      parameters["shared_memory_region"].set_string_param("r");
      parameters["shared_memory_byte_size"].set_int64_param(8);
      parameters["shared_memory_offset"].set_int64_param(8 * i);
    }
    auto& parameters = *shared.mutable_outputs(0)->mutable_parameters();
    parameters["shared_memory_region"].set_string_param("r");
    parameters["shared_memory_byte_size"].set_int64_param(16);
    parameters["shared_memory_offset"].set_int64_param(32);
    for (const auto* message : {&request, &raw, &shared}) {
      seeds.Add("inference", absl::StrCat("\5", message->SerializeAsString()));
    }
  }
}

void AddUploads(Seeds& seeds) {
  const auto add = [&seeds](const server::UploadPlan& plan) {
    std::string input;
    for (const v1::UploadRequest& message : server::UploadMessages(plan)) {
      const std::string bytes = message.SerializeAsString();
      input.push_back(1);
      input.push_back(static_cast<char>(bytes.size() & 0xff));
      input.push_back(static_cast<char>(bytes.size() >> 8));
      input += bytes;
    }
    seeds.Add("upload", input);
  };
  add({.bytes = "", .chunk_bytes = 1});
  add({.bytes = server::CountingBytes(1), .chunk_bytes = 100, .shape = {1, 1}, .device = 1});
  add({.bytes = server::CountingBytes(10), .chunk_bytes = 16, .lease_ms = 1500});
  add({.bytes = server::CountingBytes(10), .chunk_bytes = 40, .header_alone = true});
  add({.bytes = server::CountingBytes(12), .chunk_bytes = 16, .shape = {3, 4}});
}

void AddSharedMemory(Seeds& seeds) {
  // Each with the kind of descriptor that comes with it.
  using Packets = std::vector<std::pair<char, v1::SharedMemoryRequest>>;
  const auto add = [&seeds](const Packets& packets) {
    std::string input;
    for (const auto& [attached, request] : packets) {
      const std::string bytes = request.SerializeAsString();
      input.push_back(attached);
      input.push_back(static_cast<char>(bytes.size() & 0xff));
      input.push_back(static_cast<char>(bytes.size() >> 8));
      input += bytes;
    }
    seeds.Add("shared_memory", input);
  };
  const auto registration = [](uint64_t id, uint64_t offset, uint64_t size, bool read_only) {
    v1::SharedMemoryRequest request;
    request.mutable_register_region()->set_region(id);
    request.mutable_register_region()->set_offset(offset);
    request.mutable_register_region()->set_size(size);
    request.mutable_register_region()->set_read_only(read_only);
    return request;
  };
  v1::SharedMemoryRequest unregister;
  unregister.mutable_unregister_region()->set_region(1);
  v1::SharedMemoryRequest list;
  list.mutable_list_regions();
  v1::SharedMemoryRequest token = list;
  token.set_token("secret");
  constexpr uint64_t kPage = 4096;
  add({{0, registration(1, 0, 100, false)}, {1, list}, {1, unregister}, {1, unregister}});
  add({{0, registration(1, kPage, 3 * kPage, true)}, {0, registration(1, 0, 1, false)}});
  add({{3, registration(1, 0, 1, true)}, {3, registration(2, 0, 1, false)}, {0, list}});
  for (char attached = 0; attached < 6; ++attached) add({{attached, registration(9, 0, 5, false)}});
  add({{0, registration(1, 1, 1, false)},
       {0, registration(2, UINT64_MAX - kPage + 1, kPage, false)},
       {0, registration(3, kPage, UINT64_MAX, false)},
       {0, registration(4, 0, 0, false)}});
  add({{0, registration(1, 0, 4 * kPage, false)},
       {0, registration(2, 0, 4 * kPage, false)},
       {0, registration(3, 0, 1, false)},
       {1, unregister},
       {0, registration(3, 0, 1, false)},
       {0, registration(4, 0, 1, false)},
       {0, registration(5, 0, 1, false)}});
  add({{1, token}});
  add({{1, list}, {1, token}});
}

void AddTexts(Seeds& seeds, const fs::path& root) {
  for (const auto& entry : fs::directory_iterator(root / "deploy/examples")) {
    seeds.Add("config_text", ReadFile(entry.path()));
  }
  seeds.Add("config_text",
            "listen: \"127.0.0.1:8470\" listen: \"[::1]:0\" admin_listen: \"none\" device: 0 "
            "max_deadline: \"5m\" scrub: \"always\" log_level: \"debug\" tls_cert: \"c\" "
            "tls_key: \"k\" tls_client_ca: \"a\" tls_crl: \"l\" metrics_listen: \"none\"");
  seeds.Add("config_text",
            absl::StrCat("tenant { name: \"a\" token_sha256: \"", std::string(64, '5'),
                         "\" certificate_name: \"c\" uid: 1 operator: \"L1LossBackward\" weight: 5 "
                         "device_memory { reserved_bytes: 1 soft_bytes: 2 hard_bytes: 3 } } "
                         "tenant { name: \"b\" } anonymous_tenant: \"b\""));
  const auto cli = [&seeds](char reader, char choice, const std::string& text) {
    seeds.Add("cli_text", std::string({reader, choice}) + text);
  };
  for (const char* text : {"17", "-3", "mean", "true", "0", "1.5e-3", "nan", "inf"}) {
    for (char choice = 0; choice < 4; ++choice) cli(0, choice, text);
  }
  cli(1, 0, "5f1C09a2");
  for (const char* text :
       {"unix:/run/a.sock", "unix:///run/a.sock,unix:/b", "localhost:8470",
        "dns:///daemons.example:8470", "127.0.0.1:1,10.0.0.1:2", "[::1]:8470,[fe80::1]:2"}) {
    cli(2, 0, text);
    cli(3, 0, text);
  }
  cli(3, 0, "0.0.0.0:0");
  cli(4, 0, "listen=unix:/a,127.0.0.1:1\ndevice=0,1\nmax_deadline=1m\nstreams_per_device=7");
  cli(4, 0, "scrub=always\nallow_host_fallback=true\nlog_level=off\nmax_message_bytes=1048576");
  cli(5, 2,
      "igrad_output=tensor:00ff\niself=tensor:01\nitarget=tensor:02\nareduction=mean\n"
      "oout.npy\ntbf16");
  cli(5, 0,
      "igrad_output=tensor:00\niself=tensor:01\nitarget=tensor:02\nalog_target=true\n"
      "oout=o.npy\ntout=float");
}

void AddFiles(Seeds& seeds, const fs::path& root) {
  for (const auto& entry : fs::directory_iterator(root / "tests/data/arrays")) {
    if (fs::file_size(entry) > 4096) continue;
    const std::string bytes = ReadFile(entry.path());
    if (entry.path().extension() == ".safetensors") seeds.Add("safetensors", bytes);
    if (entry.path().extension() != ".npy") continue;
    seeds.Add("npy", absl::StrCat(std::string("\0", 1), bytes));
    seeds.Add("npy", absl::StrCat("\2", bytes));
  }
  seeds.Add("npy", "\3{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  seeds.Add("npy", "\3{\"shape\": (2,), 'descr': '<V2', 'fortran_order': True}");
  for (const auto& entry : fs::directory_iterator(root / "tests/fuzz/data")) {
    const std::string text = ReadFile(entry.path());
    for (char reader = 0; reader < 4; ++reader) seeds.Add("certificates", reader + text);
  }
}

// Each operator's description, and the example of a pack.
void AddDescriptions(Seeds& seeds, const fs::path& root) {
  constexpr char kBegin[] = "\noperator {";
  seeds.Add("description_text", ReadFile(root / "ops/examples/weighted_sum.textproto"));
  for (const auto& entry : fs::directory_iterator(root / "ops/catalog")) {
    if (entry.path().extension() != ".textproto") continue;
    const std::string text = ReadFile(entry.path());
    for (size_t at = text.find(kBegin); at != std::string::npos;) {
      const size_t next = text.find(kBegin, at + 1);
      seeds.Add("description_text", text.substr(at, next - at));
      at = next;
    }
  }
}

// Each kind of frame, alone and many times, and the start of a TLS connection.
void AddConnections(Seeds& seeds) {
  const std::string head("\1\7\3", 3);
  std::string all;
  for (uint8_t type = 0; type < 11; ++type) {
    const std::string frame =
        Http2Frame(type, kHttp2EndHeaders, type == kHttp2Settings ? 0 : 1, std::string(30, 'x'));
    all += frame;
    std::string many;
    for (int i = 0; i < 12; ++i) many += frame;
    seeds.Add("http2_inspector", head + many);
  }
  seeds.Add("http2_inspector", head + all);
  seeds.Add("http2_inspector", head + Http2Frame(kHttp2Headers, 0, 1, "x") +
                                   Http2Frame(kHttp2Continuation, 0, 1, "") +
                                   Http2Frame(kHttp2Continuation, kHttp2EndHeaders, 1, "y"));
  seeds.Add("http2_inspector", std::string("\2\7\3", 3) + kHttp2Preface + all);
  seeds.Add("http2_inspector",
            std::string("\0\7\3\x16\3\1\2\0\1\0\1\xfc\3\3", 14) + std::string(64, 'r'));
}

// A deposit of three batches, as it may be, as far as each of its messages.
void AddDeposits(Seeds& seeds) {
  const std::vector<v1::DepositRequest> messages = {server::HelloStep(),
                                                    server::OfferStep({10, 0, 3}),
                                                    server::ChunkStep(server::CountingBytes(10)),
                                                    server::ChunkStep(server::CountingBytes(3)),
                                                    server::CommitStep(),
                                                    server::OfferStep({10, 0, 3, 4}, "a"),
                                                    server::ChunkStep(server::CountingBytes(10)),
                                                    server::ChunkStep(server::CountingBytes(3)),
                                                    server::ChunkStep(server::CountingBytes(4)),
                                                    server::CommitStep()};
  const auto input = [](const std::vector<v1::DepositRequest>& steps) {
    std::string bytes;
    for (const v1::DepositRequest& step : steps) {
      const std::string message = step.SerializeAsString();
      absl::StrAppend(&bytes, std::string(1, '\3'),
                      std::string(1, static_cast<char>(message.size() & 0xff)),
                      std::string(1, static_cast<char>(message.size() >> 8)), message);
    }
    return bytes;
  };
  for (size_t count = 1; count <= messages.size(); ++count) {
    seeds.Add("deposit", input({messages.begin(), messages.begin() + static_cast<int>(count)}));
  }
  // A batch again, of which a part is there; one whose commit drops a tensor; one that is refused.
  std::vector<v1::DepositRequest> more(messages.begin(), messages.begin() + 5);
  more.push_back(server::OfferStep({10, 0, 3, 4}));
  more.push_back(server::ChunkStep(server::CountingBytes(4)));
  more.push_back(server::CommitStep());
  more.back().mutable_commit()->add_released(3);
  more.push_back(server::OfferStep({1 << 20}));
  more.push_back(server::OfferStep({1}, "c"));
  seeds.Add("deposit", input(more));
  // Programs: a chain, again with another handle, one that is refused, and one that names a tensor.
  std::vector<v1::DepositRequest> programs = {
      server::HelloStep(), server::ProgramStep(3), server::ProgramStep(3, 2),
      server::ProgramStep(1, 1, "c"), server::ProgramStep(1)};
  v1::DepositedProgram* const naming = programs.back().mutable_program();
  naming->mutable_program()
      ->mutable_program()
      ->mutable_invocations(0)
      ->mutable_inputs(0)
      ->mutable_tensor()
      ->set_resident_tensor(server::HandleOf('A'));
  v1::DepositedTensor* const named = naming->add_residents();
  named->set_handle(server::HandleOf('A'));
  named->set_dtype(v1::DATA_TYPE_FLOAT);
  named->add_shape(2);
  for (size_t count = 2; count <= programs.size(); ++count) {
    seeds.Add("deposit", input({programs.begin(), programs.begin() + static_cast<int>(count)}));
  }
}

// Requests that are known again or that call a prepared program, announced twice, with the payloads
// of the first.
void AddAnnouncements(Seeds& seeds, const std::string& hello) {
  v1::ExecuteRequest keyed = server::OnesProgram(1);
  keyed.set_idempotency_key("key");
  v1::ExecuteRequest numbered = server::OnesProgram(1);
  numbered.mutable_identity()->set_client(std::string(16, 'c'));
  numbered.mutable_identity()->set_number(1);
  v1::ExecuteRequest prepared;
  prepared.mutable_prepared()->set_program(std::string(32, 'p'));
  for (const v1::ExecuteRequest& request : {keyed, numbered, prepared}) {
    std::string frames;
    for (const uint64_t number : {1, 2}) {
      frames += server::AnnouncementFrame(number, request, {4, 4, 4});
    }
    for (int payload = 0; payload < 3; ++payload) {
      frames += server::FrameBytes(server::kChunkFrame, 1, std::string(4, '\0'));
    }
    seeds.Add("sessions",
              absl::StrCat(hello, std::string(1, '\1'),
                           std::string(1, static_cast<char>(frames.size() & 0xff)),
                           std::string(1, static_cast<char>(frames.size() >> 8)), frames));
  }
}

// Each kind of frame, as a message and as what is inside it, and all of them in one.
void AddSessions(Seeds& seeds, const fs::path& root) {
  std::string all;
  for (const auto& entry : fs::directory_iterator(root / "tests/data/wire/session")) {
    const std::string bytes = ReadFile(entry.path());
    v1::SessionMessage message;
    if (!message.ParseFromString(bytes)) continue;
    seeds.Add("session_frames", absl::StrCat(std::string("\1\3\1\0\5", 5), bytes));
    seeds.Add("session_frames", absl::StrCat(std::string("\0\2\7\0", 4), message.frames()));
    all += message.frames();
  }
  seeds.Add("session_frames", absl::StrCat(std::string("\0\0", 2), all));

  // A session, as it may be, and with each other frame behind it.
  std::string session;
  const auto message = [&root](const char* name) {
    const std::string bytes = ReadFile(root / "tests/data/wire/session" / name);
    return absl::StrCat(std::string(1, '\0'),
                        std::string(1, static_cast<char>(bytes.size() & 0xff)),
                        std::string(1, static_cast<char>(bytes.size() >> 8)), bytes);
  };
  for (const char* name : {"hello_client.bin", "request.bin", "batch.bin", "pong.bin"}) {
    session += message(name);
    seeds.Add("sessions", session);
  }
  for (const char* name : {"hello_client.bin", "answer.bin", "error.bin", "going_away.bin"}) {
    seeds.Add("sessions", session + message(name));
  }
  const std::string hello = message("hello_client.bin");
  for (const char* name : {"credit.bin", "parts.bin", "chunks.bin", "announcement.bin"}) {
    seeds.Add("sessions", hello + message(name));
  }
  seeds.Add("sessions", hello + message("announcement.bin") + message("chunks.bin"));
  AddAnnouncements(seeds, hello);
}

}  // namespace
}  // namespace opserve::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " DIRECTORY\n";
    return 2;
  }
  opserve::fuzz::Seeds seeds(argv[1]);
  const std::filesystem::path root(OPSERVE_SOURCE_DIR);
  opserve::fuzz::AddMessages(seeds);
  opserve::fuzz::AddInferences(seeds);
  opserve::fuzz::AddUploads(seeds);
  opserve::fuzz::AddDeposits(seeds);
  opserve::fuzz::AddSharedMemory(seeds);
  opserve::fuzz::AddTexts(seeds, root);
  opserve::fuzz::AddFiles(seeds, root);
  opserve::fuzz::AddDescriptions(seeds, root);
  opserve::fuzz::AddConnections(seeds);
  opserve::fuzz::AddSessions(seeds, root);
  return 0;
}
