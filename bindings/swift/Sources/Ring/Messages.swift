import CLibring

// Messages go between any two ranks, beside the collectives; from one rank to another they arrive in the order of the calls.
extension Group {
  /// Sends the array to a rank. It may return before the peer receives, and blocks while the connection takes no more: two
  /// ranks that send to each other use ``sendReceive(_:to:into:from:)-swift.method``.
  public func send<T: RingElement>(_ buffer: UnsafeBufferPointer<T>, to destination: Int) throws {
    try call { ring_send($0, buffer.baseAddress, buffer.count, T.dataType.rawValue, Int32(clamping: destination)) }
  }

  /// Receives the next message of a rank, which must have as many elements as the array.
  public func receive<T: RingElement>(into buffer: UnsafeMutableBufferPointer<T>, from source: Int) throws {
    try call { ring_recv($0, buffer.baseAddress, buffer.count, T.dataType.rawValue, Int32(clamping: source)) }
  }

  /// Sends and receives at the same time. A rank that is nil means none; with both equal to this rank it copies.
  public func sendReceive<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, to destination: Int?, into recv: UnsafeMutableBufferPointer<T>, from source: Int?
  ) throws {
    try call {
      ring_send_recv(
        $0, send.baseAddress, send.count, Int32(clamping: destination ?? -1), recv.baseAddress, recv.count,
        Int32(clamping: source ?? -1), T.dataType.rawValue)
    }
  }

  /// Sends the array to a rank.
  public func send<T: RingElement>(_ array: [T], to destination: Int) throws {
    try array.withUnsafeBufferPointer { try send($0, to: destination) }
  }

  /// Receives the next message of a rank, which must have as many elements as the array.
  public func receive<T: RingElement>(into array: inout [T], from source: Int) throws {
    try array.withUnsafeMutableBufferPointer { try receive(into: $0, from: source) }
  }

  /// Sends and receives at the same time. A rank that is nil means none; with both equal to this rank it copies.
  public func sendReceive<T: RingElement>(
    _ send: [T], to destination: Int?, into recv: inout [T], from source: Int?
  ) throws {
    try both(send, &recv) { try sendReceive($0, to: destination, into: $1, from: source) }
  }
}
