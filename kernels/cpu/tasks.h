// Running a loop's iterations as tasks.
#pragma once

#include <cstdint>

#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

// Calls body(i) once for every i in [0, num_tasks) through `runner`; a single one right here, as
// handing it to a thread would take longer than most.
template <typename Body>
void RunTasks(TaskRunner& runner, int64_t num_tasks, const Body& body) {
  if (num_tasks == 1) {
    body(0);
  } else if (num_tasks > 1) {
    runner.Run(
        num_tasks,
        [](void* context, int64_t index) { (*static_cast<const Body*>(context))(index); },
        const_cast<Body*>(&body));
  }
}

}  // namespace opserve::kernels
