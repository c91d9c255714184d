// The collectives over Swift's arrays. After a failure the contents of an array that receives are unspecified.
extension Group {
  /// Reduces the ranks' arrays element by element, in place on every rank.
  public func allReduce<T: RingElement>(_ array: inout [T], _ op: ReduceOp) throws {
    try array.withUnsafeMutableBufferPointer { try allReduce(UnsafeBufferPointer($0), into: $0, op) }
  }

  /// Reduces the ranks' arrays element by element and gives every rank the result. Both arrays have one length.
  public func allReduce<T: RingElement>(_ send: [T], into recv: inout [T], _ op: ReduceOp) throws {
    try both(send, &recv) { try allReduce($0, into: $1, op) }
  }

  /// Reduces the ranks' arrays and gives each rank its part of the result: `send` is `size` parts, of which rank r gets the r-th.
  public func reduceScatter<T: RingElement>(_ send: [T], into recv: inout [T], _ op: ReduceOp) throws {
    try both(send, &recv) { try reduceScatter($0, into: $1, op) }
  }

  /// The same, with parts of different lengths: `counts` has one for each rank, alike on all ranks.
  public func reduceScatter<T: RingElement>(_ send: [T], into recv: inout [T], _ op: ReduceOp, counts: [Int]) throws {
    try both(send, &recv) { try reduceScatter($0, into: $1, op, counts: counts) }
  }

  /// Gathers the ranks' arrays, alike long, on every rank: rank r's is the r-th of `size` parts of `recv`.
  public func allGather<T: RingElement>(_ send: [T], into recv: inout [T]) throws {
    try both(send, &recv) { try allGather($0, into: $1) }
  }

  /// The same, with parts of different lengths: `counts` has one for each rank, alike on all ranks. Rank r's part arrives at
  /// element `displacements[r]` of `recv`; nil packs the parts in the order of ranks.
  public func allGather<T: RingElement>(
    _ send: [T], into recv: inout [T], counts: [Int], displacements: [Int]? = nil
  ) throws {
    try both(send, &recv) { try allGather($0, into: $1, counts: counts, displacements: displacements) }
  }

  /// Gives every rank the array of `root`.
  public func broadcast<T: RingElement>(_ array: inout [T], root: Int) throws {
    try array.withUnsafeMutableBufferPointer { try broadcast($0, root: root) }
  }

  /// Reduces the ranks' arrays, in place on rank `root`; the others' stay as they are.
  public func reduce<T: RingElement>(_ array: inout [T], _ op: ReduceOp, root: Int) throws {
    try array.withUnsafeMutableBufferPointer { try reduce(UnsafeBufferPointer($0), into: $0, op, root: root) }
  }

  /// Reduces the ranks' arrays and gives rank `root` the result. Elsewhere `recv` is ignored, and may be empty.
  public func reduce<T: RingElement>(_ send: [T], into recv: inout [T], _ op: ReduceOp, root: Int) throws {
    try both(send, &recv) { try reduce($0, into: $1, op, root: root) }
  }

  /// Gathers the ranks' arrays, alike long, on rank `root`: rank r's is the r-th of `size` parts of `recv`. Elsewhere `recv` is
  /// ignored, and may be empty.
  public func gather<T: RingElement>(_ send: [T], into recv: inout [T], root: Int) throws {
    try both(send, &recv) { try gather($0, into: $1, root: root) }
  }

  /// Gives each rank its part of the array of `root`: `send` is `size` parts, of which rank r gets the r-th. Elsewhere `send` is
  /// ignored, and may be empty.
  public func scatter<T: RingElement>(_ send: [T], into recv: inout [T], root: Int) throws {
    try both(send, &recv) { try scatter($0, into: $1, root: root) }
  }

  /// Sends a block to every rank and receives one from each: both arrays are `size` blocks, all of one length; the d-th of `send`
  /// goes to rank d, and that of rank s becomes the s-th of `recv`.
  public func allToAll<T: RingElement>(_ send: [T], into recv: inout [T]) throws {
    try both(send, &recv) { try allToAll($0, into: $1) }
  }

  /// The same, with blocks of different lengths: `sendCounts[d]` elements from element `sendDisplacements[d]` of `send` on go to rank d,
  /// and `recvCounts[s]` of rank s arrive at element `recvDisplacements[s]` of `recv`. Without displacements blocks are packed in
  /// the order of ranks.
  public func allToAll<T: RingElement>(
    _ send: [T], sendCounts: [Int], sendDisplacements: [Int]? = nil,
    into recv: inout [T], recvCounts: [Int], recvDisplacements: [Int]? = nil
  ) throws {
    try both(send, &recv) {
      try allToAll(
        $0, sendCounts: sendCounts, sendDisplacements: sendDisplacements,
        into: $1, recvCounts: recvCounts, recvDisplacements: recvDisplacements)
    }
  }

  /// The memory of two arrays, for a call.
  func both<T>(
    _ send: [T], _ recv: inout [T], _ body: (UnsafeBufferPointer<T>, UnsafeMutableBufferPointer<T>) throws -> Void
  ) rethrows {
    try send.withUnsafeBufferPointer { send in
      try recv.withUnsafeMutableBufferPointer { try body(send, $0) }
    }
  }
}
