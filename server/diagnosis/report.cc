#include "server/diagnosis/report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace opserve::server {
namespace {

constexpr int kSubjectWidth = 30;

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kNote:
      return "note";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kProblem:
      return "PROBLEM";
  }
  return "";
}

void Write(std::FILE* out, absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), out);
  // At once, so that the findings before a step that never ends can be read.
  std::fflush(out);
}

}  // namespace

void Report::Begin(absl::string_view title) {
  absl::MutexLock lock(&mutex_);
  section_ = std::string(title);
  if (format_ != Format::kJson) Write(out_, absl::StrCat("\n", title, "\n"));
}

void Report::Add(Verdict verdict, absl::string_view subject, absl::string_view text,
                 absl::string_view advice) {
  absl::MutexLock lock(&mutex_);
  // JSON is written at the end, as one document.
  Keep(verdict, subject, text, advice, /*has_line=*/format_ != Format::kJson);
}

void Report::AddOneOfMany(Verdict verdict, absl::string_view subject, absl::string_view text,
                          absl::string_view advice) {
  absl::MutexLock lock(&mutex_);
  // There may be hundreds of them. In the short format those that are well have no line.
  const bool is_left_out = format_ == Format::kText && verdict == Verdict::kOk;
  Keep(verdict, subject, text, advice, /*has_line=*/format_ != Format::kJson && !is_left_out);
}

void Report::Keep(Verdict verdict, absl::string_view subject, absl::string_view text,
                  absl::string_view advice, bool has_line) {
  findings_.push_back(
      // Kept in every format, for the summary.
      {section_, verdict, std::string(subject), std::string(text), std::string(advice)});
  if (!has_line) return;
  Write(out_,
        absl::StrFormat("  %-8s %-*s %s\n", VerdictName(verdict), kSubjectWidth, subject, text));
  if (!advice.empty()) {
    Write(out_, absl::StrFormat("  %-8s %-*s -> %s\n", "", kSubjectWidth, "", advice));
  }
}

void Report::AddResult(const absl::Status& status, absl::string_view subject,
                       absl::string_view text, absl::string_view advice) {
  if (status.ok()) {
    Add(Verdict::kOk, subject, text);
  } else {
    Add(Verdict::kProblem, subject, status.message(), advice);
  }
}

void Report::SetStep(absl::string_view step) {
  absl::MutexLock lock(&mutex_);
  step_ = std::string(step);
}

std::string Report::step() const {
  absl::MutexLock lock(&mutex_);
  return step_;
}

bool Report::Finish() {
  absl::MutexLock lock(&mutex_);
  int problems = 0;
  int warnings = 0;
  for (const Finding& finding : findings_) {
    problems += finding.verdict == Verdict::kProblem;
    warnings += finding.verdict == Verdict::kWarning;
  }
  if (format_ == Format::kJson) {
    WriteJson(problems);
  } else {
    WriteSummary(problems, warnings);
  }
  return problems == 0;
}

void Report::WriteSummary(int problems, int warnings) {
  if (problems == 0) {
    Write(out_, absl::StrCat("\nHealthy", warnings == 0 ? "" : ", with warnings: ",
                             warnings == 0 ? "" : absl::StrCat(warnings), ".\n"));
    return;
  }
  Write(out_,
        absl::StrCat("\nNot healthy. ", problems, problems == 1 ? " problem" : " problems", ":\n"));
  // Once more, as they may be far above.
  for (const Finding& finding : findings_) {
    if (finding.verdict != Verdict::kProblem) continue;
    Write(out_,
          absl::StrCat("  ", finding.section, ", ", finding.subject, ": ", finding.text, "\n"));
  }
}

void Report::WriteJson(int problems) {
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding& finding : findings_) {
    nlohmann::json entry = {{"section", finding.section},
                            {"verdict", absl::AsciiStrToLower(VerdictName(finding.verdict))},
                            {"subject", finding.subject},
                            {"text", finding.text}};
    if (!finding.advice.empty()) entry["advice"] = finding.advice;
    findings.push_back(std::move(entry));
  }
  const nlohmann::json document = {{"healthy", problems == 0}, {"findings", findings}};
  // A driver's text may be of any bytes.
  Write(out_, document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace opserve::server
