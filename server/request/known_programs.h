// Programs that requests brought, kept for requests that bring the same again.
//
// Clients send the same few requests over and over, with other elements. What a daemon finds out
// about a request without them depends only on its header and the sizes of its payloads: equal ones
// need not be parsed, checked and bound again.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/codec/payloads.h"
#include "server/program/program.h"

namespace opserve::server {

// Of all polling threads and protocols together. Thread-safe.
struct KnownRequestCounters {
  std::atomic<uint64_t> hits = 0;
  std::atomic<uint64_t> misses = 0;  // of requests that may be kept
  std::atomic<int64_t> programs = 0;
};

// A protocol's memory of a request. Its own types follow in a derived one.
struct KnownProgram {
  std::string header;  // of its messages, as the protocol compares them
  std::shared_ptr<const Program> program;
};

// A polling thread has one for each protocol; nothing in it is a tenant's. Used by one thread.
template <typename Known>  // derived from KnownProgram
class KnownPrograms {
 public:
  explicit KnownPrograms(KnownRequestCounters& counters) : counters_(counters) {}
  ~KnownPrograms() {
    counters_.programs.fetch_sub(static_cast<int64_t>(known_.size()), std::memory_order_relaxed);
  }
  KnownPrograms(const KnownPrograms&) = delete;
  KnownPrograms& operator=(const KnownPrograms&) = delete;

  // Requests with longer headers are never kept.
  static constexpr size_t kMostHeaderBytes = 2048;

  // That of an equal message. Null: there is none.
  std::shared_ptr<const Known> Find(absl::string_view header,
                                    absl::Span<const codec::Payload> payloads) {
    const auto found =
        std::find_if(known_.begin(), known_.end(), [&](const std::shared_ptr<const Known>& known) {
          return known->header == header && HasSizes(*known->program, payloads);
        });
    if (found == known_.end()) return nullptr;
    counters_.hits.fetch_add(1, std::memory_order_relaxed);
    // To the front: the programs at the end make room.
    std::rotate(known_.begin(), found, found + 1);
    return known_.front();
  }

  // Whether nothing but its header and its payloads' sizes decides about a request's program: no
  // resident tensor, shared memory, or key by which it is repeated. Large ones are not kept either.
  static bool MayKeep(absl::string_view header, bool is_repeatable, const ProgramCall& bound) {
    return header.size() <= kMostHeaderBytes && !is_repeatable &&
           bound.program->invocations.size() <= kMostInvocations &&
           bound.program->literals.size() <= kMostHeaderBytes && bound.residents.empty() &&
           bound.kept.empty() && bound.windows.empty();
  }

  // Keeps one that Find did not find. The one that was used least recently makes room.
  void Keep(std::shared_ptr<const Known> known) {
    counters_.misses.fetch_add(1, std::memory_order_relaxed);
    if (known_.size() == kMostPrograms) {
      known_.pop_back();
    } else {
      counters_.programs.fetch_add(1, std::memory_order_relaxed);
    }
    known_.insert(known_.begin(), std::move(known));
  }

 private:
  // A thread looks at all of them for a request that it does not know, which must be cheap beside
  // binding it. With these limits they take at most about 1 MiB.
  static constexpr size_t kMostPrograms = 32;
  static constexpr size_t kMostInvocations = 16;

  static bool HasSizes(const Program& program, absl::Span<const codec::Payload> payloads) {
    return std::equal(
        payloads.begin(), payloads.end(), program.payload_sizes.begin(),
        program.payload_sizes.end(),
        [](const codec::Payload& payload, uint64_t size) { return payload.size == size; });
  }

  std::vector<std::shared_ptr<const Known>> known_;  // most recently used first
  KnownRequestCounters& counters_;
};

}  // namespace opserve::server
