// Calls that don't compile, one for each number in WRONG: the first thing that a compiler says is the text beside it.
#include <ring.hpp>

#include <list>
#include <vector>

struct score {
  float value;
};

void wrong(ring::group &group, std::vector<float> &floats);

void wrong(ring::group &group, std::vector<float> &floats) {
  const std::vector<float> constant(3);
  std::vector<bool> bits(3);
  std::vector<score> scores(3);
  std::list<float> list(3);
  float one = 1;
#if WRONG == 0
  group.all_reduce(ring::span(&one, 1), ring::op::sum);
  (void)floats;
#elif WRONG == 1  // one value is ring::span(&x, 1)
  group.all_reduce(one, ring::op::sum);
#elif WRONG == 2  // one value is ring::span(&x, 1)
  group.all_gather(one, floats);
#elif WRONG == 3  // a buffer is something with std::data and std::size
  group.all_reduce(list, ring::op::sum);
#elif WRONG == 4  // std::vector<bool> is none
  group.broadcast(bits, 0);
#elif WRONG == 5  // std::vector<bool> is none
  auto later = group.send_async(bits, 0);
#elif WRONG == 6  // specialise ring::dtype_of, or reduce by a function
  group.all_reduce(scores, ring::op::sum);
#elif WRONG == 7  // ring::op::sum is meant for RING_OP_SUM
  group.all_reduce(floats, RING_OP_SUM);
#elif WRONG == 8  // ring::op::sum is meant for RING_OP_SUM
  group.all_reduce(constant, floats, RING_OP_SUM);
#elif WRONG == 9  // the buffer is const
  group.all_reduce(constant, ring::op::sum);
#elif WRONG == 10  // the buffer ends before the call does
  group.all_reduce(std::vector<float>(3), ring::op::sum);
#elif WRONG == 11  // send and recv have elements of different types
  group.all_gather(scores, floats);
#elif WRONG == 12  // a buffer is something with std::data and std::size
  group.all_reduce(one, [](float a, float b) { return a + b; });
#elif WRONG == 13  // the buffer ends before the call does
  // Elements of a const object that is about to end are no more lasting than others.
  const std::vector<float> (*made)() = nullptr;
  group.send_async(made(), 1).get();
#endif
  (void)bits;
  (void)list;
  (void)one;
}
