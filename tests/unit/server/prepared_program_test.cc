// Programs that are bound once: what a call must bring, and what it may change.
#include "server/run/prepared_program.h"
#include "server/native/native_request.h"

#include <malloc.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "tests/unit/server/error_detail.h"
#include "tests/unit/server/test_operators.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

using Found = absl::StatusOr<std::shared_ptr<ResidentTensor>>;

// FLOAT [2,3]: "a" and "b" on device 0, "c" on device 1; "long": FLOAT [4].
Found FindNamed(absl::string_view handle) {
  static auto* const tensors = new std::map<std::string, std::shared_ptr<ResidentTensor>>;
  if (handle != "a" && handle != "b" && handle != "c" && handle != "long") {
    return MakeError(Reason::kTensorUnknown, "unknown");
  }
  auto& tensor = (*tensors)[std::string(handle)];
  if (tensor == nullptr) {
    tensor = std::make_shared<ResidentTensor>();
    tensor->spec = {v1::DATA_TYPE_FLOAT, {2, 3}};
    if (handle == "long") tensor->spec.shape = {4};
    tensor->device = handle == "c" ? 1 : 0;
  }
  return tensor;
}

v1::Tensor* Input(v1::Invocation* invocation, const char* name) {
  v1::NamedTensor* input = invocation->add_inputs();
  input->set_name(name);
  return input->mutable_tensor();
}

void AddInput(v1::PrepareRequest* request, v1::ProgramInput::Kind kind) {
  v1::ProgramInput* input = request->add_inputs();
  input->set_dtype(v1::DATA_TYPE_FLOAT);
  input->add_shape(2);
  input->add_shape(3);
  input->set_kind(kind);
}

// Adds the gradient of each call to its resident weights, in place.
v1::PrepareRequest Step() {
  v1::PrepareRequest request;
  AddInput(&request, v1::ProgramInput::KIND_PAYLOAD);
  AddInput(&request, v1::ProgramInput::KIND_RESIDENT);
  v1::ExecuteRequest* program = request.mutable_program();
  v1::Invocation* add = program->add_invocations();
  add->set_operator_("InplaceAdd");
  Input(add, "self")->set_program_input(1);
  Input(add, "other")->set_program_input(0);
  v1::NamedAttribute* alpha = add->add_attributes();
  alpha->set_name("alpha");
  alpha->mutable_value()->set_double_value(1);
  v1::WantedResult* kept = program->add_results();
  kept->mutable_replace()->set_program_input(1);
  program->add_donated_inputs(1);
  return request;
}

absl::StatusOr<PreparedProgram> Make(const v1::PrepareRequest& request) {
  return MakePrepared(request, TestOperators(), ProgramLimits(), FindNamed);
}

TEST(PreparedProgramTest, ADonatedTensorIsWorkedInAfterItsLastReader) {
  const struct {
    const char* name;
    bool is_donated;
    bool is_read_last;  // by the invocation that replaces it
    bool is_in_place;
  } cases[] = {
      {"read before", true, false, true},
      {"read by the last one", true, true, false},
      {"not donated", false, false, false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    v1::PrepareRequest request;
    AddInput(&request, v1::ProgramInput::KIND_PAYLOAD);
    AddInput(&request, v1::ProgramInput::KIND_RESIDENT);
    v1::ExecuteRequest* program = request.mutable_program();
    for (int i = 0; i < 2; ++i) {
      v1::Invocation* add = program->add_invocations();
      add->set_operator_("Add");
      v1::Tensor* self = Input(add, "self");
      if (i == 0) {
        self->set_program_input(1);
      } else {
        self->mutable_invocation_output()->set_invocation(0);
      }
      Input(add, "other")->set_program_input(i == 1 && c.is_read_last ? 1 : 0);
    }
    v1::WantedResult* kept = program->add_results();
    kept->set_invocation(1);
    kept->mutable_replace()->set_program_input(1);
    if (c.is_donated) program->add_donated_inputs(1);
    const auto made = Make(request);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->program().kept[0].is_in_place, c.is_in_place);
  }
}

TEST(PreparedProgramTest, MistakesInTheProgramAreNamed) {
  const struct {
    const char* name;
    std::function<void(v1::PrepareRequest*)> change;
    const char* message;
  } cases[] = {
      {"a key", [](auto* r) { r->mutable_program()->set_idempotency_key("k"); },
       "program.idempotency_key: belongs to the calls"},
      {"a receipt", [](auto* r) { r->mutable_program()->set_want_receipt(true); },
       "program.want_receipt: belongs to the calls"},
      {"a prepared call", [](auto* r) { r->mutable_program()->mutable_prepared(); },
       "program.prepared: belongs to the calls"},
      {"a payload", [](auto* r) { r->mutable_program()->add_payloads("x"); },
       "program.payloads: belongs to the calls"},
      {"a version",
       [](auto* r) { r->mutable_program()->mutable_results(0)->mutable_replace()->set_version(1); },
       "has another version in each call"},
      {"a destination",
       [](auto* r) {
         r->mutable_program()->mutable_results(0)->mutable_shared_memory()->set_size(4);
       },
       "cannot go to shared memory"},
      {"no such input",
       [](auto* r) {
         r->mutable_program()
             ->mutable_invocations(0)
             ->mutable_inputs(1)
             ->mutable_tensor()
             ->set_program_input(7);
       },
       "input 7 of a program with 2"},
      {"an unused input", [](auto* r) { AddInput(r, v1::ProgramInput::KIND_PAYLOAD); },
       "payload 1 belongs to no tensor"},
      {"an unused resident input", [](auto* r) { AddInput(r, v1::ProgramInput::KIND_RESIDENT); },
       "input 2 of the program is used by no invocation"},
      {"a shape", [](auto* r) { r->mutable_inputs(0)->set_shape(0, -1); }, "inputs[0]"},
      {"a dtype", [](auto* r) { r->mutable_inputs(1)->clear_dtype(); }, "inputs[1]"},
      {"a kind",
       [](auto* r) { r->mutable_inputs(0)->set_kind(static_cast<v1::ProgramInput::Kind>(9)); },
       "kind 9 is none of"},
      {"replaces a payload",
       [](auto* r) {
         r->mutable_program()->mutable_results(0)->mutable_replace()->set_program_input(0);
       },
       "input 0 of the program is no resident tensor"},
      {"two names",
       [](auto* r) {
         r->mutable_program()->mutable_results(0)->mutable_replace()->set_handle("a");
       },
       "set one of handle and program_input"},
      {"donates a payload", [](auto* r) { r->mutable_program()->set_donated_inputs(0, 0); },
       "input 0 of the program is no resident tensor"},
      {"donates twice", [](auto* r) { r->mutable_program()->add_donated_inputs(1); },
       "a resident tensor twice"},
  };
  ASSERT_TRUE(Make(Step()).ok()) << Make(Step()).status();
  for (const auto& c : cases) {
    v1::PrepareRequest request = Step();
    c.change(&request);

    const auto program = Make(request);

    EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument) << c.name;
    EXPECT_THAT(std::string(program.status().message()), HasSubstr(c.message)) << c.name;
    EXPECT_TRUE(ErrorDetailOf(program.status()).has_value()) << c.name;
  }
}

TEST(PreparedProgramTest, ACallBringsExactlyTheInputs) {
  const auto prepared = Make(Step());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const struct {
    const char* name;
    std::vector<uint64_t> payloads;
    std::vector<const char*> residents;
    const char* message;  // "": it is right
  } cases[] = {
      {"right", {24}, {"a"}, ""},
      {"again, with another tensor", {24}, {"b"}, ""},
      {"on another device", {24}, {"c"}, ""},
      {"no payload", {}, {"a"}, "payloads: 0 given; the prepared program takes 1"},
      {"two payloads", {24, 24}, {"a"}, "payloads: 2 given"},
      {"a long payload", {28}, {"a"}, "payload 0 has 28 bytes; the prepared program takes 24"},
      {"no tensor", {24}, {}, "residents: 0 given; the prepared program takes 1"},
      {"two tensors", {24}, {"a", "b"}, "residents: 2 given"},
      {"another size", {24}, {"long"}, "FLOAT [4]; the prepared program takes FLOAT [2,3]"},
      {"an unknown one", {24}, {"x"}, "unknown"},
  };
  for (const auto& c : cases) {
    v1::PreparedCall call;
    for (const char* handle : c.residents) call.add_residents(handle);

    const auto bound = prepared->Bind(TranslateCall(call), c.payloads, FindNamed, NoSharedMemory);

    if (c.message[0] == '\0') {
      ASSERT_TRUE(bound.ok()) << c.name << bound.status();
      EXPECT_EQ(bound->residents.at(0).handle, c.residents[0]) << c.name;
      EXPECT_EQ(bound->device(), c.residents[0] == std::string("c") ? 1 : 0) << c.name;
      EXPECT_EQ(bound->program.get(), &prepared->program()) << c.name;
      EXPECT_TRUE(bound->program->kept.at(0).is_in_place) << c.name;
    } else {
      EXPECT_THAT(std::string(bound.status().message()), HasSubstr(c.message)) << c.name;
    }
  }
}

TEST(PreparedProgramTest, ACallNamesVersionsOfItsTensors) {
  const auto prepared = Make(Step());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const struct {
    const char* name;
    std::vector<uint32_t> residents;  // that are named, with version 7
    const char* message;              // "": it is right
  } cases[] = {
      {"none", {}, ""},
      {"the one there is", {0}, ""},
      {"one that is not there", {1}, "versions: resident 1 of a call with 1"},
      {"one twice", {0, 0}, "versions: resident 0 is named twice"},
  };
  for (const auto& c : cases) {
    v1::PreparedCall call;
    call.add_residents("a");
    for (const uint32_t resident : c.residents) {
      v1::ExpectedVersion* expected = call.add_versions();
      expected->set_resident(resident);
      expected->set_version(7);
    }

    const auto bound = prepared->Bind(TranslateCall(call), {24}, FindNamed, NoSharedMemory);

    if (c.message[0] == '\0') {
      ASSERT_TRUE(bound.ok()) << c.name << bound.status();
      EXPECT_EQ(bound->residents.at(0).version.value_or(0), c.residents.empty() ? 0u : 7u);
    } else {
      EXPECT_THAT(std::string(bound.status().message()), HasSubstr(c.message)) << c.name;
    }
  }
}

TEST(PreparedProgramTest, ATensorThatIsReplacedIsNotGivenTwice) {
  v1::PrepareRequest request = Step();
  request.mutable_inputs(0)->set_kind(v1::ProgramInput::KIND_RESIDENT);
  const auto prepared = Make(request);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  v1::PreparedCall call;
  call.add_residents("a");
  call.add_residents("a");

  const auto bound = prepared->Bind(TranslateCall(call), {}, FindNamed, NoSharedMemory);
  EXPECT_THAT(std::string(bound.status().message()), HasSubstr("is given twice"));

  call.set_residents(1, "b");
  EXPECT_TRUE(prepared->Bind(TranslateCall(call), {}, FindNamed, NoSharedMemory).ok());
}

TEST(PreparedProgramTest, ACallChangesValuesOfAttributesAndNoShapes) {
  v1::PrepareRequest request;
  AddInput(&request, v1::ProgramInput::KIND_PAYLOAD);
  v1::Invocation* softmax = request.mutable_program()->add_invocations();
  softmax->set_operator_("LogSoftmax");
  Input(softmax, "self")->set_program_input(0);
  v1::Invocation* sum = request.mutable_program()->add_invocations();
  sum->set_operator_("ReduceSum");
  Input(sum, "self")->mutable_invocation_output()->set_invocation(0);
  v1::NamedAttribute* dims = sum->add_attributes();
  dims->set_name("dims");
  dims->mutable_value()->mutable_int64_list()->add_values(0);
  v1::NamedAttribute* dtype = sum->add_attributes();
  dtype->set_name("dtype");
  dtype->mutable_value()->set_dtype_value(v1::DATA_TYPE_FLOAT);
  const auto prepared = Make(request);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const auto bind = [&](uint32_t invocation, const char* name, int64_t value, bool is_list) {
    v1::PreparedCall call;
    v1::ChangedAttribute* change = call.add_attributes();
    change->set_invocation(invocation);
    change->mutable_attribute()->set_name(name);
    if (is_list) {
      change->mutable_attribute()->mutable_value()->mutable_int64_list()->add_values(value);
    } else {
      change->mutable_attribute()->mutable_value()->set_int64_value(value);
    }
    return prepared->Bind(TranslateCall(call), {24}, FindNamed, NoSharedMemory);
  };

  const auto changed = bind(0, "dim", 0, false);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_NE(&changed->invocation(0), &prepared->program().invocations[0]);
  EXPECT_EQ(&changed->invocation(1), &prepared->program().invocations[1]);
  EXPECT_THAT(std::string(bind(1, "dims", 1, true).status().message()),
              HasSubstr("change the shape"));
  EXPECT_THAT(std::string(bind(0, "dim", 5, false).status().message()), HasSubstr("dim"));
  EXPECT_THAT(std::string(bind(0, "width", 1, false).status().message()),
              HasSubstr("no such attribute"));
  EXPECT_THAT(std::string(bind(2, "dim", 1, false).status().message()),
              HasSubstr("invocation 2 of a program with 2"));
}

// Limits count these bytes, so they are to be what the process holds.
TEST(PreparedProgramTest, HostBytesAreThoseOfTheHeap) {
  v1::PrepareRequest request;
  AddInput(&request, v1::ProgramInput::KIND_PAYLOAD);
  for (uint32_t i = 0; i < 2000; ++i) {
    v1::Invocation* invocation = request.mutable_program()->add_invocations();
    invocation->set_operator_(i % 2 == 0 ? "Relu" : "LogSoftmax");
    v1::Tensor* self = Input(invocation, "self");
    if (i == 0) {
      self->set_program_input(0);
    } else {
      self->mutable_invocation_output()->set_invocation(i - 1);
    }
  }
  const auto in_use = [] {
    const struct mallinfo2 heap = mallinfo2();
    return static_cast<double>(heap.uordblks + heap.hblkhd);
  };
  std::vector<PreparedProgram> programs;
  programs.reserve(10);
  programs.push_back(*Make(request));  // what is made once
  const double before = in_use();
  for (int i = 0; i < 8; ++i) {
    programs.push_back(*Make(request));
    // As its first run leaves it.
    programs.back().program().workspace_plan->For(programs.back().program(),
                                                  std::vector<uint64_t>(2000, 64));
  }
  const double held = (in_use() - before) / 8;
  if (held <= 0) GTEST_SKIP() << "the sanitizer's allocator has no statistics";

  EXPECT_NEAR(static_cast<double>(programs.back().host_bytes()), held, 0.2 * held);
}

}  // namespace
}  // namespace opserve::server
