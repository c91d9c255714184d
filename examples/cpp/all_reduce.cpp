// Sums an array over all ranks. The ring comes from the environment: RING_RANK, RING_HOSTFILE.
#include <array>
#include <iostream>
#include <ring.hpp>

int main() try {
  auto group = ring::group::from_env();

  const float rank = static_cast<float>(group.rank());
  std::array<float, 4> gradient = {rank + 0.5f, rank + 1.5f, rank + 2.5f, rank + 3.5f};
  group.all_reduce(gradient, ring::op::sum);

  std::cout << "rank " << group.rank() << " of " << group.size() << ":";
  for (const float value : gradient) std::cout << ' ' << value;
  std::cout << '\n';
} catch (const ring::error &failure) {
  std::cerr << failure.what() << '\n';
  return 1;
}
