// Two daemons: one ends and deposits its resident tensors at the other, whatever breaks meanwhile.
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/run/resident_tensors.h"
#include "tests/adding_program.h"
#include "tests/await.h"
#include "tests/integration/cutting_proxy.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/deposit_messages.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/owned_tensors.h"
#include "tests/integration/tensor_calls.h"
#include "tests/integration/two_tenant_processes.h"
#include "tests/sanitized.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;

int PortOf(const std::string& address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) << address;
  return port;
}

// Adds two resident tensors; it wants no result yet.
v1::ExecuteRequest AddRequest(const std::string& self, const std::string& other) {
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_("Add");
  for (const auto& [name, handle] : {std::pair("self", &self), std::pair("other", &other)}) {
    v1::NamedTensor* input = invocation->add_inputs();
    input->set_name(name);
    input->mutable_tensor()->set_resident_tensor(*handle);
  }
  return request;
}

class DepositsTest : public ::testing::Test {
 protected:
  DepositsTest()
      : receiver_([this] {
          certificates_.Sign("peer", "ca", 2, "DNS:peer.test");
          return ReceiverConfig(certificates_);
        }()) {}
  ~DepositsTest() override {
    ClearFaults();
    receiver_.EndLeases();
    AwaitRest();
  }

  const std::string& address() { return receiver_.daemon().addresses()[1]; }
  // Once no batch is under way at the receiver and, of its tensors, none is left.
  void AwaitRest() {
    EXPECT_TRUE(Await([this] { return Received("opserve_deposit_held_bytes", {}) == 0; }));
    if (receiver_.daemon().residents().Total().tensors > 0) return;
    EXPECT_TRUE(Await([this] { return receiver_.HeldByRequests() == 0; }))
        << receiver_.HeldByRequests() << " held";
  }
  double Received(const char* name, const MetricLabels& labels) {
    return MetricValue(receiver_.daemon(), name, labels);
  }
  static double Sent(const InProcessDaemon& daemon, const char* result) {
    return MetricValue(daemon.daemon(), "opserve_deposits_total",
                       {{"direction", "out"}, {"result", result}});
  }
  // Whether the sender would still serve it, if it took calls.
  static absl::Status FindInBooks(const InProcessDaemon& daemon, const Owned& owned) {
    const uint32_t tenant = owned.tenant == "a" ? 0 : 1;
    return daemon.daemon().residents().Find(tenant, owned.handle, absl::Now()).status();
  }

  // Each tensor is at one daemon at most, and where it is by the sender's books.
  void ExpectOnePlaceEach(const InProcessDaemon& sender, const std::vector<Owned>& tensors) {
    double here = 0;
    double there = 0;
    for (const Owned& owned : tensors) {
      const absl::Status at_sender = FindInBooks(sender, owned);
      const absl::Status at_receiver = FindAt(receiver_.target(), owned);
      if (at_sender.ok()) {
        EXPECT_EQ(ReasonOf(at_receiver), "tensor_lost") << at_receiver;
        ++here;
      } else {
        EXPECT_EQ(ReasonOf(at_sender), "tensor_moved") << at_sender;
        EXPECT_TRUE(at_receiver.ok() || ReasonOf(at_receiver) == "tensor_lost") << at_receiver;
        there += at_receiver.ok();
      }
    }
    // What is left at the sender ends with it.
    EXPECT_EQ(Sent(sender, "lost"), here);
    EXPECT_EQ(Sent(sender, "moved") + Sent(sender, "unconfirmed") + here, tensors.size());
    EXPECT_GE(there, Sent(sender, "moved"));
  }

  const Certificates certificates_;
  InProcessDaemon receiver_;
};

TEST_F(DepositsTest, TensorsAreAtThePeerUnderTheirHandles) {
  InProcessDaemon sender(SenderConfig(certificates_, address()));
  const std::vector<Owned> tensors = UploadSome(sender.target(), /*has_large=*/true);

  EXPECT_EQ(sender.daemon().Drain(), 0);

  double bytes = 0;
  for (const Owned& owned : tensors) {
    SCOPED_TRACE(owned.tenant);
    EXPECT_EQ(FindAt(receiver_.target(), owned), absl::OkStatus());
    Owned stranger = owned;
    stranger.tenant = owned.tenant == "a" ? "b" : "a";
    EXPECT_EQ(ReasonOf(FindAt(receiver_.target(), stranger)), "tensor_lost");
    const absl::Status moved = FindInBooks(sender, owned);
    EXPECT_EQ(moved.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(DetailOf(moved).reason(), "tensor_moved");
    EXPECT_EQ(DetailOf(moved).moved_to(), "new.place:1");
    bytes += static_cast<double>(owned.values.size() * sizeof(float));
  }
  // The daemon takes no calls any more, and says where to go.
  const absl::Status refused = FindAt(sender.target(), tensors[0]);
  EXPECT_EQ(ReasonOf(refused), "draining");
  EXPECT_EQ(DetailOf(refused).moved_to(), "new.place:1");
  EXPECT_EQ(Sent(sender, "moved"), tensors.size());
  EXPECT_EQ(MetricValue(sender.daemon(), "opserve_deposited_bytes_total", {{"direction", "out"}}),
            bytes);
  EXPECT_EQ(Received("opserve_deposited_bytes_total", {{"direction", "in"}}), bytes);
  EXPECT_EQ(sender.daemon().residents().Total().tensors, 0u);
  EXPECT_EQ(sender.HeldByRequests(), 0);
  const v1::GetServerStatusResponse status = *sender.client().GetServerStatus();
  EXPECT_TRUE(status.deposit().connected());
  EXPECT_EQ(status.deposit().moved_tensors(), tensors.size());
  EXPECT_EQ(status.deposit().left_tensors(), 0u);
}

// A program of one tenant, and the tensor that it names itself.
struct OwnedProgram {
  std::string tenant;
  std::string tensor;  // of two elements, 1 and 2
  std::vector<std::string> handles;
};

OwnedProgram PrepareFor(const std::string& target, const std::string& tenant) {
  OwnedProgram owned = {.tenant = tenant, .tensor = "", .handles = {}};
  const auto client = *Client::Connect(target, {.token = tenant});
  owned.tensor = client->Upload(Tensor::Of<float>({2}, {1, 2}), {.device = 0})->handle;
  v1::PrepareRequest request = AddingProgram("Add", 3, 2);
  request.mutable_inputs()->RemoveLast();
  for (v1::Invocation& add : *request.mutable_program()->mutable_invocations()) {
    v1::Tensor* self = add.mutable_inputs(0)->mutable_tensor();
    if (!self->has_invocation_output()) self->set_resident_tensor(owned.tensor);
  }
  request.mutable_program()->add_results()->set_invocation(2);
  const auto stub =
      v1::OperatorService::NewStub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", absl::StrCat("Bearer ", tenant));
    v1::PrepareResponse response;
    const grpc::Status status = stub->Prepare(&context, request, &response);
    EXPECT_TRUE(status.ok()) << ToStatus(status);
    owned.handles.push_back(response.handle());
  }
  return owned;
}

// The reason why a tenant cannot call it there; empty: it can, and the result is right.
std::string ReasonOfCall(const std::string& target, const std::string& tenant,
                         const std::string& program) {
  const auto stub =
      v1::OperatorService::NewStub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.AddMetadata("authorization", absl::StrCat("Bearer ", tenant));
  v1::ExecuteRequest request;
  request.mutable_prepared()->set_program(program);
  request.add_payloads(Bytes({10, 20}));
  v1::ExecuteResponse response;
  const grpc::Status status = stub->Execute(&context, request, &response);
  if (!status.ok()) return DetailOf(status).reason();
  EXPECT_EQ(response.payloads(0), Bytes({31, 62}));
  return "";
}

double ProgramsSent(const InProcessDaemon& daemon, const char* result) {
  return MetricValue(daemon.daemon(), "opserve_deposited_programs_total",
                     {{"direction", "out"}, {"result", result}});
}

TEST_F(DepositsTest, PreparedProgramsAreAtThePeerUnderTheirHandles) {
  InProcessDaemon sender(SenderConfig(certificates_, address()));
  std::vector<OwnedProgram> programs;
  for (const char* tenant : {"a", "b"}) programs.push_back(PrepareFor(sender.target(), tenant));

  EXPECT_EQ(sender.daemon().Drain(), 0);

  for (const OwnedProgram& owned : programs) {
    for (const std::string& handle : owned.handles) {
      EXPECT_EQ(ReasonOfCall(receiver_.target(), owned.tenant, handle), "");
      EXPECT_EQ(ReasonOfCall(receiver_.target(), owned.tenant == "a" ? "b" : "a", handle),
                "program_unknown");
    }
  }
  EXPECT_EQ(ProgramsSent(sender, "moved"), 2);
  EXPECT_EQ(
      Received("opserve_deposited_programs_total", {{"direction", "in"}, {"result", "moved"}}), 2);
  EXPECT_EQ(sender.client().GetServerStatus()->deposit().moved_programs(), 2u);
  // Both handles of a tenant are of one program.
  EXPECT_EQ(Received("opserve_prepared_program_events_total", {{"event", "adopted"}}), 4);
}

TEST_F(DepositsTest, ProgramsGoWhileTheDaemonStillServes) {
  Config config = SenderConfig(certificates_, address());
  config.drain_delay = absl::Seconds(3);
  InProcessDaemon sender(config);
  const OwnedProgram owned = PrepareFor(sender.target(), "b");
  std::thread drain([&] { sender.daemon().Drain(); });
  // The tensor that the program names is still the sender's.
  EXPECT_TRUE(Await([&] {
    return ReasonOfCall(receiver_.target(), "b", owned.handles[0]) == "tensor_arriving";
  }));
  EXPECT_EQ(ReasonOfCall(sender.target(), "b", owned.handles[0]), "");
  EXPECT_EQ(ProgramsSent(sender, "moved"), 1);

  drain.join();

  EXPECT_EQ(ReasonOfCall(receiver_.target(), "b", owned.handles[0]), "");
}

TEST_F(DepositsTest, WithoutAPlaceNothingIsKept) {
  Config config = SenderConfig(certificates_, address());
  config.deposit.reset();
  InProcessDaemon sender(config);
  const std::vector<Owned> tensors = UploadSome(sender.target(), false);

  EXPECT_EQ(sender.daemon().Drain(), 0);

  EXPECT_EQ(DetailOf(FindAt(sender.target(), tensors[0])).moved_to(), "");
  EXPECT_EQ(ReasonOf(FindAt(receiver_.target(), tensors[0])), "tensor_lost");
}

TEST_F(DepositsTest, WhatThePeerRefusesStaysAndIsCounted) {
  // "client" is no peer; of tenant "c" the receiver knows nothing.
  struct Case {
    const char* name;
    std::function<void(Config*)> change;
    const char* result;
    double count;
  };
  const Case kCases[] = {
      {"certificate",
       [&](Config* config) {
         config->deposit->certificate = certificates_.File("client");
         config->deposit->key = certificates_.Key("client");
       },
       "lost", 6},
      {"certificate of another authority",
       [&](Config* config) {
         config->deposit->certificate = certificates_.File("stranger");
         config->deposit->key = certificates_.Key("stranger");
       },
       "lost", 6},
      {"server's name", [](Config* config) { config->deposit->server_name = "elsewhere.test"; },
       "lost", 6},
      {"tenant", [](Config* config) { config->tenants.tenants[0].name = "c"; }, "refused", 3},
      {"grace", [](Config* config) { config->drain_timeout = absl::ZeroDuration(); }, "lost", 6},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Config config = SenderConfig(certificates_, address());
    config.drain_timeout = absl::Seconds(2);
    c.change(&config);
    InProcessDaemon sender(config);
    const std::vector<Owned> tensors = UploadSome(sender.target(), false);

    sender.daemon().Drain();

    EXPECT_EQ(Sent(sender, c.result), c.count);
    EXPECT_EQ(Sent(sender, "moved"), static_cast<double>(tensors.size()) - c.count);
    EXPECT_EQ(FindInBooks(sender, tensors[0]), absl::OkStatus());
    EXPECT_EQ(ReasonOf(FindAt(receiver_.target(), tensors[0])), "tensor_lost");
    EXPECT_EQ(sender.daemon().residents().Total().tensors, c.count);
    AwaitRest();
    receiver_.EndLeases();
  }
}

TEST_F(DepositsTest, ThoseUsedLastGoFirst) {
  const Certificates& certificates = certificates_;
  Config config = SenderConfig(certificates, address());
  InProcessDaemon sender(config);
  TensorCalls calls(sender.target());
  std::vector<std::string> handles;
  for (int i = 0; i < 4; ++i)
    handles.push_back(calls.Upload({.bytes = Bytes({1})}).response.handle());
  const auto other = *Client::Connect(sender.target(), {.token = "a"});
  const std::string of_other = other->Upload(Tensor::Of<float>({1}, {1.0f}))->handle;
  calls.Download(handles[2]);
  calls.Download(handles[0]);

  std::vector<std::string> order;
  for (const auto& tensor : sender.daemon().residents().TensorsToDeposit(absl::Now())) {
    order.push_back(tensor.handle);
  }

  EXPECT_THAT(order, ElementsAre(handles[0], handles[2], handles[3], handles[1], of_other));
}

TEST_F(DepositsTest, WhereverTheLinkBreaksAllArriveOnceItIsBack) {
  CuttingProxy proxy(PortOf(address()));
  bool was_cut = true;
  int pieces = 0;
  for (; was_cut && pieces < 200; pieces += kStride) {
    SCOPED_TRACE(pieces);
    InProcessDaemon sender(SenderConfig(certificates_, proxy.address()));
    std::vector<Owned> tensors = UploadSome(sender.target(), false);
    const OwnedProgram program = PrepareFor(sender.target(), "b");
    tensors.push_back({"b", {1, 2}, program.tensor});
    proxy.CutAt(pieces, /*for_good=*/false);

    EXPECT_EQ(sender.daemon().Drain(), 0);

    EXPECT_EQ(ReasonOfCall(receiver_.target(), "b", program.handles[1]), "");
    EXPECT_EQ(ProgramsSent(sender, "moved"), 1);
    was_cut = proxy.was_cut();
    EXPECT_EQ(Sent(sender, "moved"), tensors.size());
    ExpectOnePlaceEach(sender, tensors);
    AwaitRest();
    receiver_.EndLeases();
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(pieces, 10);
}

TEST_F(DepositsTest, WhereverTheLinkBreaksForGoodEachTensorHasOnePlaceOrIsLost) {
  CuttingProxy proxy(PortOf(address()));
  bool was_cut = true;
  int pieces = 0;
  bool has_doubt = false;
  for (; was_cut && pieces < 200; pieces += kStride) {
    SCOPED_TRACE(pieces);
    Config config = SenderConfig(certificates_, proxy.address());
    config.drain_timeout = absl::Milliseconds(400);
    InProcessDaemon sender(config);
    const std::vector<Owned> tensors = UploadSome(sender.target(), false);
    proxy.CutAt(pieces, /*for_good=*/true);

    EXPECT_EQ(sender.daemon().Drain(), 0);

    was_cut = proxy.was_cut();
    has_doubt = has_doubt || Sent(sender, "unconfirmed") > 0;
    EXPECT_TRUE(Await(
        [&] { return ReasonOf(FindAt(receiver_.target(), tensors[0])) != "tensor_arriving"; }));
    ExpectOnePlaceEach(sender, tensors);
    AwaitRest();
    receiver_.EndLeases();
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(pieces, 10);
  EXPECT_TRUE(has_doubt || kIsSanitized);  // few steps are in doubt
}

TEST_F(DepositsTest, WhatRequestsInFlightKeepGoesTooAndAfterThem) {
  InProcessDaemon sender(SenderConfig(certificates_, address()));
  TensorCalls calls(sender.target());
  const std::string handle = calls.Upload({.bytes = Bytes({1, 2})}).response.handle();
  v1::ExecuteRequest request = AddRequest(handle, handle);
  request.add_results()->mutable_keep();
  InjectFaults("kernel=aclnnAdd,slow=100000");
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  v1::ExecuteResponse response;
  grpc::Status status;
  std::thread in_flight([&] { status = calls.Execute(request, &response); });
  EXPECT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));

  EXPECT_EQ(sender.daemon().Drain(), 0);

  in_flight.join();
  ASSERT_TRUE(status.ok()) << ToStatus(status);
  TensorCalls at_receiver(receiver_.target());
  EXPECT_THAT(Floats(at_receiver.Download(handle).bytes), ElementsAre(1, 2));
  const std::string& kept = response.results(0).tensor().resident_tensor();
  EXPECT_THAT(Floats(at_receiver.Download(kept).bytes), ElementsAre(2, 4));
}

TEST_F(DepositsTest, TensorsThatARequestKeepsForTooLongAreLostAndTheOthersGo) {
  Config config = SenderConfig(certificates_, address());
  config.drain_timeout = absl::Seconds(3);
  InProcessDaemon sender(config);
  TensorCalls calls(sender.target());
  const std::string used = calls.Upload({.bytes = Bytes({1, 2}), .device = 0}).response.handle();
  const auto other = *Client::Connect(sender.target(), {.token = "a"});
  const std::string of_other = other->Upload(Tensor::Of<float>({1}, {5.0f}), {.device = 1})->handle;
  v1::ExecuteRequest request = AddRequest(used, used);
  request.add_results();
  InjectFaults("kernel=aclnnAdd,slow=5000000");
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  v1::ExecuteResponse response;
  std::thread in_flight([&] { calls.Execute(request, &response).error_code(); });
  EXPECT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));

  EXPECT_EQ(sender.daemon().Drain(), 1);

  ClearFaults();
  in_flight.join();
  EXPECT_EQ(Sent(sender, "moved"), 1);
  EXPECT_EQ(Sent(sender, "lost"), 1);
  EXPECT_EQ(FindAt(receiver_.target(), {"a", {5.0f}, of_other}), absl::OkStatus());
  EXPECT_EQ(DetailOf(TensorCalls(receiver_.target()).Download(used).status).reason(),
            "tensor_lost");
}

// w = w + m, m = m + 0.5; it returns w.
v1::ExecuteRequest TrainingStep(const std::string& w, const std::string& m, uint64_t number) {
  v1::ExecuteRequest request = AddRequest(w, m);
  *request.add_invocations() = request.invocations(0);
  v1::Tensor* half = request.mutable_invocations(1)->mutable_inputs(1)->mutable_tensor();
  half->set_dtype(v1::DATA_TYPE_FLOAT);
  half->add_shape(1);
  half->set_literal(Bytes({0.5f}));
  request.mutable_invocations(1)->mutable_inputs(0)->mutable_tensor()->set_resident_tensor(m);
  for (const auto& [invocation, handle] : {std::pair(0, &w), std::pair(1, &m)}) {
    v1::WantedResult* result = request.add_results();
    result->set_invocation(static_cast<uint32_t>(invocation));
    result->mutable_replace()->set_handle(*handle);
    result->mutable_replace()->set_version(number);
  }
  request.add_results()->set_invocation(0);
  return request;
}

TEST_F(DepositsTest, ATrainingGoesOnAtThePeerWithTheSameBits) {
  constexpr uint64_t kSteps = 200;
  const std::string start = CountingBytes(1000);
  // Steps at the daemon of `calls`, which are none of the tensors' where they are refused with
  // UNAVAILABLE. The drain begins after step `drain_at`.
  const auto train = [&](uint64_t drain_at) {
    InProcessDaemon sender(SenderConfig(certificates_, address()));
    TensorCalls first(sender.target());
    TensorCalls second(receiver_.target());
    const std::string w = first.Upload({.bytes = start, .device = 0}).response.handle();
    const std::string m = first.Upload({.bytes = start, .device = 0}).response.handle();
    std::vector<std::string> losses;
    TensorCalls* calls = &first;
    std::thread drain;
    for (uint64_t step = 1; step <= kSteps; ++step) {
      if (step == drain_at) drain = std::thread([&] { sender.daemon().Drain(); });
      if (step == kSteps - 20 && drain.joinable()) drain.join();  // if it has not been seen yet
      v1::ExecuteResponse response;
      EXPECT_TRUE(Await([&] {
        const grpc::Status status = calls->Execute(TrainingStep(w, m, step), &response);
        if (status.ok()) return true;
        EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << ToStatus(status);
        if (!DetailOf(status).moved_to().empty()) calls = &second;
        return status.error_code() != grpc::StatusCode::UNAVAILABLE;
      }));
      losses.push_back(response.payloads_size() > 0 ? response.payloads(0) : "none");
      if (losses.back() == "none") break;
    }
    if (drain.joinable()) drain.join();
    receiver_.EndLeases();
    EXPECT_EQ(calls, drain_at > 0 ? &second : &first);
    return losses;
  };
  const std::vector<std::string> undisturbed = train(0);

  EXPECT_TRUE(train(20) == undisturbed);
}

// Over a Unix socket a peer is its user.
TEST(UnixDepositsTest, TheUserIsThePeerAndATokenATenant) {
  Config config = InProcessDaemon::DefaultConfig();
  AddTwoTenants(&config);
  config.peers = {
      {.certificate_name = "", .uid = getuid(), .tenants = {"a", "b"}, .max_bytes = 1 << 20}};
  const InProcessDaemon receiver(config);
  config = InProcessDaemon::DefaultConfig();
  AddTwoTenants(&config);
  config.deposit = DepositConfig{.address = receiver.target(),
                                 .ca = "",
                                 .certificate = "",
                                 .key = "",
                                 .server_name = "",
                                 .client_address = receiver.target()};
  const InProcessDaemon sender(config);
  const std::vector<Owned> tensors = UploadSome(sender.target(), /*has_large=*/false);

  EXPECT_EQ(sender.daemon().Drain(), 0);

  for (const Owned& owned : tensors) EXPECT_EQ(FindAt(receiver.target(), owned), absl::OkStatus());
  const auto peer = *Client::Connect(receiver.target(), {.retry = {.max_attempts = 1}});
  EXPECT_EQ(peer->ListTensors().status().code(), absl::StatusCode::kPermissionDenied);
}

// Two processes, of which one is killed wherever the deposit is.
class KilledDaemonsTest : public DepositsTest {
 protected:
  const TwoTenantProcesses processes_{"2s"};
};

TEST_F(KilledDaemonsTest, WhereverTheSenderIsKilledEachTensorHasOnePlaceOrIsLost) {
  CuttingProxy proxy(PortOf(address()));
  const std::vector<std::string> arguments = processes_.Arguments(
      "sender",
      absl::StrCat("deposit { address: '", proxy.address(), "' ca: '", certificates_.File("ca"),
                   "' certificate: '", certificates_.File("peer"), "' key: '",
                   certificates_.Key("peer"), "' server_name: 'daemon.test' }"));
  bool was_cut = true;
  size_t arrived = 0;
  for (int pieces = 0; was_cut && pieces < 200; pieces += kStride) {
    SCOPED_TRACE(pieces);
    DaemonProcess sender(arguments);
    processes_.AwaitService("sender");
    const std::vector<Owned> tensors = UploadSome(processes_.Target("sender"), /*has_large=*/false);
    proxy.CutAt(pieces, /*for_good=*/true, [pid = sender.pid()] { kill(pid, SIGKILL); });

    sender.End(SIGTERM);

    was_cut = proxy.was_cut();
    arrived = 0;
    for (const Owned& owned : tensors) {
      absl::Status status;
      EXPECT_TRUE(Await([&] {
        status = FindAt(receiver_.target(), owned);
        return ReasonOf(status) != "tensor_arriving";
      }));
      EXPECT_TRUE(status.ok() || ReasonOf(status) == "tensor_lost") << status;
      arrived += status.ok();
    }
    AwaitRest();
    receiver_.EndLeases();
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_EQ(arrived, 6u);
}

TEST_F(KilledDaemonsTest, WhereverTheReceiverIsKilledEachTensorHasOnePlaceOrIsLost) {
  const int port = PortOf(CuttingProxy(0).address());  // free, a moment ago
  const std::vector<std::string> arguments = processes_.Arguments(
      "receiver",
      absl::StrCat("listen: '127.0.0.1:", port, "' tls_cert: '", certificates_.File("server"),
                   "' tls_key: '", certificates_.Key("server"), "' tls_client_ca: '",
                   certificates_.File("ca"),
                   "' peer { certificate_name: 'peer.test' tenant: 'a' tenant: 'b' max_bytes: "
                   "1000000 }"));
  CuttingProxy proxy(port);
  bool was_cut = true;
  double moved = 0;
  for (int pieces = 0; was_cut && pieces < 200; pieces += kStride) {
    SCOPED_TRACE(pieces);
    DaemonProcess receiver(arguments);
    Config sender_config = SenderConfig(certificates_, proxy.address());
    sender_config.drain_timeout = absl::Milliseconds(600);
    InProcessDaemon sender(sender_config);
    const std::vector<Owned> tensors = UploadSome(sender.target(), /*has_large=*/false);
    processes_.AwaitService("receiver");
    proxy.CutAt(pieces, /*for_good=*/true, [pid = receiver.pid()] { kill(pid, SIGKILL); });

    EXPECT_EQ(sender.daemon().Drain(), 0);

    was_cut = proxy.was_cut();
    moved = Sent(sender, "moved");
    double here = 0;
    for (const Owned& owned : tensors) here += FindInBooks(sender, owned).ok();
    EXPECT_EQ(Sent(sender, "lost"), here);
    EXPECT_EQ(moved + Sent(sender, "unconfirmed") + here, 6);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_EQ(moved, 6);
}

}  // namespace
}  // namespace opserve::server
