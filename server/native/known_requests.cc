#include "server/native/known_requests.h"

#include <utility>

#include "server/native/native_request.h"
#include "server/native/result_message.h"
#include "server/run/plan_cache.h"

namespace opserve::server {

std::shared_ptr<const Program> KnownRequests::Keep(absl::string_view header,
                                                   const v1::ExecuteRequest& message,
                                                   const ProgramCall& bound) {
  const bool is_repeatable = !message.idempotency_key().empty() || message.has_identity();
  if (!programs_.MayKeep(header, is_repeatable, bound)) return bound.program;
  auto known = std::make_shared<Known>();
  known->header = std::string(header);
  known->message = message;
  known->request = TranslateRequest(known->message);
  // Its next requests find their plans without making keys. A prepared program has plans.
  known->program = message.has_prepared() ? bound.program : WithPlans(*bound.program);
  known->answer = AnswerOf(*known->program);
  known->answer_bytes = known->answer.SerializeAsString();
  programs_.Keep(known);
  return known->program;
}

}  // namespace opserve::server
