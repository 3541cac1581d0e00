// Makes the order of gRPC's completion queues visible to ThreadSanitizer.
//
// The packaged gRPC was not built with it and hands an operation's end to the thread that polls by
// atomics, so the sanitizer would now and then report what one thread wrote before it began an
// operation and the other reads after its end. Programs of a ThreadSanitizer build define the two
// functions anew: these call the library's and tell the sanitizer, per tag.

#include <dlfcn.h>
#include <grpc/grpc.h>

extern "C" {

void __tsan_acquire(void* address);
void __tsan_release(void* address);

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t nops, void* tag,
                                      void* reserved) {
  static auto* const real =
      reinterpret_cast<decltype(&grpc_call_start_batch)>(dlsym(RTLD_NEXT, "grpc_call_start_batch"));
  // Before the operation begins: from then on it can end.
  if (tag != nullptr) __tsan_release(tag);
  return real(call, ops, nops, tag, reserved);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static auto* const real = reinterpret_cast<decltype(&grpc_completion_queue_next)>(
      dlsym(RTLD_NEXT, "grpc_completion_queue_next"));
  const grpc_event event = real(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE && event.tag != nullptr) __tsan_acquire(event.tag);
  return event;
}

}  // extern "C"
