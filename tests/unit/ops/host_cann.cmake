# The host CANN's descriptors, executors and stage ones.
opserve_test(NAME host_cann_descriptors_test LABEL unit
  SOURCES tensor_test.cc attributes_test.cc
  LINK nnopbase ascendcl)
opserve_test(NAME host_cann_executor_test LABEL unit
  SOURCES executor_test.cc
  LINK opapi nnopbase ascendcl)
opserve_test(NAME host_cann_stage_one_test LABEL unit
  SOURCES stage_one_test.cc
  LINK opapi cust_opapi nnopbase ascendcl)
