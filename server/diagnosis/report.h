// The findings of a self-test, printed at once: text for people, or one JSON document.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "nlohmann/json.hpp"

namespace opserve::server {

enum class Verdict {
  kOk,
  kNote,     // worth knowing
  kWarning,  // it serves, but not as well as it could
  kProblem,  // it does not serve, or serves wrong results
};

// Thread-safe.
class Report {
 public:
  // kText leaves the good ones of many alike out, see AddOneOfMany; the others have all findings.
  enum class Format { kText, kVerboseText, kJson };
  // Text is written to `out` as it comes, JSON by Finish.
  Report(Format format, std::FILE* out) : format_(format), out_(out) {}
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  // Begins the findings about `title` ("device 0").
  void Begin(absl::string_view title) ABSL_LOCKS_EXCLUDED(mutex_);

  // `subject`: the thing examined ("memory"); `text`: the finding; `advice`: the remedy, a
  // sentence, or "".
  void Add(Verdict verdict, absl::string_view subject, absl::string_view text,
           absl::string_view advice = "") ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for one of many subjects alike, such as operators: kText has no line for it if it is
  // kOk. Follow the last with an Add that says how many there were.
  void AddOneOfMany(Verdict verdict, absl::string_view subject, absl::string_view text,
                    absl::string_view advice = "") ABSL_LOCKS_EXCLUDED(mutex_);
  // kOk with `text`, or kProblem with the error's message.
  void AddResult(const absl::Status& status, absl::string_view subject, absl::string_view text,
                 absl::string_view advice) ABSL_LOCKS_EXCLUDED(mutex_);

  // Names the step under way, in case it never ends ("golden value of KlDivBackward").
  void SetStep(absl::string_view step) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string step() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes the summary, all problems in one place; whether there were none.
  bool Finish() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Finding {
    std::string section;
    Verdict verdict;
    std::string subject;
    std::string text;
    std::string advice;
  };
  void Keep(Verdict verdict, absl::string_view subject, absl::string_view text,
            absl::string_view advice, bool has_line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteSummary(int problems, int warnings) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteJson(int problems) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Format format_;
  std::FILE* const out_;
  mutable absl::Mutex mutex_;
  std::string section_ ABSL_GUARDED_BY(mutex_);
  std::string step_ ABSL_GUARDED_BY(mutex_);
  std::vector<Finding> findings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
