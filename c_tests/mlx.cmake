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
