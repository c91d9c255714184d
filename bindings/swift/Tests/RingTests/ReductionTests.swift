import Ring
import XCTest

final class ReductionTests: XCTestCase {
  /// Sums and maxima of small whole numbers, which no type rounds, against those of all ranks' values.
  private static func reduces<T: RingElement & Equatable>(
    _ group: Group, counts: [Int] = [0, 1, 3, 7, 1023], from number: (Int) -> T
  ) throws {
    func value(_ rank: Int, _ index: Int) -> Int { (rank * 5 + index * 3) % 7 }
    for count in counts {
      let mine = (0..<count).map { number(value(group.rank, $0)) }
      func wanted(_ reduce: ([Int]) -> Int) -> [T] {
        let period = (0..<7).map { index in number(reduce((0..<group.size).map { value($0, index) })) }
        return (0..<count).map { period[$0 % 7] }
      }
      var inPlace = mine
      try group.allReduce(&inPlace, .sum)
      try expectEqual(inPlace, wanted { $0.reduce(0, +) }, "sum of \(count) \(T.dataType)")
      var largest = mine
      try group.allReduce(mine, into: &largest, .max)
      try expectEqual(largest, wanted { $0.max()! }, "max of \(count) \(T.dataType)")
    }
  }

  func testEveryType() {
    for size in [1, 2, 3, 5] {
      ring(of: size) { group in
        try Self.reduces(group) { Int8($0) }
        try Self.reduces(group) { Int16($0) }
        try Self.reduces(group) { Int32($0) }
        try Self.reduces(group) { Int64($0) }
        try Self.reduces(group) { $0 }
        try Self.reduces(group) { UInt8($0) }
        try Self.reduces(group) { UInt16($0) }
        try Self.reduces(group) { UInt32($0) }
        try Self.reduces(group) { UInt64($0) }
        try Self.reduces(group) { UInt($0) }
        try Self.reduces(group) { Double($0) }
        try Self.reduces(group) { BFloat16(Float($0)) }
        try Self.reduces(group) { Complex64(Float($0), 0) }
        try Self.reduces(group) { $0 > 0 }
        #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
        try Self.reduces(group) { Float16($0) }
        #endif
      }
    }
  }

  func testEverySize() {
    for size in 1...8 {
      // The last is cut in two parts, one each way.
      ring(of: size) { try Self.reduces($0, counts: [1, 7, 16_385]) { Float($0) } }
    }
  }

  func testOperations() {
    ring(of: 3) { group in
      func values(_ rank: Int) -> [UInt8] { [UInt8(12 + rank), UInt8(10 ^ rank), UInt8(200 - rank)] }
      func all(_ combine: (UInt8, UInt8) -> UInt8) -> [UInt8] {
        zip(zip(values(0), values(1)), values(2)).map { combine(combine($0.0, $0.1), $1) }
      }
      let operations: [(ReduceOp, [UInt8])] = [
        (.bitwiseAnd, all { $0 & $1 }), (.bitwiseOr, all { $0 | $1 }), (.bitwiseXor, all { $0 ^ $1 }),
        (.product, all { $0 &* $1 }), (.min, all { min($0, $1) }),
      ]
      for (op, wanted) in operations {
        var got = values(group.rank)
        try group.allReduce(&got, op)
        try expectEqual(got, wanted, "\(op)")
      }
      var means = [Float(group.rank), 1, Float(group.rank * group.rank)]
      try group.allReduce(&means, .mean)
      try expectEqual(means, [1, 1, 5 / 3])
      var complex = [Complex64(Float(group.rank), 1)]
      try group.allReduce(&complex, .sum)
      try expectEqual(complex, [Complex64(3, 3)])
    }
  }

  func testWideAccumulation() throws {
    // 256 + 1 rounds to 256 in bfloat16, so that only a wide sum sees the two ones.
    let hosts = makeHosts(3)
    let sums = Collected<Float>()
    let threads = DispatchGroup()
    for rank in 0..<3 {
      threads.enter()
      Thread.detachNewThread {
        defer { threads.leave() }
        var configuration = makeConfiguration(rank, hosts)
        configuration.flags = .wideAccumulation
        guard let group = try? Group(configuration) else { return }
        var values = [BFloat16](repeating: BFloat16(rank == 0 ? 256 : 1), count: 30_000)
        try? group.allReduce(&values, .sum)
        for value in Set(values) { sums.add(Float(value)) }
      }
    }
    XCTAssertEqual(threads.wait(timeout: .now() + 60), .success)
    XCTAssertEqual(sums.all, [258, 258, 258])
  }

  func testCustom() {
    struct Extremes: Equatable {
      var least: Int32
      var most: Int32
      var at: UInt8
    }
    for size in [1, 2, 4] {
      ring(of: size) { group in
        var mine = (0..<1001).map { Extremes(least: Int32($0 - group.rank), most: Int32($0 + group.rank), at: UInt8(group.rank)) }
        try group.allReduce(&mine) { Extremes(least: min($0.least, $1.least), most: max($0.most, $1.most), at: max($0.at, $1.at)) }
        let top = Int32(size - 1)
        try expectEqual(mine, (0..<1001).map { Extremes(least: $0 - top, most: $0 + top, at: UInt8(top)) })

        let counts = (0..<size).map { $0 * 3 + 1 }
        var part = [Int](repeating: 0, count: counts[group.rank])
        try group.reduceScatter((0..<counts.reduce(0, +)).map { $0 ^ group.rank }, into: &part, counts: counts) { $0 + $1 }
        let start = counts[..<group.rank].reduce(0, +)
        try expectEqual(part, (start..<start + counts[group.rank]).map { index in (0..<size).map { index ^ $0 }.reduce(0, +) })
      }
    }
  }

  func testCustomIsRefused() {
    ring(of: 2) { group in
      var texts = ["a", "b"]
      let references = try failure { try group.allReduce(&texts) { $0 + $1 } }
      try expectEqual(references.status, .invalidArgument)
      try expect(references.text.contains("String has references"), references.text)
      var numbers = [1, 2]
      let inside = Collected<RingError.Status>()
      try group.allReduce(&numbers) {
        do { try group.barrier() } catch let error as RingError { inside.add(error.status) } catch {}
        return $0 + $1
      }
      try expectEqual(Set(inside.all), [.invalidState])
      try expectEqual(numbers, [2, 4])
    }
  }

  func testBFloat16RoundsToEven() {
    for (value, bits) in [
      (Float(1), 0x3F80), (1 + 0x1p-8, 0x3F80), (1 + 3 * 0x1p-8, 0x3F82), (1 + 0x1p-8 + 0x1p-20, 0x3F81), (-0.0, 0x8000),
      (.greatestFiniteMagnitude, 0x7F80), (.infinity, 0x7F80), (-.infinity, 0xFF80),
    ] as [(Float, UInt16)] {
      XCTAssertEqual(BFloat16(value).bitPattern, bits, "\(value)")
    }
    XCTAssertTrue(Float(BFloat16(.nan)).isNaN)
    XCTAssertTrue(Float(BFloat16(Float(bitPattern: 0x7F80_0001))).isNaN)
    for bits in UInt16.min...UInt16.max where !Float(BFloat16(bitPattern: bits)).isNaN {
      XCTAssertEqual(BFloat16(Float(BFloat16(bitPattern: bits))).bitPattern, bits)
    }
  }
}
