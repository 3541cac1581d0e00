// The emulated Ascend C: documented semantics, and that every check fires.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/ascendc/emulation/half.h"
#include "kernels/ascendc/emulation/kernel_operator.h"
#include "kernels/ascendc/emulation/launch.h"

namespace opserve::ascendc::emulation {
namespace {

using AscendC::LocalTensor;
using AscendC::TPosition;

using FloatBuffer = AscendC::TBuf<TPosition::VECCALC>;
using InputQueue = AscendC::TQue<TPosition::VECIN, 1>;
using OutputQueue = AscendC::TQue<TPosition::VECOUT, 1>;

constexpr int32_t kCount = 64;  // floats of one repeat

// What a small kernel needs: 64 floats that may be read, 64 that may be written, and buffers for
// them.
class Device {
 public:
  Device() : input(kCount, 2.0f), output(kCount, -1.0f) {}

  Launch launch() {
    const auto range = [](const std::vector<float>& values, bool is_writable) {
      const auto begin = reinterpret_cast<uintptr_t>(values.data());
      return GlobalRange{begin, begin + values.size() * sizeof(float), is_writable};
    };
    return {.num_cores = 1, .global = {range(input, false), range(output, true)}};
  }

  // Runs `kernel` with buffers set up. What rule it breaks; empty: none.
  std::string Broken(const std::function<void(Device&)>& kernel) {
    try {
      Run(launch(), [&] {
        AscendC::TPipe new_pipe;
        pipe = new_pipe;
        in = InputQueue();
        out = OutputQueue();
        pipe.InitBuffer(in, 2, kCount * sizeof(float));
        pipe.InitBuffer(out, 1, kCount * sizeof(float));
        pipe.InitBuffer(a, 4 * kCount * sizeof(float));
        pipe.InitBuffer(b, 4 * kCount * sizeof(float));
        pipe.InitBuffer(mask, kCount);
        source.SetGlobalBuffer(input.data(), kCount);
        sink.SetGlobalBuffer(output.data(), kCount);
        kernel(*this);
      });
    } catch (const Violation& violation) {
      return violation.what();
    }
    return "";
  }

  LocalTensor<float> CopiedIn(uint32_t count = kCount) {
    LocalTensor<float> tensor = in.AllocTensor<float>();
    AscendC::DataCopyPad(tensor, source, {1, static_cast<uint32_t>(count * sizeof(float)), 0, 0, 0},
                         {});
    in.EnQue(tensor);
    return in.DeQue<float>();
  }

  std::vector<float> input;
  std::vector<float> output;
  AscendC::GlobalTensor<float> source;
  AscendC::GlobalTensor<float> sink;
  AscendC::TPipe pipe;
  InputQueue in;
  OutputQueue out;
  FloatBuffer a;
  FloatBuffer b;
  FloatBuffer mask;
};

TEST(AscendcEmulationTest, AKernelThatKeepsTheRulesRuns) {
  Device device;

  EXPECT_EQ(device.Broken([](Device& d) {
    LocalTensor<float> in = d.CopiedIn();
    LocalTensor<float> out = d.out.AllocTensor<float>();
    AscendC::Muls(out, in, 3.0f, kCount);
    d.in.FreeTensor(in);
    d.out.EnQue(out);
    out = d.out.DeQue<float>();
    AscendC::DataCopyPad(d.sink, out, {1, kCount * sizeof(float), 0, 0, 0});
    d.out.FreeTensor(out);
  }),
            "");
  EXPECT_EQ(device.output, std::vector<float>(kCount, 6.0f));
}

struct Rule {
  const char* name;
  const char* message;  // part of what the violation says
  std::function<void(Device&)> kernel;
};

const Rule kRules[] = {
    // Memory.
    {"UnifiedBufferIsLimited", "exceed the unified buffer of 196608",
     [](Device& d) { d.pipe.InitBuffer(d.a, 192 * 1024); }},
    {"EmptyBuffer", "InitBuffer: 0 bytes", [](Device& d) { d.pipe.InitBuffer(d.a, 0); }},
    {"NumberOfBuffersIsLimited", "more than 64 buffers",
     [](Device& d) {
       for (int i = 0; i < 64; ++i) d.pipe.InitBuffer(d.a, 32);
     }},
    {"LocalRange", "bytes 0 to 1040 of a local buffer of 1024",
     [](Device& d) { AscendC::Duplicate(d.a.Get<float>(), 0.0f, 260); }},
    {"LocalAlignment", "not aligned to 32 bytes",
     [](Device& d) { AscendC::Duplicate(d.a.Get<float>()[1], 0.0f, 8); }},
    {"NoMemory", "without memory", [](Device&) { AscendC::Duplicate({}, 0.0f, 8); }},
    {"GetBeforeInitBuffer", "TBuf::Get before InitBuffer",
     [](Device&) { FloatBuffer().Get<float>(); }},
    {"Overlap", "overlap in part",
     [](Device& d) {
       AscendC::Duplicate(d.a.Get<float>(), 0.0f, 128);
       AscendC::PipeBarrier<PIPE_V>();
       AscendC::Adds(d.a.Get<float>()[8], d.a.Get<float>(), 1.0f, 64);
     }},
    {"Count", "count is 0", [](Device& d) { AscendC::Duplicate(d.a.Get<float>(), 0.0f, 0); }},
    // Global memory and copies.
    {"GlobalTensorsEnd", "260 bytes of a global tensor of 256",
     [](Device& d) { d.CopiedIn(kCount + 1); }},
    {"GlobalTensorsOffset", "element 65 of 64", [](Device& d) { d.source[65]; }},
    {"LaunchsMemoryForReading", "may not read",
     [](Device& d) {
       d.source.SetGlobalBuffer(d.input.data(), 2 * kCount);
       d.source = d.source[kCount];
       d.CopiedIn();
     }},
    {"LaunchsMemoryForWriting", "may not write",
     [](Device& d) {
       d.sink.SetGlobalBuffer(d.input.data(), kCount);
       LocalTensor<float> out = d.out.AllocTensor<float>();
       AscendC::DataCopyPad(d.sink, out, {1, 32, 0, 0, 0});
     }},
    {"BlockCount", "blockCount 0",
     [](Device& d) {
       AscendC::DataCopyPad(d.in.AllocTensor<float>(), d.source, {0, 32, 0, 0, 0}, {});
     }},
    {"BlockLength", "blockLen 30",
     [](Device& d) {
       AscendC::DataCopyPad(d.in.AllocTensor<float>(), d.source, {1, 30, 0, 0, 0}, {});
     }},
    {"Padding", "padding is not emulated",
     [](Device& d) {
       AscendC::DataCopyPad(d.in.AllocTensor<float>(), d.source, {1, 4, 0, 0, 0}, {true, 0, 0, 0});
     }},
    {"CopyInGoesToVecin", "not VECIN",
     [](Device& d) {
       AscendC::DataCopyPad(d.a.Get<float>(), d.source, {1, 32, 0, 0, 0}, {});
     }},
    {"CopyOutComesFromVecout", "not VECOUT",
     [](Device& d) {
       AscendC::DataCopyPad(d.sink, d.a.Get<float>(), {1, 32, 0, 0, 0});
     }},
    // Queues.
    {"TooManyAllocated", "all 2 buffers of the queue are in use",
     [](Device& d) {
       for (int i = 0; i < 3; ++i) d.in.AllocTensor<float>();
     }},
    {"Depth", "the queue's depth of 1",
     [](Device& d) {
       for (int i = 0; i < 2; ++i) d.in.EnQue(d.in.AllocTensor<float>());
     }},
    {"DeQueOfNothing", "the queue is empty", [](Device& d) { d.in.DeQue<float>(); }},
    {"EnQueTwice", "not a tensor that the kernel holds",
     [](Device& d) {
       LocalTensor<float> tensor = d.in.AllocTensor<float>();
       d.in.EnQue(tensor);
       d.in.EnQue(tensor);
     }},
    {"FreedTwice", "not a tensor that the kernel holds",
     [](Device& d) {
       LocalTensor<float> tensor = d.CopiedIn();
       d.in.FreeTensor(tensor);
       d.in.FreeTensor(tensor);
     }},
    {"AnotherQueuesTensor", "not a tensor of this queue",
     [](Device& d) {
       LocalTensor<float> tensor = d.in.AllocTensor<float>();
       d.out.FreeTensor(tensor);
     }},
    {"UsedAfterFree", "that was freed",
     [](Device& d) {
       LocalTensor<float> tensor = d.CopiedIn();
       d.in.FreeTensor(tensor);
       AscendC::Adds(d.a.Get<float>(), tensor, 1.0f, kCount);
     }},
    {"UsedWhileQueued", "that is in a queue",
     [](Device& d) {
       LocalTensor<float> tensor = d.in.AllocTensor<float>();
       d.in.EnQue(tensor);
       AscendC::Duplicate(tensor, 1.0f, kCount);
     }},
    {"LeftInAQueue", "ended with a tensor in a queue",
     [](Device& d) { d.in.EnQue(d.in.AllocTensor<float>()); }},
    {"NeverFreed", "ended without freeing a tensor", [](Device& d) { d.CopiedIn(); }},
    // Order between instructions.
    {"VectorAfterVector", "Adds: reads what a vector instruction wrote",
     [](Device& d) {
       AscendC::Duplicate(d.a.Get<float>(), 0.0f, kCount);
       AscendC::Adds(d.b.Get<float>(), d.a.Get<float>(), 1.0f, kCount);
     }},
    {"OverwrittenWhileRead", "Duplicate: overwrites what a vector instruction uses",
     [](Device& d) {
       AscendC::Adds(d.b.Get<float>(), d.a.Get<float>(), 1.0f, kCount);
       AscendC::Duplicate(d.a.Get<float>(), 0.0f, kCount);
     }},
    {"ScalarAfterVector", "without the event V_S",
     [](Device& d) {
       AscendC::Duplicate(d.a.Get<float>(), 0.0f, kCount);
       AscendC::PipeBarrier<PIPE_V>();
       d.a.Get<float>().GetValue(0);
     }},
    {"VectorAfterScalar", "without the event S_V",
     [](Device& d) {
       d.a.Get<float>().GetValue(0);
       AscendC::Duplicate(d.a.Get<float>(), 0.0f, kCount);
     }},
    {"VectorAfterCopyIn", "reads what was copied in",
     [](Device& d) {
       LocalTensor<float> tensor = d.in.AllocTensor<float>();
       AscendC::DataCopyPad(tensor, d.source, {1, 32, 0, 0, 0}, {});
       AscendC::Adds(d.a.Get<float>(), tensor, 1.0f, 8);
     }},
    {"CopyOutAfterVector", "without EnQue and DeQue between",
     [](Device& d) {
       LocalTensor<float> tensor = d.out.AllocTensor<float>();
       AscendC::Duplicate(tensor, 1.0f, kCount);
       AscendC::DataCopyPad(d.sink, tensor, {1, 32, 0, 0, 0});
     }},
    {"FlagSetTwice", "set already",
     [](Device&) {
       AscendC::SetFlag<AscendC::HardEvent::V_S>(0);
       AscendC::SetFlag<AscendC::HardEvent::V_S>(0);
     }},
    {"FlagNumber", "not one of 0 to 7",
     [](Device&) { AscendC::SetFlag<AscendC::HardEvent::V_S>(8); }},
    {"FlagNeverSet", "nobody has set",
     [](Device&) {
       AscendC::SetFlag<AscendC::HardEvent::V_S>(0);
       AscendC::WaitFlag<AscendC::HardEvent::S_V>(0);
     }},
    {"FlagNeverAwaited", "nobody awaited",
     [](Device&) { AscendC::SetFlag<AscendC::HardEvent::V_S>(0); }},
    // Limits of single instructions.
    {"CompareScalarWantsWholeRepeats", "multiple of 256 bytes",
     [](Device& d) {
       AscendC::CompareScalar(d.mask.Get<uint8_t>(), d.a.Get<float>(), 0.0f, AscendC::CMPMODE::NE,
                              63);
     }},
    {"SelectKeepsPartOfTheUnifiedBuffer", "leave less than the 8 KiB",
     [](Device& d) {
       d.pipe.InitBuffer(d.b, 186 * 1024);
       AscendC::Select(d.a.Get<float>(), d.mask.Get<uint8_t>(), d.a.Get<float>(), 0.0f,
                       AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, 64);
     }},
    {"WholeReduceSumsMask", "mask 65",
     [](Device& d) {
       AscendC::WholeReduceSum(d.a.Get<float>(), d.b.Get<float>(), 65, 1, 1, 1, 8);
     }},
    {"WholeReduceSumsRepeats", "repeatTime 256",
     [](Device& d) {
       AscendC::WholeReduceSum(d.a.Get<float>(), d.b.Get<float>(), 64, 256, 1, 1, 8);
     }},
    {"WholeReduceSumsStrides", "strides other than 1",
     [](Device& d) {
       AscendC::WholeReduceSum(d.a.Get<float>(), d.b.Get<float>(), 64, 1, 2, 1, 8);
     }},
    {"WideningIsNotRounded", "CAST_NONE only",
     [](Device& d) {
       AscendC::Cast(d.a.Get<float>(), d.b.Get<half>(), AscendC::RoundMode::CAST_RINT, 16);
     }},
    {"NarrowingIsRounded", "CAST_RINT only",
     [](Device& d) {
       AscendC::Cast(d.a.Get<half>(), d.b.Get<float>(), AscendC::RoundMode::CAST_NONE, 16);
     }},
};

class AscendcRuleTest : public testing::TestWithParam<Rule> {};

TEST_P(AscendcRuleTest, IsEnforced) {
  EXPECT_THAT(Device().Broken(GetParam().kernel), testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Rules, AscendcRuleTest, testing::ValuesIn(kRules),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(AscendcEmulationTest, NothingRunsOutsideOfALaunch) {
  EXPECT_THROW(AscendC::GetBlockIdx(), Violation);
}

TEST(AscendcEmulationTest, LocalMemoryStartsAsNans) {
  Device device;

  EXPECT_EQ(device.Broken([](Device& d) {
    EXPECT_TRUE(std::isnan(d.a.Get<float>().GetValue(3)));
    EXPECT_TRUE(std::isnan(Widen(d.a.Get<half>().GetValue(3))));
    EXPECT_TRUE(std::isnan(Widen(d.a.Get<bfloat16_t>().GetValue(3))));
  }),
            "");
}

TEST(AscendcEmulationTest, CopiesLeaveGapsOnBothSides) {
  Device device;
  for (int i = 0; i < kCount; ++i) device.input[i] = static_cast<float>(i);

  // Three blocks of two floats: in global memory 8 bytes apart, in local memory a unit of 32 bytes
  // between.
  EXPECT_EQ(device.Broken([](Device& d) {
    LocalTensor<float> in = d.in.AllocTensor<float>();
    AscendC::DataCopyPad(in, d.source, {3, 8, 8, 1, 0}, {});
    d.in.EnQue(in);
    in = d.in.DeQue<float>();
    for (int block = 0; block < 3; ++block) {
      EXPECT_EQ(in.GetValue(16 * block), 4.0f * block);
      EXPECT_EQ(in.GetValue(16 * block + 1), 4.0f * block + 1);
      EXPECT_TRUE(std::isnan(in.GetValue(16 * block + 2)));
    }
    d.in.FreeTensor(in);
  }),
            "");
}

TEST(AscendcEmulationTest, MasksHaveTheirFirstElementInTheLowestBit) {
  Device device;
  device.input[1] = 0.0f;
  device.input[9] = -0.0f;
  device.input[10] = NAN;

  EXPECT_EQ(device.Broken([](Device& d) {
    LocalTensor<float> in = d.CopiedIn();
    LocalTensor<uint8_t> mask = d.mask.Get<uint8_t>();
    AscendC::CompareScalar(mask, in, 0.0f, AscendC::CMPMODE::NE, kCount);
    AscendC::PipeBarrier<PIPE_V>();
    AscendC::Select(d.a.Get<float>(), mask, in, 7.0f, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE,
                    kCount);
    AscendC::SetFlag<AscendC::HardEvent::V_S>(0);
    AscendC::WaitFlag<AscendC::HardEvent::V_S>(0);
    EXPECT_EQ(mask.GetValue(0), 0xFD);
    EXPECT_EQ(mask.GetValue(1), 0xFD);
    EXPECT_EQ(d.a.Get<float>().GetValue(0), 2.0f);
    EXPECT_EQ(d.a.Get<float>().GetValue(1), 7.0f);
    EXPECT_EQ(d.a.Get<float>().GetValue(9), 7.0f);
    EXPECT_TRUE(std::isnan(d.a.Get<float>().GetValue(10)));
    d.in.FreeTensor(in);
  }),
            "");
}

TEST(AscendcEmulationTest, WholeReduceSumAddsEachRepeatsFirstElements) {
  Device device;
  for (int i = 0; i < kCount; ++i) device.input[i] = static_cast<float>(i);

  EXPECT_EQ(device.Broken([](Device& d) {
    LocalTensor<float> in = d.CopiedIn();
    AscendC::WholeReduceSum(d.a.Get<float>(), in, /*mask=*/5, /*repeats=*/3, 1, 1,
                            /*repeat_stride=*/2);
    AscendC::SetFlag<AscendC::HardEvent::V_S>(0);
    AscendC::WaitFlag<AscendC::HardEvent::V_S>(0);
    for (int repeat = 0; repeat < 3; ++repeat) {
      EXPECT_EQ(d.a.Get<float>().GetValue(repeat), 10.0f + 5 * 16 * repeat);
    }
    d.in.FreeTensor(in);
  }),
            "");
}

struct Narrowed {
  float value;
  uint16_t half_bits;
  uint16_t bfloat16_bits;
};

TEST(AscendcEmulationTest, NarrowingIsToNearestWithTiesToEven) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Narrowed cases[] = {
      {0.0f, 0, 0},
      {-0.0f, 0x8000, 0x8000},
      {1.0f, 0x3C00, 0x3F80},
      {1.0f + 0x1p-11f, 0x3C00, 0x3F80},      // a tie for half
      {1.0f + 3 * 0x1p-11f, 0x3C02, 0x3F80},  // the next one
      {1.0f + 0x1p-8f, 0x3C04, 0x3F80},       // a tie for bfloat16
      {1.0f + 3 * 0x1p-8f, 0x3C0C, 0x3F82},
      {2047.9f, 0x6800, 0x4500},   // up into the next exponent
      {65519.0f, 0x7BFF, 0x4780},  // the largest half
      {65520.0f, 0x7C00, 0x4780},  // beyond
      {0x1p-24f, 0x0001, 0x3380},  // the smallest half
      {0x1p-25f, 0x0000, 0x3300},  // a tie with 0
      {-3 * 0x1p-25f, 0x8002, 0xB3C0},
      {3.4e38f, 0x7C00, 0x7F80},
      {-infinity, 0xFC00, 0xFF80},
  };
  for (const Narrowed& c : cases) {
    half h;
    bfloat16_t b;
    Narrow(c.value, &h);
    Narrow(c.value, &b);
    EXPECT_EQ(h.bits, c.half_bits) << c.value;
    EXPECT_EQ(b.bits, c.bfloat16_bits) << c.value;
  }
}

TEST(AscendcEmulationTest, EveryHalfComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const half value = {static_cast<uint16_t>(bits)};
    half back;
    Narrow(Widen(value), &back);
    if (std::isnan(Widen(value))) {
      EXPECT_TRUE(std::isnan(Widen(back)));
    } else {
      EXPECT_EQ(back.bits, value.bits);
    }
  }
}

}  // namespace
}  // namespace opserve::ascendc::emulation
