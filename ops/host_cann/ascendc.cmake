# Build files for CANN include this, also those of programs without kernels: they need no more than that it is here.

function(ascendc_library target)
  message(FATAL_ERROR "${target}: the host CANN has no compiler for kernels in Ascend C")
endfunction()
