// Calls that go on beside their caller, and the log.
#include "tests.hpp"

#include <cstring>
#include <numeric>
#include <thread>

namespace {

void each_call(ring::group &group) {
  const int rank = group.rank(), size = group.size();
  const auto ranks = static_cast<std::size_t>(size), own = static_cast<std::size_t>(rank);
  const std::size_t count = 1021;
  std::vector<long> send(count), sum(count), in_place(count), root(count), all(count * ranks), part(count), blocks(count * ranks);
  for (std::size_t i = 0; i < count; i++) send[i] = in_place[i] = number(rank, i);
  for (std::size_t i = 0; i < count * ranks; i++) blocks[i] = number(rank, i);
  for (std::size_t i = 0; i < count; i++) root[i] = rank == size - 1 ? 7 : 0;
  std::vector<long> exchanged(count * ranks);

  std::vector<ring::future> started;
  started.push_back(group.all_reduce_async(send, sum, ring::op::sum));
  started.push_back(group.all_reduce_async(in_place, ring::op::max));
  started.push_back(group.reduce_scatter_async(blocks, part, ring::op::sum));
  started.push_back(group.all_gather_async(send, all));
  started.push_back(group.broadcast_async(root, size - 1));
  started.push_back(group.all_to_all_async(blocks, exchanged));
  started.push_back(group.barrier_async());
  std::vector<long> got(count);
  if (size > 1) {
    started.push_back(group.recv_async(got, (rank + size - 1) % size));
    started.push_back(group.send_async(send, (rank + 1) % size));
  }
  for (auto &one : started) {
    CHECK(one.valid() && one.native_handle());
    one.wait();
    CHECK(one.ready() && one.wait_for(std::chrono::microseconds(1)));
    one.get();
    CHECK(!one.valid());
  }
  for (std::size_t i = 0; i < count; i++) {
    const long total = number(0, i) * size * (size + 1) / 2, at = number(0, own * count + i) * size * (size + 1) / 2;
    CHECK(sum[i] == total && in_place[i] == number(size - 1, i) && part[i] == at && root[i] == 7, "element %zu", i);
    CHECK(size == 1 || got[i] == number((rank + size - 1) % size, i), "element %zu", i);
  }
  for (std::size_t i = 0; i < count * ranks; i++) {
    const int from = static_cast<int>(i / count);
    CHECK(all[i] == number(from, i % count) && exchanged[i] == number(from, own * count + i % count), "element %zu", i);
  }
}

// A future that waits for a message, which comes when this rank has been seen to wait.
void waiting(ring::group &group) {
  if (group.size() == 1) return;
  const int rank = group.rank();
  if (rank == 0) {
    double value = 0;
    auto message = group.recv_async(ring::span(&value, 1), 1);
    CHECK(!message.ready() && !message.wait_for(std::chrono::milliseconds(1)) && !message.wait_for(std::chrono::seconds(-1)));
    /* Too little for milliseconds: wrapped they would be two hours. */
    CHECK(!message.wait_for(std::chrono::hours::min() + std::chrono::hours(1)));
    group.barrier();
    CHECK(message.wait_for(std::chrono::hours::max()));
    CHECK(value == 2.5);
    message = group.barrier_async();  // the former one is over, and freed
    message.get();
  } else {
    group.barrier();
    const double value = 2.5;
    if (rank == 1) group.send(ring::span(&value, 1), 0);
    group.barrier();
  }
  // A future that is dropped has waited.
  long sum = rank;
  { auto dropped = group.all_reduce_async(ring::span(&sum, 1), ring::op::sum); }
  CHECK(sum == group.size() * (group.size() - 1) / 2);
}

// Those that are refused are empty, and their order on all ranks is right.
void refused(ring::group &group) {
  std::vector<float> three(3), four(4);
  ring::failure how;
  auto wrong = group.all_reduce_async(three, four, ring::op::sum, how);
  CHECK(!wrong.valid() && how.status == ring::status::invalid_argument && how.rank == -1);
  CHECK(how.text.find("send has 3 elements and recv 4") != std::string::npos, "%s", how.text.c_str());
  const auto thrown = thrown_by([&] { (void)group.all_gather_async(four, three); });
  CHECK(thrown.status == ring::status::invalid_argument, "%s", thrown.text.c_str());
  CHECK(thrown_by([&] { (void)group.reduce_scatter_async(three, four, ring::op::sum); }).status == ring::status::invalid_argument);
  CHECK(thrown_by([&] { (void)group.all_to_all_async(three, four); }).status == ring::status::invalid_argument);
  CHECK(thrown_by([&] { (void)group.broadcast_async(three, 99); }).status == ring::status::invalid_argument);
  std::error_code code;
  auto bad = group.all_reduce_async(three, ring::op::band, code);
  CHECK(!bad.valid() && code == ring::status::unsupported);
  group.barrier();
}

void logging() {
  // The function that is replaced is freed, and not called again.
  auto first = std::make_shared<int>(0), second = std::make_shared<int>(0);
  std::weak_ptr<int> was = first;
  const auto write = [] { ring_of_one().abort(); };
  ring::status inside = ring::status::ok;
  ring::set_log(
      [first, &inside](ring::log_level level, std::string_view line) {
        CHECK(level >= ring::log_level::error && level <= ring::log_level::debug && !line.empty());
        ++*first;
        ring::failure how;
        ring::set_log(nullptr, ring::log_level::info, how);
        inside = how.status;
        throw 1;  // is lost
      },
      ring::log_level::debug);
  write();
  CHECK(*first > 0 && inside == ring::status::invalid_state, "%d lines", *first);
  first.reset();
  CHECK(!was.expired());
  ring::set_log([second](ring::log_level, std::string_view) { ++*second; }, ring::log_level::debug);
  CHECK(was.expired());
  write();
  CHECK(*second > 0);
  ring::set_log(nullptr);
  CHECK(second.use_count() == 1);
  const int lines = *second;
  write();
  CHECK(*second == lines);
  // One that replaces it waits for the function, which may not wait for that one.
  std::thread other;
  inside = ring::status::ok;
  ring::set_log(
      [&](ring::log_level, std::string_view) {
        if (!other.joinable()) {
          other = std::thread([] { ring::set_log(nullptr); });
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        ring::failure how;
        ring::set_log(nullptr, ring::log_level::info, how);
        inside = how.status;
      },
      ring::log_level::debug);
  write();
  other.join();
  CHECK(inside == ring::status::invalid_state);
  std::error_code code;
  ring::set_log([](ring::log_level, std::string_view) {}, static_cast<ring::log_level>(77), code);
  CHECK(code == ring::status::invalid_argument);
}

void body(int rank, int, const char *hosts) {
  auto group = ring_of(rank, hosts);
  each_call(group);
  waiting(group);
  refused(group);
  // It may outlive its group.
  auto last = group.barrier_async();
  last.wait();
  group.destroy();
  CHECK(!group && last.valid());
  last.get();
  ring::future adopted(nullptr);
  CHECK(!adopted.release());
}

}  // namespace

void futures(int size) {
  run<body>(size);
  if (size == 1) logging();
}
