// Trains until it is killed, with the job that the command line says, and prints a line for each
// step: its number and the bits of its loss. A line "wrong TEXT" is an error.
//
// usage: training_client TARGET TENANT DONATES SEED
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/numeric/bits.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/fault/training.h"

namespace opserve {
namespace {

// In one piece, so that a killed process leaves whole lines.
void Print(std::string line) {
  line += "\n";
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::abort();
}

[[noreturn]] void Train(const std::string& target, const Job& job, uint32_t seed) {
  Training training(
      target, job, seed,
      {.loss = [](int step,
                  float loss) { Print(absl::StrCat(step, " ", absl::bit_cast<uint32_t>(loss))); },
       .wrong = [](const std::string& what) { Print("wrong " + what); }});
  for (;;) {
    const absl::Status status = training.GoOnSomehow();
    if (!IsDocumented(status)) Print(absl::StrCat("wrong ", status.ToString()));
  }
}

}  // namespace
}  // namespace opserve

int main(int argc, char** argv) {
  uint32_t seed = 0;
  if (argc != 5 || !absl::SimpleAtoi(argv[4], &seed)) {
    opserve::Print("wrong usage: training_client TARGET TENANT DONATES SEED");
    return 2;
  }
  opserve::Train(argv[1],
                 {.tenant = argv[2], .shape = {}, .donates = std::strcmp(argv[3], "true") == 0},
                 seed);
}
