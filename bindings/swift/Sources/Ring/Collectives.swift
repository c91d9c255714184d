import CLibring

// Over memory that the caller keeps: parts of arrays, and arrays that aren't Swift's.
extension Group {
  /// Reduces the ranks' arrays element by element and gives every rank the result. In place is `send` at the memory of `recv`; no
  /// other overlap is allowed. Every rank gets the same bits.
  public func allReduce<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>, _ op: ReduceOp
  ) throws {
    try call(recv.count, fits: send.count == recv.count, pairText("all_reduce", send.count, recv.count)) {
      ring_all_reduce($0, send.baseAddress, recv.baseAddress, $1, T.dataType.rawValue, op.rawValue)
    }
  }

  /// Reduces the ranks' arrays and gives each rank its part of the result: `send` is `size` parts, of which rank r gets the r-th.
  /// In place is `recv` at this rank's part of `send`.
  public func reduceScatter<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>, _ op: ReduceOp
  ) throws {
    try call(recv.count, fits: areParts(recv.count, of: send.count), partsText("reduce_scatter", "send", send.count, recv.count)) {
      ring_reduce_scatter($0, send.baseAddress, recv.baseAddress, $1, T.dataType.rawValue, op.rawValue)
    }
  }

  /// Gathers the ranks' arrays, alike long, on every rank: rank r's is the r-th of `size` parts of `recv`. In place is `send` at
  /// this rank's part of `recv`.
  public func allGather<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>
  ) throws {
    try call(send.count, fits: areParts(send.count, of: recv.count), partsText("all_gather", "recv", recv.count, send.count)) {
      ring_all_gather($0, send.baseAddress, recv.baseAddress, $1, T.dataType.rawValue)
    }
  }

  /// Gives every rank the array of `root`.
  public func broadcast<T: RingElement>(_ buffer: UnsafeMutableBufferPointer<T>, root: Int) throws {
    try call { ring_broadcast($0, buffer.baseAddress, buffer.count, T.dataType.rawValue, Int32(clamping: root)) }
  }

  /// Reduces the ranks' arrays and gives rank `root` the result. Elsewhere `recv` is ignored. In place is `send` at the memory
  /// of `recv`, on the root.
  public func reduce<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>, _ op: ReduceOp, root: Int
  ) throws {
    let fits = root != rank || send.count == recv.count
    try call(send.count, fits: fits, pairText("reduce", send.count, recv.count)) {
      ring_reduce(
        $0, send.baseAddress, recv.baseAddress, $1, T.dataType.rawValue, op.rawValue, Int32(clamping: root))
    }
  }

  /// Gathers the ranks' arrays, alike long, on rank `root`: rank r's is the r-th of `size` parts of `recv`. Elsewhere `recv` is
  /// ignored. In place is `send` at the root's own part of `recv`.
  public func gather<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>, root: Int
  ) throws {
    let fits = root != rank || areParts(send.count, of: recv.count)
    try call(send.count, fits: fits, partsText("gather", "recv", recv.count, send.count)) {
      ring_gather($0, send.baseAddress, recv.baseAddress, $1, T.dataType.rawValue, Int32(clamping: root))
    }
  }

  /// Gives each rank its part of the array of `root`: `send` is `size` parts, of which rank r gets the r-th. Elsewhere `send` is
  /// ignored. In place is `recv` at the root's own part of `send`.
  public func scatter<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>, root: Int
  ) throws {
    let fits = root != rank || areParts(recv.count, of: send.count)
    try call(recv.count, fits: fits, partsText("scatter", "send", send.count, recv.count)) {
      ring_scatter($0, send.baseAddress, recv.baseAddress, $1, T.dataType.rawValue, Int32(clamping: root))
    }
  }

  /// Sends a block to every rank and receives one from each: both arrays are `size` blocks, all of one length; the d-th of `send`
  /// goes to rank d, and that of rank s becomes the s-th of `recv`. No overlap is allowed.
  public func allToAll<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>
  ) throws {
    try call(send.count / size, fits: areBlocks(send.count, recv.count), blocksText(send.count, recv.count)) {
      ring_all_to_all($0, send.baseAddress, recv.baseAddress, $1, T.dataType.rawValue)
    }
  }

  /// Blocks until every rank of the group has called it.
  public func barrier() throws {
    try call { ring_barrier($0) }
  }

  func areParts(_ part: Int, of whole: Int) -> Bool {
    let (all, overflow) = part.multipliedReportingOverflow(by: size)
    return !overflow && all == whole
  }

  func partsText(_ call: String, _ name: String, _ whole: Int, _ part: Int) -> String {
    let other = name == "send" ? "recv" : "send"
    // A text alone: what wraps is longer than memory.
    return "\(call): \(name) has \(whole) elements and needs \(part &* size) (\(other)'s \(part) for each of \(size) ranks)"
  }

  func pairText(_ call: String, _ send: Int, _ recv: Int) -> String {
    "\(call): send has \(send) elements and recv \(recv)"
  }

  func areBlocks(_ send: Int, _ recv: Int) -> Bool { send == recv && send % size == 0 }

  func blocksText(_ send: Int, _ recv: Int) -> String {
    "all_to_all: send has \(send) elements and recv \(recv): both are \(size) blocks of one length"
  }
}
