// A program that calls without a pause, as one does that cares for its results: with a long
// connection, the client's own repetitions and its default timeout. Which calls still fail, and
// were any slow?
//
// usage: steady_calls TARGET THREADS
//
// Each thread calls until standard input ends; what is in flight then is awaited. Prints a line of
// JSON for each line it reads, and one at the end: calls that were answered, those that failed or
// were answered wrongly with the last error, and the seconds that the longest took.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/client.h"
#include "nlohmann/json.hpp"
#include "tests/integration/requests.h"

namespace opserve {
namespace {

constexpr int64_t kCount = 256;

class Tally {
 public:
  void Add(const absl::Status& status, absl::Duration took) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    status.ok() ? ++answered_ : ++failed_;
    if (!status.ok()) error_ = status.ToString();
    longest_ = std::max(longest_, took);
  }

  std::string Json() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return nlohmann::json{{"answered", answered_},
                          {"failed", failed_},
                          {"error", error_},
                          {"longest", absl::ToDoubleSeconds(longest_)}}
        .dump();
  }

 private:
  absl::Mutex mutex_;
  int64_t answered_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string error_ ABSL_GUARDED_BY(mutex_);
  absl::Duration longest_ ABSL_GUARDED_BY(mutex_);
};

void CallUntil(const std::atomic<bool>& is_over, Client& client, Tally* tally) {
  const Request request = server::OnesRequest(kCount);
  while (!is_over) {
    const absl::Time start = absl::Now();
    const auto response = client.Execute(request);
    const bool is_wrong = response.ok() && !server::IsAllOnes(response, kCount);
    tally->Add(is_wrong ? absl::DataLossError("a wrong result") : response.status(),
               absl::Now() - start);
  }
}

int Run(const std::string& target, int num_threads) {
  const auto client = Client::Connect(target);
  if (!client.ok()) {
    std::cerr << client.status() << "\n";
    return 1;
  }
  Tally tally;
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < num_threads; ++i) {
    threads.emplace_back([&] { CallUntil(is_over, **client, &tally); });
  }
  for (std::string line; std::getline(std::cin, line);) std::cout << tally.Json() << std::endl;
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  std::cout << tally.Json() << std::endl;
  return 0;
}

}  // namespace
}  // namespace opserve

int main(int argc, char** argv) {
  if (argc == 3) return opserve::Run(argv[1], std::atoi(argv[2]));
  std::cerr << "usage: steady_calls TARGET THREADS\n";
  return 2;
}
