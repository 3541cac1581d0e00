# The host CANN's descriptors, executors and stage ones.
opserve_test(NAME host_cann_stages_test LABEL unit
  SOURCES attributes_test.cc executor_test.cc stage_one_test.cc tensor_test.cc
  LINK opapi cust_opapi nnopbase ascendcl)
