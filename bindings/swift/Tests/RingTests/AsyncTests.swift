import Ring
import XCTest

final class AsyncTests: XCTestCase {
  func testCollectives() async throws {
    for size in [1, 2, 4] {
      try await asyncRing(of: size) { group in
        let rank = group.rank
        let ranks = Array(0..<size)
        try expectEqual(try await group.allReduce([rank, 1], .sum), [ranks.reduce(0, +), size])
        try expectEqual(try await group.reduceScatter(ranks.map { $0 * 10 + rank }, .max), [rank * 10 + size - 1])
        try expectEqual(try await group.allGather([rank, -rank]), ranks.flatMap { [$0, -$0] })
        try expectEqual(try await group.broadcast([rank], root: size - 1), [size - 1])
        try expectEqual(try await group.reduce([rank], .min, root: 0), rank == 0 ? [0] : nil)
        try expectEqual(try await group.gather([rank], root: size - 1), rank == size - 1 ? ranks : nil)
        try expectEqual(try await group.scatter(rank == 0 ? ranks : [], count: 1, root: 0), [rank])
        try expectEqual(try await group.allToAll(ranks.map { rank * 10 + $0 }), ranks.map { $0 * 10 + rank })
        try await group.barrier()
        if size > 1 {
          // A message may wait for its receiver: both at once.
          async let sent: Void = group.send([Float](repeating: Float(rank), count: 100_000), to: (rank + 1) % size)
          let got = try await group.receive(Float.self, count: 100_000, from: (rank + size - 1) % size)
          try await sent
          try expectEqual(Set(got), [Float((rank + size - 1) % size)])
        }
        let doubled = try await group.perform { group -> [Int] in
          var values = [group.rank]
          try group.allReduce(&values, .product)
          return values.map { $0 * 2 }
        }
        try expectEqual(doubled, [0])
      }
    }
  }

  func testWrongLengths() async throws {
    try await asyncRing(of: 2) { group in
      do {
        _ = try await group.reduceScatter([1, 2, 3], .sum)
        throw Wrong(description: "no failure")
      } catch let error as RingError {
        try expectEqual(error.status, .invalidArgument)
        try expect(error.text.contains("send has 3 elements and needs 2 (recv's 1 for each of 2 ranks)"), error.text)
      }
      try await group.barrier()
    }
  }

  func testCancellationAborts() async throws {
    try await asyncRing(of: 3) { group in
      let task = Task { try await group.receive(Int.self, count: 1, from: (group.rank + 1) % 3) }
      if group.rank == 1 { task.cancel() }
      do {
        _ = try await task.value
        throw Wrong(description: "a message that nobody sent")
      } catch let error as RingError {
        try expectEqual(error.status, .aborted)
        try expectEqual(error.rank, 1)
      }
    }
  }

  func testRequestsSuspend() async throws {
    try await asyncRing(of: 3) { group in
      let memory = UnsafeMutableBufferPointer<Int>.allocate(capacity: 1)
      defer { memory.deallocate() }
      memory[0] = group.rank
      let sum = try group.startAllReduce(UnsafeBufferPointer(memory), into: memory, .sum)
      try await group.startBarrier().finished()
      try expect(try sum.isDone(), "requests run in order")
      try await sum.finished()
      try expectEqual(memory[0], 3)
    }
  }

  func testRequests() {
    ring(of: 3) { group in
      let memory = UnsafeMutableBufferPointer<Float>.allocate(capacity: 40_000)
      let gathered = UnsafeMutableBufferPointer<Float>.allocate(capacity: 6)
      defer {
        memory.deallocate()
        gathered.deallocate()
      }
      memory.initialize(repeating: Float(group.rank + 1))
      gathered.initialize(repeating: Float(group.rank))
      let sum = try group.startAllReduce(UnsafeBufferPointer(memory), into: memory, .sum)
      let mine = gathered[group.rank * 2..<group.rank * 2 + 2]
      let gather = try group.startAllGather(UnsafeBufferPointer(rebasing: mine), into: gathered)
      let barrier = try group.startBarrier()
      try barrier.wait()
      try gather.wait()
      try expect(try sum.isDone() && gather.isDone(), "requests run in order")
      try sum.wait()
      try expectEqual(Set(memory), [6])
      try expectEqual(Array(gathered), [0, 0, 1, 1, 2, 2])

      let one = UnsafeMutableBufferPointer<Int32>.allocate(capacity: 3)
      let two = UnsafeMutableBufferPointer<Int32>.allocate(capacity: 3)
      defer {
        one.deallocate()
        two.deallocate()
      }
      for index in 0..<3 { one[index] = Int32(group.rank * 3 + index) }
      try group.startAllToAll(UnsafeBufferPointer(one), into: two).wait()
      try expectEqual(Array(two), (0..<3).map { Int32($0 * 3 + group.rank) })
      try group.startReduceScatter(UnsafeBufferPointer(two), into: UnsafeMutableBufferPointer(rebasing: one[..<1]), .max).wait()
      try expectEqual(one[0], Int32(group.rank * 3 + 2))
      try group.startBroadcast(two, root: 1).wait()
      try expectEqual(Array(two), [1, 4, 7])
      let receive = try group.startReceive(into: one, from: (group.rank + 2) % 3)
      if group.rank == 0 {
        let pending = try failure { try receive.wait(.milliseconds(1)) }
        try expectEqual(pending.status, .pending)
        try expectEqual(try group.failure(), nil)
      }
      try group.barrier()
      let send = try group.startSend(UnsafeBufferPointer(two), to: (group.rank + 1) % 3)
      try receive.wait(.seconds(20))
      try send.wait()
      try expectEqual(Array(one), [1, 4, 7])
      let refused = try failure { _ = try group.startAllReduce(UnsafeBufferPointer(two), into: one, ReduceOp(rawValue: -1)) }
      try expectEqual(refused.status, .invalidArgument)
      let lengths = try failure {
        _ = try group.startAllReduce(UnsafeBufferPointer(two), into: UnsafeMutableBufferPointer(rebasing: one[..<2]), .sum)
      }
      try expect(lengths.text.hasSuffix("all_reduce: send has 3 elements and recv 2"), lengths.text)
    }
  }
}
