# What happens when ranks, hosts and callers fail: each program has one subject. Their times are
# promises, so that most want the machine for themselves. `ctest -L faults` runs them alone.

add_library(faults STATIC src/faults/witness.c src/faults/work.c)
target_link_libraries(faults PUBLIC harness)

# A program of src/faults.
function(faults_program program)
  add_executable(faults_${program} src/faults/${program}.c)
  target_link_libraries(faults_${program} PRIVATE faults)
endfunction()

# A test: NAME PROGRAM SECONDS [arguments...], alone on the machine.
function(faults_test name program seconds)
  ring_test(faults_${name} faults_${program} ${seconds} ${ARGN})
  set_tests_properties(faults_${name} PROPERTIES LABELS faults RUN_SERIAL TRUE)
endfunction()

faults_program(kill)
foreach(size 2 3 4 5 8)
  foreach(work all_reduce all_gather barrier message idle)
    faults_test(kill_${work}_n${size} kill 120 ${work} ${size})
  endforeach()
endforeach()

# The other collectives, in fewer rings.
set(other_works reduce_scatter broadcast reduce gather scatter all_to_all all_gather_v reduce_scatter_v all_to_all_v
    all_reduce_custom reduce_scatter_v_custom)
foreach(work ${other_works})
  foreach(size 3 4)
    faults_test(kill_${work}_n${size} kill 120 ${work} ${size})
  endforeach()
endforeach()

faults_program(stop)
foreach(size 3 4 5 8)
  foreach(moment before during)
    faults_test(stop_${moment}_n${size} stop 60 ${moment} ${size} 2000 all_reduce)
  endforeach()
  faults_test(stop_message_n${size} stop 60 during ${size} 2000 message)
endforeach()
faults_test(stop_5_s stop 60 before 4 5000 all_reduce)
faults_test(stop_moves_n4 stop 60 during 4 2000 broadcast gather scatter all_to_all)
faults_test(stop_reductions_n4 stop 60 during 4 2000 reduce_scatter reduce reduce_scatter_v all_reduce_custom)
faults_test(stop_listed_n3 stop 60 during 3 2000 all_gather_v all_to_all_v reduce_scatter_v_custom)

foreach(program absent waiting patience destroyed gone interrupted descriptors
        crossed beside slow_log split)
  faults_program(${program})
  faults_test(${program} ${program} 120)
endforeach()

# Faults that other programs have among their cases, and that promise no times.
set_tests_properties(mismatch_n2 mismatch_n3 mismatch_n4 mismatch_n8 forming rivals late secret configuration
  destroy fork numbers far_n4 far_n5 far_n8 unreached PROPERTIES LABELS faults)
foreach(size RANGE 1 8)
  set_tests_properties(all_reduce_n${size}_c1 all_reduce_n${size}_c3 PROPERTIES LABELS faults)
endforeach()

faults_program(two_jobs)
faults_test(two_jobs two_jobs 120)
faults_test(two_jobs_loaded two_jobs 120 loaded)

faults_program(strangers)
faults_test(strangers strangers 60)

faults_program(goodbye)
foreach(size 2 3 4 8)
  faults_test(goodbye_n${size} goodbye 60 ${size})
endforeach()

# FAULTS_ROUNDS and FAULTS_SEED in the environment: see its source.
faults_program(stress)
faults_test(stress stress 600)
foreach(fault mismatch destroy abort)
  foreach(size 3 4)
    faults_test(${fault}_each_n${size} stress 120 ${fault} ${size} each)
  endforeach()
endforeach()
faults_program(abort)
faults_test(abort abort 60)

faults_program(requests)
foreach(fault killed stopped aborted destroyed differs)
  foreach(size 2 3 5)
    faults_test(requests_${fault}_n${size} requests 60 ${fault} ${size})
  endforeach()
endforeach()
