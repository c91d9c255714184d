import Ring
import XCTest

final class MovementTests: XCTestCase {
  /// What rank `rank` has at `index`.
  private static func value(_ rank: Int, _ index: Int) -> Int32 { Int32(rank * 100_003 + index) }

  private static func values(_ rank: Int, _ count: Int, from start: Int = 0) -> [Int32] {
    (start..<start + count).map { value(rank, $0) }
  }

  func testCollectives() {
    for size in 1...8 {
      ring(of: size) { group in
        let rank = group.rank
        for count in [0, 1, 5, 3001] {
          var all = [Int32](repeating: -1, count: size * count)
          try group.allGather(Self.values(rank, count), into: &all)
          let everybody = (0..<size).flatMap { Self.values($0, count) }
          try expectEqual(all, everybody, "all_gather")

          var part = [Int32](repeating: -1, count: count)
          try group.reduceScatter(Self.values(rank, size * count), into: &part, .max)
          try expectEqual(part, Self.values(size - 1, count, from: rank * count), "reduce_scatter")

          for root in size == 1 ? [0] : [0, size - 1] {
            var one = Self.values(rank, count)
            try group.broadcast(&one, root: root)
            try expectEqual(one, Self.values(root, count), "broadcast")

            var reduced = Self.values(rank, count)
            try group.reduce(&reduced, .min, root: root)
            try expectEqual(reduced, Self.values(rank == root ? 0 : rank, count), "reduce")
            var elsewhere = [Int32](repeating: -1, count: rank == root ? count : 0)
            try group.reduce(Self.values(rank, count), into: &elsewhere, .min, root: root)
            try expectEqual(elsewhere, rank == root ? Self.values(0, count) : [], "reduce")

            var gathered = [Int32](repeating: -1, count: rank == root ? size * count : 0)
            try group.gather(Self.values(rank, count), into: &gathered, root: root)
            try expectEqual(gathered, rank == root ? everybody : [], "gather")

            var scattered = [Int32](repeating: -1, count: count)
            try group.scatter(rank == root ? Self.values(root, size * count) : [], into: &scattered, root: root)
            try expectEqual(scattered, Self.values(root, count, from: rank * count), "scatter")
          }

          var blocks = [Int32](repeating: -1, count: size * count)
          try group.allToAll(Self.values(rank, size * count), into: &blocks)
          try expectEqual(blocks, (0..<size).flatMap { Self.values($0, count, from: rank * count) }, "all_to_all")
          try group.barrier()
        }
      }
    }
  }

  func testPartsOfDifferentLengths() {
    for size in 1...5 {
      ring(of: size) { group in
        let rank = group.rank
        let counts = (0..<size).map { ($0 * 7 + 3) % 11 * 5 }
        let total = counts.reduce(0, +)
        let starts = counts.indices.map { counts[..<$0].reduce(0, +) }

        var packed = [Int32](repeating: -1, count: total)
        try group.allGather(Self.values(rank, counts[rank]), into: &packed, counts: counts)
        try expectEqual(packed, (0..<size).flatMap { Self.values($0, counts[$0]) }, "all_gather_v")

        // In the reverse order, with a gap of one element before each.
        let places = counts.indices.map { at in counts[(at + 1)...].reduce(0, +) + size - at }
        var spread = [Int32](repeating: -1, count: total + size)
        try group.allGather(Self.values(rank, counts[rank]), into: &spread, counts: counts, displacements: places)
        try expectEqual(spread, (0..<size).reversed().flatMap { [-1] + Self.values($0, counts[$0]) }, "displacements")

        var part = [Int32](repeating: -1, count: counts[rank])
        try group.reduceScatter(Self.values(rank, total), into: &part, .max, counts: counts)
        try expectEqual(part, Self.values(size - 1, counts[rank], from: starts[rank]), "reduce_scatter_v")

        // Rank s sends s + 2 d elements to rank d.
        let sends = (0..<size).map { rank + 2 * $0 }
        let receives = (0..<size).map { $0 + 2 * rank }
        var blocks = [Int32](repeating: -1, count: receives.reduce(0, +))
        try group.allToAll(
          Self.values(rank, sends.reduce(0, +)), sendCounts: sends, into: &blocks, recvCounts: receives)
        let wanted = (0..<size).flatMap { source in
          Self.values(source, receives[source], from: (0..<rank).map { source + 2 * $0 }.reduce(0, +))
        }
        try expectEqual(blocks, wanted, "all_to_all_v")
      }
    }
  }

  func testInPlaceInPartsOfOneArray() {
    ring(of: 3) { group in
      var all = [Int32](repeating: -1, count: 3 * 4)
      all.replaceSubrange(group.rank * 4..<group.rank * 4 + 4, with: Self.values(group.rank, 4))
      try all.withUnsafeMutableBufferPointer { all in
        let mine = UnsafeBufferPointer(rebasing: all[group.rank * 4..<group.rank * 4 + 4])
        try group.allGather(mine, into: all)
      }
      try expectEqual(all, (0..<3).flatMap { Self.values($0, 4) })
    }
  }

  func testMessages() {
    for size in [2, 3, 5] {
      ring(of: size) { group in
        let next = (group.rank + 1) % size
        let last = (group.rank + size - 1) % size
        for count in [0, 1, 777, 100_000] {
          var got = [Int32](repeating: -1, count: count)
          try group.sendReceive(Self.values(group.rank, count), to: next, into: &got, from: last)
          try expectEqual(got, Self.values(last, count))
        }
        // From rank 0 to all others, neighbours or not.
        if group.rank == 0 {
          for other in 1..<size { try group.send(Self.values(other, 9), to: other) }
        } else {
          var got = [Int32](repeating: -1, count: 9)
          try group.receive(into: &got, from: 0)
          try expectEqual(got, Self.values(group.rank, 9))
        }
        var none: [Int32] = []
        try group.sendReceive([], to: nil, into: &none, from: nil)
      }
    }
  }

  func testSplit() {
    ring(of: 5) { group in
      let half = try group.split(color: group.rank % 2, key: -group.rank)!
      try expectEqual(half.size, group.rank % 2 == 0 ? 3 : 2)
      // Keys turn the order round.
      try expectEqual(half.rank, (4 - group.rank) / 2)
      var ranks = [Int](repeating: -1, count: half.size)
      try half.allGather([group.rank], into: &ranks)
      try expectEqual(ranks, group.rank % 2 == 0 ? [4, 2, 0] : [3, 1])
      let some = try group.split(color: group.rank == 1 ? -1 : 0)
      try expectEqual(some?.size, group.rank == 1 ? nil : 4)
      try group.barrier()
    }
  }
}
