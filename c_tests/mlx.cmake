# Rings on stock MLX's wire. Those of ctest's label mlx need MLX's Python package in build/mlxenv of the checkout.
add_executable(mlx_rank src/mlx/rank.c)
target_link_libraries(mlx_rank PRIVATE harness)
