# Ways into a ring beside a hostfile: the rendezvous, and launchers that say rank, size and where to meet.
foreach(program rendezvous rendezvous_faults)
  add_executable(${program} src/${program}.c)
  target_link_libraries(${program} PRIVATE harness)
endforeach()
foreach(size RANGE 1 8)
  ring_test(rendezvous_n${size} rendezvous 60 ${size})
endforeach()
foreach(part ways again strangers)
  ring_test(rendezvous_${part} rendezvous 120 ${part})
endforeach()
foreach(part absences claims secrets two_jobs)
  ring_test(rendezvous_${part} rendezvous_faults 120 ${part})
  set_tests_properties(rendezvous_${part} PROPERTIES LABELS faults)
endforeach()
# No leak where ranks meet or can't.
add_test(NAME valgrind_rendezvous COMMAND sh "${CMAKE_CURRENT_SOURCE_DIR}/valgrind.sh" $<TARGET_FILE:rendezvous> 3)
add_test(NAME valgrind_rendezvous_secrets COMMAND sh "${CMAKE_CURRENT_SOURCE_DIR}/valgrind.sh"
  $<TARGET_FILE:rendezvous_faults> secrets)
set_tests_properties(valgrind_rendezvous valgrind_rendezvous_secrets PROPERTIES TIMEOUT 300 LABELS valgrind SKIP_RETURN_CODE 77)

# README's program, unchanged, by each launcher.
add_executable(smallest "${RING_ROOT}/examples/c/all_reduce.c")
target_link_libraries(smallest PRIVATE ring)
add_executable(with_ports src/with_ports.c)
target_link_libraries(with_ports PRIVATE harness)
foreach(launcher mpirun mlx.launch torchrun srun hydra)
  ring_test(launcher_${launcher} with_ports 120 8 sh "${CMAKE_CURRENT_SOURCE_DIR}/launchers.sh" ${launcher}
    "$<TARGET_FILE:smallest>" "${RING_ROOT}")
  set_tests_properties(launcher_${launcher} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
