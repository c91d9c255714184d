# Rings on stock MLX's wire.

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
add_test(NAME valgrind_mlx COMMAND sh "${CMAKE_CURRENT_SOURCE_DIR}/valgrind.sh" $<TARGET_FILE:mlx_refusals> 3)
set_tests_properties(valgrind_mlx PROPERTIES TIMEOUT 300 LABELS valgrind SKIP_RETURN_CODE 77)

# Their times are promises.
mlx_program(faults)
target_link_libraries(mlx_faults PRIVATE faults)
foreach(fault kill fork stop abort leave)
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

# Beside a model of the wire that shares no code with the library.
mlx_program(rank)
find_program(PYTHON3_PATH python3)
if(PYTHON3_PATH)
  foreach(size 2 3 4 5)
    ring_test(mlx_model_n${size} ${PYTHON3_PATH} 120 "${CMAKE_CURRENT_SOURCE_DIR}/mlx/mixed.py" model $<TARGET_FILE:mlx_rank> --sizes ${size})
    set_tests_properties(mlx_model_n${size} PROPERTIES ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  endforeach()
endif()

# Beside stock MLX, if its Python package is in build/mlxenv of the checkout. MLX spins: nothing runs beside it. Every
# ring and line of the results takes half an hour: mlx/stock.sh PROGRAMS CHECKOUT all.
mlx_program(loop)
foreach(part results starts faults)
  ring_test(mlx_stock_${part} sh 600 "${CMAKE_CURRENT_SOURCE_DIR}/mlx/stock.sh" "${CMAKE_CURRENT_BINARY_DIR}" "${RING_ROOT}" ${part})
  set_tests_properties(mlx_stock_${part} PROPERTIES LABELS mlx RUN_SERIAL TRUE SKIP_RETURN_CODE 77)
endforeach()
