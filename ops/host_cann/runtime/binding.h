// Resolves the arguments of the ABI's functions: the calling thread's context, and handles.
#pragma once

#include <memory>

#include "acl/acl.h"
#include "ops/host_cann/runtime/runtime.h"

namespace opserve::host_cann {

// Binds the calling thread.
void BindContext(std::shared_ptr<Context> context);

// The context this thread is bound to. 107002: none.
aclError CurrentContext(std::shared_ptr<Context>* context);
// The same for work on its device. The device's code: lost. 107022: being aborted.
aclError UsableContext(std::shared_ptr<Context>* context);

// The stream of a handle (null: the default stream), to queue work on or wait for. 107017: no such
// stream. 107003: of another context. Otherwise as UsableContext.
aclError UsableStream(aclrtStream handle, std::shared_ptr<Stream>* stream);
// The same to wait for a stream or to ask for its state, from any context.
aclError UsableStreamOfAnyContext(aclrtStream handle, std::shared_ptr<Stream>* stream);
// The same for questions that a lost device can answer too.
aclError FindStream(aclrtStream handle, std::shared_ptr<Stream>* stream);

// 107017: no such event.
aclError FindEvent(aclrtEvent handle, std::shared_ptr<Event>* event);

// 107001: no such device.
aclError FindDevice(int64_t id, Device** device);
// The same for questions that only a device that is not lost can answer; its code otherwise.
aclError FindHealthyDevice(int64_t id, Device** device);

// 107000: 0 or below -1.
aclError CheckTimeoutMs(int32_t timeout);

}  // namespace opserve::host_cann
