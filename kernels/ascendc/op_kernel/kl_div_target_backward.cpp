// The kernel's entry, compiled once for each combination of dtypes in op_host/definition.cc: the
// vendor's build defines DTYPE_GRAD_OUTPUT, DTYPE_SELF and DTYPE_TARGET. The file has the name that
// build looks for.
#include "kl_div_target_backward.h"

// `tiling`: a KlDivTargetBackwardTiling in global memory. `workspace` is not used.
extern "C" __global__ __aicore__ void kl_div_target_backward(GM_ADDR grad_output, GM_ADDR self,
                                                             GM_ADDR target, GM_ADDR grad_target,
                                                             GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  REGISTER_TILING_DEFAULT(KlDivTargetBackwardTiling);
  GET_TILING_DATA_WITH_STRUCT(KlDivTargetBackwardTiling, tiling_data, tiling);
  (void)workspace;
  AscendC::TPipe pipe;
  opserve::ascendc::KlDivTargetBackward<DTYPE_GRAD_OUTPUT, DTYPE_SELF, DTYPE_TARGET> kernel;
  kernel.Init(grad_output, self, target, grad_target, &tiling_data, &pipe);
  kernel.Process();
}
