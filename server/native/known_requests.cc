#include "server/native/known_requests.h"

#include <utility>

#include "server/execution/plan_cache.h"
#include "server/native/native_request.h"
#include "server/native/result_message.h"

namespace opserve::server {

std::shared_ptr<const Program> KnownRequests::Keep(absl::string_view header,
                                                   const v1::ExecuteRequest& message,
                                                   const ProgramCall& bound) {
  auto known = std::make_shared<Known>();
  known->message = message;
  known->request = TranslateRequest(known->message);
  if (!programs_.MayKeep(header, known->request, bound)) return bound.program;
  known->header = std::string(header);
  // Its next requests find their plans without making keys. A prepared program has plans.
  known->program = message.has_prepared() ? bound.program : WithPlans(*bound.program);
  known->answer = AnswerOf(*known->program);
  known->answer_bytes = known->answer.SerializeAsString();
  programs_.Keep(known);
  return known->program;
}

}  // namespace opserve::server
