# Rings on stock MLX's wire. Those of ctest's label mlx need MLX's Python package in build/mlxenv of the checkout.
add_executable(mlx_rank src/mlx/rank.c)
target_link_libraries(mlx_rank PRIVATE harness)

# A program of src/mlx.
function(mlx_program program)
  add_executable(mlx_${program} src/mlx/${program}.c)
  target_link_libraries(mlx_${program} PRIVATE harness)
endfunction()

mlx_program(configuration)
ring_test(mlx_configuration mlx_configuration 60)

mlx_program(refusals)
foreach(size 2 3 4 5)
  ring_test(mlx_refusals_n${size} mlx_refusals 60 ${size})
endforeach()
ring_test(mlx_refusals_many mlx_refusals 60 many)

# Their times are promises.
mlx_program(faults)
target_link_libraries(mlx_faults PRIVATE faults)
foreach(fault kill stop abort leave)
  foreach(size 2 3 4)
    ring_test(mlx_${fault}_n${size} mlx_faults 120 ${fault} ${size})
    set_tests_properties(mlx_${fault}_n${size} PROPERTIES LABELS faults RUN_SERIAL TRUE)
  endforeach()
endforeach()

mlx_program(calls)
foreach(size 2 3 4 5)
  foreach(addresses 1 2)
    ring_test(mlx_calls_n${size}_k${addresses} mlx_calls 60 ${size} ${addresses})
  endforeach()
endforeach()

mlx_program(forming)
ring_test(mlx_forming mlx_forming 120)
set_tests_properties(mlx_forming PROPERTIES LABELS faults RUN_SERIAL TRUE)

mlx_program(loop)
