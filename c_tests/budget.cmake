# What calls may cost besides time: system calls, allocations, threads, page faults, memory.
# `ctest -R budget` runs these alone.
function(budget_program program)
  add_executable(budget_${program} src/budget/${program}.c ${ARGN})
  target_link_libraries(budget_${program} PRIVATE harness ${CMAKE_DL_LIBS})
  # The functions that count stand before libc's for the library, too.
  set_target_properties(budget_${program} PROPERTIES ENABLE_EXPORTS TRUE)
endfunction()

budget_program(steps src/budget/counts.c)
foreach(size 2 3 4)
  ring_test(budget_steps_n${size} budget_steps 120 ${size})
  set_tests_properties(budget_steps_n${size} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
# The same as the kernel sees it.
foreach(size 2 3)
  ring_test(budget_traced_n${size} sh 240 "${CMAKE_CURRENT_SOURCE_DIR}/traced.sh" $<TARGET_FILE:budget_steps>
    ${size} 400)
  set_tests_properties(budget_traced_n${size} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()

budget_program(upkeep src/budget/counts.c)
foreach(size 2 3 4)
  foreach(connections 1 3)
    ring_test(budget_upkeep_n${size}_c${connections} budget_upkeep 120 ${size} ${connections})
    set_tests_properties(budget_upkeep_n${size}_c${connections} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
endforeach()

budget_program(footprint)
foreach(size 2 4)
  ring_test(budget_footprint_n${size} budget_footprint 120 ${size})
  set_tests_properties(budget_footprint_n${size} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
