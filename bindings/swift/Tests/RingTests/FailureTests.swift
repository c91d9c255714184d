import Foundation
import Ring
import XCTest

final class FailureTests: XCTestCase {
  func testConfiguration() {
    XCTAssertThrowsError(try Group(Configuration())) { error in
      let error = error as! RingError
      XCTAssertEqual(error.status, .invalidConfig)
      XCTAssertNil(error.rank)
      XCTAssertFalse(error.text.isEmpty)
    }
    XCTAssertThrowsError(try Group(Configuration(rank: 0, hosts: "[\"here:0\"]\0"))) {
      XCTAssertEqual(($0 as! RingError).status, .invalidArgument)
    }
    var configuration = Configuration(rank: 0, hosts: "[\"here:0\"]")
    configuration.secret = []
    XCTAssertThrowsError(try Group(configuration)) { XCTAssertEqual(($0 as! RingError).status, .invalidConfig) }
    configuration.secret = [UInt8](repeating: 7, count: 16)
    configuration.jobID = "job"
    configuration.timeout = .infinite
    configuration.connections = 2
    XCTAssertNoThrow(try Group(configuration))
    XCTAssertEqual(Timeout.milliseconds(0).milliseconds, 1)
    XCTAssertEqual(Timeout.seconds(.max).milliseconds, .max - 1)
  }

  /// Lengths that don't fit are refused on every rank, and the calls go on in step.
  func testLengthsOnEveryRank() {
    ring(of: 3) { group in
      let four = [Float](repeating: 1, count: 4)
      var five = [Float](repeating: Float(group.rank), count: 5)
      let calls: [(String, () throws -> Void)] = [
        ("all_reduce", { try group.allReduce(four, into: &five, .sum) }),
        ("reduce_scatter", { try group.reduceScatter(four, into: &five, .sum) }),
        ("all_gather", { try group.allGather(four, into: &five) }),
        ("all_to_all", { try group.allToAll(four, into: &five) }),
        ("all_to_all", { var other = four; try group.allToAll(four, into: &other) }),
        ("all_gather_v", { try group.allGather(four, into: &five, counts: [4, 4, 4]) }),
        ("all_gather_v", { try group.allGather(four, into: &five, counts: [4]) }),
        ("all_gather_v", { try group.allGather(four, into: &five, counts: [4, .max, .max]) }),
        ("all_gather_v", { try group.allGather(four, into: &five, counts: [4, -4, 4]) }),
        ("reduce_scatter_v", { try group.reduceScatter(four, into: &five, .sum, counts: [4, 4, 4]) }),
        ("all_to_all_v", { try group.allToAll(four, sendCounts: [1, 1, 1], into: &five, recvCounts: [2, 2, 2]) }),
        ("all_reduce_custom", {
          try four.withUnsafeBufferPointer { four in
            try five.withUnsafeMutableBufferPointer { five in try group.allReduce(four, into: five) { _, _ in } }
          }
        }),
      ]
      for (index, (name, call)) in calls.enumerated() {
        let error = try failure(call)
        try expectEqual(error.status, .invalidArgument, name)
        try expect(error.text.contains("of 3: \(name): "), error.text)
        try expectEqual(error.rank, nil)
        var sum = [index + group.rank]
        try group.allReduce(&sum, .sum)
        try expectEqual(sum, [3 * index + 3])
      }
      try expectEqual(try group.failure(), nil)
    }
  }

  /// Such a call takes its number: where one rank alone makes it the next collective is a mismatch, and not a wrong number.
  func testLengthsOnOneRank() {
    ring(of: 3) { group in
      var five = [Int](repeating: group.rank, count: 5)
      if group.rank == 1 {
        let error = try failure { try group.allReduce([1, 2, 3, 4], into: &five, .sum) }
        try expectEqual(error.status, .invalidArgument)
        try expect(error.text.hasSuffix("all_reduce: send has 4 elements and recv 5"), error.text)
      }
      let error = try failure { try group.allReduce(&five, .sum) }
      try expectEqual(error.status, .mismatch)
    }
  }

  /// The root's own fault alone: elsewhere the array is ignored.
  func testRootedLengths() {
    let calls: [@Sendable (Group) throws -> Void] = [
      { var wrong = [Int](repeating: 0, count: 5); try $0.gather([1, 2], into: &wrong, root: 1) },
      { var wrong = [Int](repeating: 0, count: 5); try $0.reduce([1, 2], into: &wrong, .sum, root: 1) },
      { var two = [0, 0]; try $0.scatter([Int](repeating: 0, count: 5), into: &two, root: 1) },
    ]
    for call in calls {
      ring(of: 3) { group in
        let error = try failure {
          try call(group)
          try group.barrier()
        }
        // The others hear of a call that is missing, or that the root has left.
        let others: [RingError.Status] = [.mismatch, .peerLost]
        try expect(group.rank == 1 ? error.status == .invalidArgument : others.contains(error.status), "\(error)")
      }
    }
  }

  func testRefusedByTheLibrary() {
    ring(of: 2) { group in
      var numbers = [1, 2, 3]
      try expectEqual(try failure { try group.allReduce(&numbers, ReduceOp(rawValue: 99)) }.status, .invalidArgument)
      try expectEqual(try failure { try group.allReduce(&numbers, .mean) }.status, .unsupported)
      try expectEqual(try failure { try group.broadcast(&numbers, root: 2) }.status, .invalidArgument)
      try expectEqual(try failure { try group.broadcast(&numbers, root: .max) }.status, .invalidArgument)
      try expectEqual(try failure { try group.send(numbers, to: group.rank) }.status, .invalidArgument)
      try expectEqual(numbers, [1, 2, 3])
      try group.barrier()
    }
    XCTAssertEqual("\(RingError.Status.peerLost)", "RING_STATUS_PEER_LOST")
    XCTAssertEqual("\(RingError.Status(rawValue: 99))", "RING_STATUS_UNKNOWN")
    XCTAssertFalse(RingError.Status.timeout.sentence.isEmpty)
    XCTAssertEqual(DataType(rawValue: 99).size, 0)
    XCTAssertEqual("\(DataType.complex64) \(ReduceOp.product)", "complex64 prod")
  }

  func testElementsAreAsLongAsTheLibraryTakesThem() {
    func check<T: RingElement>(_: T.Type) {
      XCTAssertEqual(MemoryLayout<T>.stride, T.dataType.size, "\(T.self)")
      XCTAssertLessThanOrEqual(MemoryLayout<T>.alignment, 16)
    }
    check(Bool.self); check(Int8.self); check(Int16.self); check(Int32.self); check(Int64.self); check(Int.self)
    check(UInt8.self); check(UInt16.self); check(UInt32.self); check(UInt64.self); check(UInt.self)
    check(Float.self); check(Double.self); check(BFloat16.self); check(Complex64.self)
  }

  func testMismatch() {
    ring(of: 3) { group in
      var values = [Float](repeating: 0, count: group.rank == 2 ? 5 : 4)
      let error = try failure { try group.allReduce(&values, .sum) }
      try expectEqual(error.status, .mismatch)
      try expectEqual(error.sequence, 1)
      try expectEqual(try group.failure()?.status, .mismatch)
      try expectEqual(try group.failure()?.text.isEmpty, false)
      // It stays.
      try expectEqual(try failure { try group.barrier() }.status, .mismatch)
    }
  }

  func testAbort() {
    ring(of: 4) { group in
      if group.rank == 2 { try group.abort() }
      let error = try failure { try group.barrier() }
      try expectEqual(error.status, .aborted)
      try expectEqual(error.rank, 2)
    }
  }

  func testTimeout() {
    ring(of: 2) { group in
      if group.rank == 0 {
        try group.setTimeout(.milliseconds(200))
        let error = try failure { try group.barrier() }
        try expectEqual(error.status, .timeout)
        try expectEqual(error.rank, 1)
      } else {
        while try group.failure() == nil { Thread.sleep(forTimeInterval: 0.01) }
        try expectEqual(try group.failure()?.detectedBy, 0)
      }
    }
  }

  func testStatistics() {
    ring(of: 2) { group in
      var values = [Double](repeating: 1, count: 1000)
      try group.allReduce(&values, .sum)
      try group.barrier()
      let statistics = try group.statistics()
      try expectEqual(statistics.operations, 2)
      try expect(statistics.bytesSent >= 8000 && statistics.bytesReceived >= 8000, "\(statistics)")
      try expect(statistics.busyNanoseconds > 0, "\(statistics)")
      try expectEqual(statistics.strangersRefused, 0)
    }
  }

  func testLog() throws {
    let lines = Collected<(LogLevel, String)>()
    let inside = Collected<RingError.Status>()
    try RingLibrary.setLogHandler(upTo: .error) { level, line in
      lines.add((level, line))
      do { try RingLibrary.setLogHandler(nil) } catch let error as RingError { inside.add(error.status) } catch {}
    }
    ring(of: 2) { group in
      if group.rank == 0 { try group.abort() }
      _ = try failure { try group.barrier() }
    }
    try RingLibrary.setLogHandler(nil)
    XCTAssertFalse(lines.all.isEmpty)
    XCTAssertTrue(lines.all.allSatisfy { $0.0 == .error && $0.1.contains("abort") }, "\(lines.all)")
    XCTAssertTrue(inside.all.allSatisfy { $0 == .invalidState } && !inside.all.isEmpty)
    XCTAssertThrowsError(try RingLibrary.setLogHandler(upTo: LogLevel(rawValue: 99)) { _, _ in }) {
      XCTAssertEqual(($0 as! RingError).status, .invalidArgument)
    }
    XCTAssertTrue(RingLibrary.version.hasPrefix("\(RingLibrary.versionNumber >> 16)."))
    XCTAssertEqual(RingLibrary.abiVersion, 1)
  }
}
