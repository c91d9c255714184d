// ring.hpp, as each compiler and standard sees it: every template is made once. It stands alone, but for macros that
// other headers have, and where the standard library's are there before it and no longer protect it from them.
#if defined(WITH_MACROS)
#include <algorithm>
#include <atomic>
#include <chrono>
#include <complex>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#endif
#include <ring.hpp>

#include <array>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif
#if __cplusplus > 202002L && __has_include(<stdfloat>)
#include <stdfloat>
#endif

#if defined(__STDCPP_FLOAT16_T__)
static_assert(ring::dtype_v<std::float16_t> == ring::dtype::float16);
#endif
#if defined(__STDCPP_BFLOAT16_T__)
static_assert(ring::dtype_v<std::bfloat16_t> == ring::dtype::bfloat16);
#endif

void use(ring::group &group, std::vector<float> &in, std::array<float, 4> &out, const std::vector<std::size_t> &counts);

void use(ring::group &group, std::vector<float> &in, std::array<float, 4> &out, const std::vector<std::size_t> &counts) {
  ring::failure how;
  std::error_code code;
  float plain[4] = {};
  const auto add = [](float a, float b) { return a + b; };
  group.all_reduce(in, out, ring::op::sum);
  group.all_reduce(in, out, ring::op::sum, how);
  group.all_reduce(plain, ring::op::sum, code);
  group.all_reduce(in, out, add, how);
  group.all_reduce(plain, add);
  group.reduce_scatter(in, out, ring::op::sum, how);
  group.reduce_scatter_v(in, out, counts, ring::op::sum, how);
  group.reduce_scatter_v(in, out, counts, add, how);
  group.reduce(in, out, ring::op::sum, 0, how);
  group.all_gather(in, out, how);
  group.all_gather_v(in, out, counts, how);
  group.all_gather_v(in, out, counts, counts, how);
  group.broadcast(plain, 0, how);
  group.gather(in, out, 0, how);
  group.scatter(in, out, 0, how);
  group.all_to_all(in, out, how);
  group.all_to_all_v(in, counts, out, counts, how);
  group.all_to_all_v(in, counts, counts, out, counts, counts, how);
  group.send(in, 1, how);
  group.recv(ring::span(out), 1, how);
  group.send_recv(in, 1, out, 1, how);
  auto f = group.all_reduce_async(in, out, ring::op::sum);
  f = group.all_reduce_async(in, ring::op::sum, how);
  f = group.reduce_scatter_async(in, out, ring::op::sum, how);
  f = group.all_gather_async(in, out, how);
  f = group.broadcast_async(in, 0, how);
  f = group.all_to_all_async(in, out, how);
  f = group.send_async(in, 1, how);
  f = group.recv_async(ring::span(plain, 2), 1, how);
  f = group.barrier_async(how);
  if (!f.ready() && !f.wait_for(std::chrono::seconds(1))) f.get();
  ring::set_log([](ring::log_level, std::string_view) {});
  in[0] = ring::float16(1.5f) + ring::bfloat16(0.5f);
#if __cplusplus >= 202002L
  group.all_reduce(std::span<const float>(in), std::span<float>(out), ring::op::sum);
  auto g = group.send_async(std::span<const float>(in), 1);
#endif
}

#if defined(WITH_TEMPORARY)
// Elements of a const object that is about to end are no more lasting than others.
void use(ring::group &group, const std::vector<float> (*made)());

void use(ring::group &group, const std::vector<float> (*made)()) { group.send_async(made(), 1).get(); }
#endif
