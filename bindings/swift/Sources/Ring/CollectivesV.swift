import CLibring

// Parts of different lengths, over memory that the caller keeps. The arrays of counts are read before a call returns.
extension Group {
  /// As ``allGather(_:into:)-swift.method``, with parts of different lengths: `counts` has one for each rank, alike on all ranks,
  /// and `send` is as long as this rank's. Rank r's part arrives at element `displacements[r]` of `recv`, which may differ between
  /// ranks; nil packs the parts in the order of ranks. What lies between parts stays as it is.
  public func allGather<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>, counts: [Int], displacements: [Int]? = nil
  ) throws {
    let fits = hold(recv.count, counts, displacements)
    try call(counts, fits: fits, "all_gather_v: \(partsText("recv", recv.count, counts, displacements))") { group, counts in
      withOptional(displacements) {
        ring_all_gather_v(group, send.baseAddress, send.count, recv.baseAddress, counts, $0, T.dataType.rawValue)
      }
    }
  }

  /// As ``reduceScatter(_:into:_:)-swift.method``, with parts of different lengths: `counts` has one for each rank, alike on all
  /// ranks. `send` holds the parts packed in the order of ranks, and `recv` is as long as this rank's.
  public func reduceScatter<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>, _ op: ReduceOp, counts: [Int]
  ) throws {
    let why = "reduce_scatter_v: send has \(send.count) elements, recv \(recv.count): counts are \(counts)"
    try call(counts, fits: scatters(send.count, recv.count, counts), why) {
      ring_reduce_scatter_v($0, send.baseAddress, recv.baseAddress, $1, T.dataType.rawValue, op.rawValue)
    }
  }

  /// As ``allToAll(_:into:)-swift.method``, with blocks of different lengths: `sendCounts[d]` elements from element
  /// `sendDisplacements[d]` of `send` on go to rank d, and `recvCounts[s]` of rank s arrive at element `recvDisplacements[s]` of
  /// `recv`. Without displacements blocks are packed in the order of ranks.
  public func allToAll<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, sendCounts: [Int], sendDisplacements: [Int]? = nil,
    into recv: UnsafeMutableBufferPointer<T>, recvCounts: [Int], recvDisplacements: [Int]? = nil
  ) throws {
    let sends = hold(send.count, sendCounts, sendDisplacements)
    let receives = hold(recv.count, recvCounts, recvDisplacements)
    let why = "all_to_all_v: \(partsText("send", send.count, sendCounts, sendDisplacements)); "
      + partsText("recv", recv.count, recvCounts, recvDisplacements)
    try call(sendCounts, fits: sends && receives, why) { group, sendCounts in
      recvCounts.withUnsafeBufferPointer { recvCounts in
        withOptional(sendDisplacements) { sendDisplacements in
          withOptional(recvDisplacements) { recvDisplacements in
            ring_all_to_all_v(
              group, send.baseAddress, sendCounts, sendDisplacements, recv.baseAddress, recvCounts.baseAddress,
              recvDisplacements, T.dataType.rawValue)
          }
        }
      }
    }
  }

  /// Whether memory of so many elements holds a part for each rank. Parts that overlap are for the library to find.
  private func hold(_ elements: Int, _ counts: [Int], _ displacements: [Int]?) -> Bool {
    guard counts.count == size, displacements == nil || displacements!.count == size else { return false }
    var packed = 0
    for (rank, count) in counts.enumerated() {
      let start = displacements?[rank] ?? packed
      let (end, overflow) = start.addingReportingOverflow(count)
      guard count >= 0, start >= 0, !overflow, end <= elements || count == 0 else { return false }
      packed = end
    }
    return true
  }

  /// Whether `send` is as long as all parts together, and `recv` as this rank's.
  func scatters(_ send: Int, _ recv: Int, _ counts: [Int]) -> Bool {
    guard counts.count == size, hold(send, counts, nil) else { return false }
    return counts.reduce(0, +) == send && counts[rank] == recv
  }

  private func partsText(_ name: String, _ elements: Int, _ counts: [Int], _ displacements: [Int]?) -> String {
    let places = displacements.map { ", displacements \($0)" } ?? ""
    return "\(name) has \(elements) elements, counts are \(counts)\(places)"
  }
}

private func withOptional(
  _ numbers: [Int]?, _ body: (UnsafePointer<Int>?) -> ring_status_t
) -> ring_status_t {
  guard let numbers = numbers else { return body(nil) }
  return numbers.withUnsafeBufferPointer { body($0.baseAddress) }
}
