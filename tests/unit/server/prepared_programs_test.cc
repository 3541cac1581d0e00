// Handles of prepared programs: leases, sharing, whose they are, which go when there are too many,
// and which leave for another daemon or come from one. Time is what the tests say it is.
#include "server/run/prepared_programs.h"
#include "server/native/native_request.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "tests/unit/server/error_detail.h"
#include "tests/unit/server/leases.h"
#include "tests/unit/server/test_operators.h"

namespace opserve::server {
namespace {

// A chain of `count` invocations of Relu on one input of two elements.
v1::PrepareRequest ChainRequest(uint32_t count) {
  v1::PrepareRequest request;
  v1::ProgramInput* input = request.add_inputs();
  input->set_dtype(v1::DATA_TYPE_FLOAT);
  input->add_shape(2);
  for (uint32_t i = 0; i < count; ++i) {
    v1::Invocation* invocation = request.mutable_program()->add_invocations();
    invocation->set_operator_("Relu");
    v1::NamedTensor* self = invocation->add_inputs();
    self->set_name("self");
    if (i == 0) {
      self->mutable_tensor()->set_program_input(0);
    } else {
      self->mutable_tensor()->mutable_invocation_output()->set_invocation(i - 1);
    }
  }
  return request;
}

absl::StatusOr<PreparedProgram> Chain(uint32_t count) {
  return MakePrepared(ChainRequest(count), TestOperators(), ProgramLimits(),
                      [](absl::string_view) { return absl::NotFoundError(""); });
}

class PreparedProgramsTest : public ::testing::Test {
 protected:
  static constexpr PreparedLimits kLimits = {.max_programs_per_tenant = 3,
                                             .max_bytes_per_tenant = 1 << 20,
                                             .default_lease = absl::Seconds(100),
                                             .max_lease = absl::Seconds(500)};

  absl::StatusOr<PreparedPrograms::Added> Prepare(const std::string& digest, int64_t now = 0,
                                                  uint32_t tenant = kTenant, uint32_t count = 1) {
    return programs_.Prepare(tenant, digest, absl::ZeroDuration(), At(now),
                             [count] { return Chain(count); });
  }
  bool Has(const std::string& handle, int64_t now = 0, uint32_t tenant = kTenant) {
    const auto found = programs_.Find(tenant, handle, At(now));
    if (!found.ok()) {
      EXPECT_EQ(ReasonOf(found.status()), "program_unknown");
      EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
    }
    return found.ok();
  }

  PreparedPrograms programs_{kLimits};
};

TEST_F(PreparedProgramsTest, AHandleIsItsTenantsAlone) {
  const auto added = Prepare("a");
  ASSERT_TRUE(added.ok()) << added.status();

  EXPECT_TRUE(Has(added->handle));
  EXPECT_FALSE(Has(added->handle, 0, kOtherTenant));
  EXPECT_FALSE(Has("another"));
  EXPECT_EQ(programs_.Release(kOtherTenant, {added->handle}), 0u);
  EXPECT_EQ(programs_.Release(kTenant, {added->handle, "another"}), 1u);
  EXPECT_FALSE(Has(added->handle));
  EXPECT_EQ(programs_.UsageOfAll().bytes, 0u);
  EXPECT_EQ(programs_.count(PreparedPrograms::kUnknown), 3u);
}

TEST_F(PreparedProgramsTest, EveryUseBeginsTheLeaseAnew) {
  const auto added = Prepare("a");
  EXPECT_EQ(added->lease_end, At(100));
  EXPECT_TRUE(Has(added->handle, 99));
  EXPECT_TRUE(Has(added->handle, 198));
  programs_.Expire(At(200));
  EXPECT_TRUE(Has(added->handle, 201));

  EXPECT_FALSE(Has(added->handle, 301));  // ended, though not swept yet
  programs_.Expire(At(301));
  EXPECT_EQ(programs_.UsageOfTenant(kTenant).handles, 0u);
  EXPECT_EQ(programs_.count(PreparedPrograms::kExpired), 1u);
}

TEST_F(PreparedProgramsTest, EqualProgramsOfATenantAreOneAndNoHolderTakesItFromAnother) {
  const auto first = Prepare("a");
  const uint64_t bytes = programs_.UsageOfTenant(kTenant).bytes;
  const auto second = Prepare("a", 50);
  const auto foreign = Prepare("a", 0, kOtherTenant);

  EXPECT_FALSE(first->is_shared);
  EXPECT_TRUE(second->is_shared);
  EXPECT_FALSE(foreign->is_shared);
  EXPECT_NE(first->handle, second->handle);
  EXPECT_EQ(programs_.UsageOfTenant(kTenant).bytes, bytes);
  EXPECT_EQ(programs_.UsageOfTenant(kTenant).handles, 2u);
  EXPECT_EQ(*programs_.Find(kTenant, first->handle, At(50)),
            *programs_.Find(kTenant, second->handle, At(50)));

  EXPECT_EQ(programs_.Release(kTenant, {first->handle}), 1u);
  EXPECT_TRUE(Has(second->handle, 51));
  const auto third = Prepare("a", 51);
  programs_.Expire(At(151));  // the third's lease has ended; the second's was begun anew at 51, too
  EXPECT_EQ(programs_.UsageOfTenant(kTenant).bytes, 0u);
}

TEST_F(PreparedProgramsTest, TheLeastRecentlyUsedHandleMakesRoom) {
  const std::string a = Prepare("a")->handle;
  const std::string b = Prepare("b")->handle;
  const std::string c = Prepare("c")->handle;
  EXPECT_TRUE(Has(a));
  const std::string d = Prepare("d")->handle;

  EXPECT_FALSE(Has(b));
  EXPECT_TRUE(Has(a));
  EXPECT_TRUE(Has(c));
  EXPECT_TRUE(Has(d));
  EXPECT_EQ(programs_.count(PreparedPrograms::kEvicted), 1u);
  EXPECT_TRUE(Has(Prepare("a", 0, kOtherTenant)->handle, 0, kOtherTenant));
  EXPECT_EQ(programs_.count(PreparedPrograms::kEvicted), 1u);
}

TEST_F(PreparedProgramsTest, BytesMakeRoomTooAndAProgramThatIsTooLargeIsRefused) {
  const uint64_t one = Chain(100)->host_bytes();
  PreparedPrograms programs({.max_programs_per_tenant = 100, .max_bytes_per_tenant = 2 * one});
  const auto prepare = [&](const std::string& digest, uint32_t count) {
    return programs.Prepare(kTenant, digest, absl::ZeroDuration(), At(0),
                            [count] { return Chain(count); });
  };
  const auto a = prepare("a", 100);
  const auto b = prepare("b", 100);
  const auto c = prepare("c", 100);
  ASSERT_TRUE(c.ok()) << c.status();

  EXPECT_FALSE(programs.Find(kTenant, a->handle, At(0)).ok());
  EXPECT_TRUE(programs.Find(kTenant, b->handle, At(0)).ok());
  EXPECT_EQ(programs.UsageOfTenant(kTenant).bytes, 2 * one);

  const auto large = prepare("large", 300);
  EXPECT_EQ(large.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(large.status()), "tenant_memory");
  EXPECT_EQ(programs.UsageOfTenant(kTenant).handles, 2u);
}

// One that can leave for another daemon.
absl::StatusOr<PreparedProgram> KeptChain(uint32_t count) {
  v1::PrepareRequest request = ChainRequest(count);
  request.mutable_lease()->set_seconds(7);
  absl::StatusOr<PreparedProgram> program = Chain(count);
  if (program.ok()) program->KeepRequest(TemplateBytes(request));
  return program;
}

TEST_F(PreparedProgramsTest, AProgramKeepsWhatItWasMadeOfAndItsBytesCount) {
  const PreparedProgram plain = *Chain(100);
  const PreparedProgram kept = *KeptChain(100);

  EXPECT_EQ(plain.request(), "");
  EXPECT_EQ(kept.request(), ChainRequest(100).SerializeAsString());  // without the lease
  EXPECT_GE(kept.host_bytes(), plain.host_bytes() + kept.request().size());
}

TEST_F(PreparedProgramsTest, ThoseUsedLastLeaveFirstWithAllTheirHandles) {
  const auto prepare = [&](const std::string& digest, int64_t now, uint32_t tenant = kTenant) {
    return programs_
        .Prepare(tenant, digest, absl::ZeroDuration(), At(now), [] { return KeptChain(2); })
        ->handle;
  };
  const std::string a1 = prepare("a", 50);
  const std::string b = prepare("b", 10);  // its lease ends before the others'
  const std::string a2 = prepare("a", 60);
  const std::string c = prepare("c", 60, kOtherTenant);
  ASSERT_TRUE(Prepare("d", 60, kOtherTenant).ok());  // has not kept what it was made of
  ASSERT_TRUE(Has(a1, 70));

  const auto all = programs_.ProgramsToDeposit(At(80));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].tenant, kTenant);
  ASSERT_EQ(all[0].handles.size(), 2u);
  EXPECT_EQ(all[0].handles[0].handle, a1);
  EXPECT_EQ(all[0].handles[0].lease, absl::Seconds(100));
  EXPECT_EQ(all[0].handles[0].lease_end, At(170));
  EXPECT_EQ(all[0].handles[1].handle, a2);
  EXPECT_EQ(all[1].handles[0].handle, b);
  EXPECT_EQ(all[2].tenant, kOtherTenant);
  EXPECT_EQ(all[2].handles[0].handle, c);
  EXPECT_EQ(programs_.ProgramsToDeposit(At(110)).size(), 2u);  // without b
}

TEST_F(PreparedProgramsTest, HandlesOfAnotherDaemonAreTheTenantsAllOrNone) {
  const auto adopt = [&](const std::string& digest, std::vector<std::string> handles,
                         uint32_t tenant = kTenant) {
    std::vector<PreparedPrograms::Arrived> arrived;
    for (std::string& handle : handles) arrived.push_back({handle, absl::Seconds(20), At(10)});
    return programs_.Adopt(tenant, digest, std::move(arrived), [] { return Chain(1); });
  };
  const std::string own = Prepare("a")->handle;

  EXPECT_TRUE(adopt("a", {"one", "two"}).ok());
  EXPECT_TRUE(adopt("a", {"one", "two"}).ok());  // again, after a link that broke
  EXPECT_EQ(programs_.UsageOfTenant(kTenant).handles, 3u);
  EXPECT_EQ(programs_.UsageOfTenant(kTenant).bytes, Chain(1)->host_bytes());
  EXPECT_EQ(programs_.count(PreparedPrograms::kAdopted), 2u);
  EXPECT_EQ(*programs_.Find(kTenant, "one", At(9)), *programs_.Find(kTenant, own, At(9)));
  EXPECT_FALSE(Has("two", 10));  // the lease that it had left
  EXPECT_TRUE(Has("one", 28));   // begun anew
  EXPECT_FALSE(Has("one", 9, kOtherTenant));

  // Nothing makes room for them, and part of them is not enough.
  const absl::Status full = adopt("b", {"three"});
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(full), "tenant_memory");
  EXPECT_EQ(adopt("b", {"three", "own"}, kOtherTenant), absl::OkStatus());
  EXPECT_EQ(adopt("b", {"four", "one"}, kOtherTenant).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(adopt("c", {"three"}, kOtherTenant).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_FALSE(Has("four", 0, kOtherTenant));
  EXPECT_EQ(programs_.UsageOfTenant(kTenant).handles, 3u);
  EXPECT_EQ(programs_.UsageOfTenant(kOtherTenant).handles, 2u);
  EXPECT_EQ(programs_.count(PreparedPrograms::kEvicted), 0u);

  // Of those that are here, callers' own stay longer.
  EXPECT_TRUE(Prepare("d", 5).ok());
  EXPECT_TRUE(Has(own, 5));
  EXPECT_EQ(programs_.count(PreparedPrograms::kEvicted), 1u);
}

TEST_F(PreparedProgramsTest, AProgramThatCannotBeMadeLeavesNothing) {
  const auto refused =
      programs_.Prepare(kTenant, "a", absl::ZeroDuration(), At(0), [] { return Chain(0); });

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      programs_.Adopt(kTenant, "a", {{"one", absl::Seconds(1), At(1)}}, [] { return Chain(0); })
          .code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(programs_.UsageOfAll().handles, 0u);
  EXPECT_EQ(programs_.UsageOfAll().bytes, 0u);
}

}  // namespace
}  // namespace opserve::server
