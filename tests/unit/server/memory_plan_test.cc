#include "server/program/memory_plan.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "server/program/program.h"
#include "tests/seed.h"

namespace opserve::server {
namespace {

constexpr uint64_t kSlack = 32;

BoundInput From(decltype(BoundInput::source) source) {
  BoundInput input;
  input.source = source;
  return input;
}

// Adds an invocation with one output.
BoundInvocation& Add(Program& program, int64_t output_floats, std::vector<BoundInput> inputs) {
  const auto position = static_cast<uint32_t>(program.invocations.size());
  BoundInvocation& invocation = program.invocations.emplace_back();
  invocation.inputs.assign(inputs.begin(), inputs.end());
  invocation.outputs.push_back({.spec = {v1::DATA_TYPE_FLOAT, {output_floats}}});
  invocation.first_output = position;
  return invocation;
}

// Lets the next invocation read a copy of `input` instead.
void MakeCopy(int64_t floats, BoundInput* input, Program* program) {
  ContiguousCopy copy;
  copy.invocation = static_cast<uint32_t>(program->invocations.size());
  input->spec = {v1::DATA_TYPE_FLOAT, {floats}};
  copy.call.inputs = {BoundInput(), *input};
  input->source = CopySource{static_cast<uint32_t>(program->copies.size())};
  program->copies.push_back(std::move(copy));
}

// A chain: each invocation reads the output of the one before, the first a payload; the last one's
// output is the result.
Program Chain(int length, int64_t floats) {
  Program program;
  for (int i = 0; i < length; ++i) {
    const auto source =
        i == 0 ? From(PayloadSource{0}) : From(InvocationSource{static_cast<uint32_t>(i - 1), 0});
    Add(program, floats, {source});
    if (i > 0) program.invocations[i - 1].outputs[0].last_reader = i;
  }
  program.invocations.back().outputs[0].is_result = true;
  return program;
}

TEST(PlanMemoryTest, AProgramWithoutBytesTakesNone) {
  Program program = Chain(1, 0);

  EXPECT_EQ(PlanMemory(program, {0}, {0}).total_bytes, 0u);
}

TEST(PlanMemoryTest, ALongChainTakesNoMoreThanItsWidestPlace) {
  const uint64_t bytes = 4000;

  const MemoryPlan plan = PlanMemory(Chain(16, bytes / 4), {bytes}, std::vector<uint64_t>(16, 0));

  // Two neighbours of the chain live at any time.
  EXPECT_LE(plan.total_bytes, 2 * (bytes + kSlack + 64));
}

// Shared memory that is used in place takes none of the device's, as input and as result.
TEST(PlanMemoryTest, WindowsTakeMemoryOnlyIfTheyAreCopied) {
  Program program;
  program.windows.resize(2);
  for (WindowUse& window : program.windows) window.bytes = 4000;
  BoundInvocation& invocation = Add(program, 1000, {From(SharedSource{0}), From(PayloadSource{0})});
  invocation.outputs[0].is_result = true;
  invocation.outputs[0].window = 1;
  const auto total = [&](bool copies_input, bool copies_result) {
    return PlanMemory(program, {100}, {0}, {copies_input, copies_result}).total_bytes;
  };

  EXPECT_EQ(PlanMemory(program, {100}, {0}).total_bytes, total(false, false));
  EXPECT_LT(total(false, false), 200u);
  EXPECT_GE(total(true, false), 4100u);
  EXPECT_LT(total(true, false), 4400u);
  EXPECT_GE(total(false, true), 4100u);
  EXPECT_LT(total(false, true), 4400u);
  EXPECT_GE(total(true, true), 8100u);
}

TEST(PlanMemoryTest, ResultsAreNotOverwritten) {
  Program program = Chain(3, 100);
  program.invocations[0].outputs[0].is_result = true;

  const MemoryPlan plan = PlanMemory(program, {400}, {0, 0, 0});

  EXPECT_NE(plan.outputs[0], plan.outputs[1]);
  EXPECT_NE(plan.outputs[0], plan.outputs[2]);
}

TEST(PlanMemoryTest, EachOutputOfAnInvocationHasAPlaceOfItsOwn) {
  Program program;
  BoundInvocation& first = Add(program, 100, {From(PayloadSource{0})});
  first.outputs.push_back({.spec = {v1::DATA_TYPE_FLOAT, {100}}, .last_reader = 1});
  BoundInvocation& second = Add(program, 100, {From(InvocationSource{0, 1})});
  second.first_output = 2;
  second.outputs[0].is_result = true;

  const MemoryPlan plan = PlanMemory(program, {400}, {0, 0});

  ASSERT_EQ(plan.outputs.size(), 3u);
  EXPECT_NE(plan.outputs[0], plan.outputs[1]);
  EXPECT_NE(plan.outputs[1], plan.outputs[2]);
}

// Bytes that something holds during some invocations.
struct Lived {
  uint64_t begin, end;
  int first, last;
};

TEST(PlanMemoryTest, WhatLivesAtTheSameTimeNeverOverlaps) {
  std::mt19937 random(TestSeed(20240501));
  const auto pick = [&random](int most) { return static_cast<int>(random() % (most + 1)); };
  for (int round = 0; round < 500; ++round) {
    Program program;
    const int count = 1 + pick(15);
    std::vector<uint64_t> payload_bytes;
    std::vector<uint64_t> workspace_bytes;
    std::vector<Lived> lived;
    std::vector<int> payload_last;
    for (int i = 0; i < count; ++i) {
      std::vector<BoundInput> inputs;
      for (int k = 0; k < 3; ++k) {
        if (i > 0 && pick(1) == 0) {
          const auto source = static_cast<uint32_t>(pick(i - 1));
          inputs.push_back(From(InvocationSource{source, 0}));
          program.invocations[source].outputs[0].last_reader = i;
        } else if (!payload_bytes.empty() && pick(3) == 0) {
          const auto again =
              static_cast<uint32_t>(pick(static_cast<int>(payload_bytes.size()) - 1));
          inputs.push_back(From(PayloadSource{again}));
          payload_last[again] = i;
        } else {
          inputs.push_back(From(PayloadSource{static_cast<uint32_t>(payload_bytes.size())}));
          payload_bytes.push_back(pick(5) == 0 ? 0 : pick(5000));
          payload_last.push_back(i);
        }
        if (pick(3) == 0) MakeCopy(pick(2000), &inputs.back(), &program);
      }
      Add(program, pick(2000), inputs).outputs[0].is_result = pick(3) == 0;
      workspace_bytes.push_back(pick(1) == 0 ? 0 : pick(3000));
    }

    const MemoryPlan plan = PlanMemory(program, payload_bytes, workspace_bytes);

    const auto add = [&](uint64_t begin, uint64_t bytes, int first, int last) {
      EXPECT_EQ(begin % 64, 0u);
      if (bytes == 0) return;
      EXPECT_LE(begin + bytes + kSlack, plan.total_bytes);
      lived.push_back({begin, begin + bytes + kSlack, first, last});
    };
    for (size_t i = 0; i < payload_bytes.size(); ++i) {
      add(plan.payloads[i], payload_bytes[i], 0, payload_last[i]);
    }
    for (int i = 0; i < count; ++i) {
      const BoundOutput& output = program.invocations[i].outputs[0];
      add(plan.outputs[i], NumBytes(output.spec), i,
          output.is_result ? count : static_cast<int>(output.last_reader.value_or(i)));
      add(plan.workspaces[i], workspace_bytes[i], i, i);
    }
    ASSERT_EQ(plan.copies.size(), program.copies.size());
    for (size_t i = 0; i < program.copies.size(); ++i) {
      const auto reader = static_cast<int>(program.copies[i].invocation);
      add(plan.copies[i], program.copies[i].bytes(), reader, reader);
    }
    for (size_t a = 0; a < lived.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const bool in_time = lived[a].first <= lived[b].last && lived[b].first <= lived[a].last;
        const bool in_space = lived[a].begin < lived[b].end && lived[b].begin < lived[a].end;
        ASSERT_FALSE(in_time && in_space) << "round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace opserve::server
