// Seeds of tests that draw random numbers.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace opserve {

// OPSERVE_TEST_SEED if it is set, else `usual`. Prints it, so that a failure, even a crash, can be
// seen again.
inline uint32_t TestSeed(uint32_t usual) {
  const char* wanted = std::getenv("OPSERVE_TEST_SEED");
  const uint32_t seed =
      wanted == nullptr ? usual : static_cast<uint32_t>(std::strtoul(wanted, nullptr, 10));
  std::printf("OPSERVE_TEST_SEED=%u\n", static_cast<unsigned>(seed));
  std::fflush(stdout);
  return seed;
}

// Another one in each run.
inline uint32_t TestSeed() { return TestSeed(static_cast<uint32_t>(std::random_device{}())); }

}  // namespace opserve
