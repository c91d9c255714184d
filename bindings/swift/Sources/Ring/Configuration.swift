import CLibring

/// What a group is made of: this rank, and how it finds the others.
///
/// Exactly one of `hostfile`, `hosts` and `rendezvous` is set. Every other setting has a default.
public struct Configuration: Sendable {
  /// This rank, from 0.
  public var rank: Int?
  /// Ranks in the group. Must be set with a rendezvous; else nil, or as many as the hostfile has entries.
  public var size: Int?
  /// Path of a JSON hostfile: an array with one entry a rank, each an array of "host:port" strings or one such string.
  public var hostfile: String?
  /// Or its text.
  public var hosts: String?
  /// Or "host:port" where rank 0 listens, alike on all ranks.
  public var rendezvous: String?
  /// Ranks with another job id are refused. At most 255 bytes.
  public var jobID: String?
  /// Shared secret, 16 bytes to 4096, alike on all ranks; nil: peers are not authenticated. Data is not encrypted either way.
  public var secret: [UInt8]?
  /// For the whole of forming the ring; a minute by default.
  public var connectTimeout = Timeout.standard
  /// Without progress, after which a call fails; five minutes by default. Ranks may differ.
  public var timeout = Timeout.standard
  /// TCP connections per neighbour and address, alike on all ranks; nil is 1, at most 64.
  public var connections: Int?
  /// What goes over the connections.
  public var wire = Wire.native
  /// How ranks reach each other.
  public var transport = Transport.automatic
  /// Choices that all ranks must have alike.
  public var flags: Flags = []
  /// Directory for traces, of which each rank writes one file; nil: none is written.
  public var traceDirectory: String?
  /// After what time without progress a call puts a line in the log that names who it waits for; nil: none does. See
  /// ``RingLibrary/setLogHandler(upTo:_:)``.
  public var stallWarning: Timeout?

  /// A configuration in which nothing is set.
  public init() {}

  /// A rank of the ring that a hostfile of this text describes.
  public init(rank: Int, hosts: String) {
    self.rank = rank
    self.hosts = hosts
  }

  /// A rank of the ring that the hostfile at this path describes.
  public init(rank: Int, hostfile: String) {
    self.rank = rank
    self.hostfile = hostfile
  }

  /// A rank of a ring of `size` that meets where rank 0 listens.
  public init(rank: Int, size: Int, rendezvous: String) {
    self.rank = rank
    self.size = size
    self.rendezvous = rendezvous
  }

  /// A wire format.
  public struct Wire: RawRepresentable, Hashable, Sendable {
    /// The number in `ring.h`.
    public let rawValue: Int32
    /// A wire format by its number.
    public init(rawValue: Int32) { self.rawValue = rawValue }
    /// libring's own protocol.
    public static let native = Wire(constant: RING_WIRE_NATIVE)
    /// What stock MLX processes speak. Most calls are ``RingError/Status-swift.struct/unsupported`` on it.
    public static let mlx = Wire(constant: RING_WIRE_MLX)
  }

  /// A transport.
  public struct Transport: RawRepresentable, Hashable, Sendable {
    /// The number in `ring.h`.
    public let rawValue: Int32
    /// A transport by its number.
    public init(rawValue: Int32) { self.rawValue = rawValue }
    /// The best that both sides have.
    public static let automatic = Transport(constant: RING_TRANSPORT_AUTO)
    /// TCP.
    public static let tcp = Transport(constant: RING_TRANSPORT_TCP)
    /// Shared memory between ranks of one host, where a build has it.
    public static let sharedMemory = Transport(constant: RING_TRANSPORT_SHM)
  }

  /// Choices that all ranks must have alike.
  public struct Flags: OptionSet, Hashable, Sendable {
    /// The bits in `ring.h`.
    public let rawValue: UInt32
    /// Flags by their bits.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    /// Sums and means of `Float16` and ``BFloat16`` are kept in `Float` along the ring and rounded once.
    public static let wideAccumulation = Flags(rawValue: UInt32(RING_FLAG_WIDE_ACCUMULATION))
  }
}

/// How long to wait.
public struct Timeout: Hashable, Sendable {
  /// Milliseconds as `ring.h` has them: 0 is the default of what is set, the largest number for ever.
  public let milliseconds: UInt32

  private init(_ milliseconds: UInt32) { self.milliseconds = milliseconds }

  /// The library's default.
  public static let standard = Timeout(0)
  /// For ever.
  public static let infinite = Timeout(RING_TIMEOUT_INFINITE)

  /// So many milliseconds: at least 1, as 0 would be the default, and at most some 49 days.
  public static func milliseconds(_ count: Int) -> Timeout {
    Timeout(UInt32(clamping: min(max(count, 1), Int(clamping: RING_TIMEOUT_INFINITE - 1))))
  }

  /// So many seconds.
  public static func seconds(_ count: Int) -> Timeout {
    let (product, overflow) = count.multipliedReportingOverflow(by: 1000)
    return milliseconds(overflow ? (count < 0 ? Int.min : Int.max) : product)
  }
}

extension Configuration {
  /// Gives `body` the same for C; what it points to lives for the call.
  func withC<Result>(_ body: (UnsafePointer<ring_config_t>) throws -> Result) throws -> Result {
    var config = ring_config_t()
    ring_config_init(&config, MemoryLayout<ring_config_t>.size)
    config.rank = rank.map { Int32(clamping: $0) } ?? -1
    config.size = size.map { Int32(clamping: $0) } ?? 0
    config.connect_timeout_ms = connectTimeout.milliseconds
    config.timeout_ms = timeout.milliseconds
    config.connections = connections.map { UInt32(clamping: $0) } ?? 0
    config.wire = wire.rawValue
    config.transport = transport.rawValue
    config.flags = flags.rawValue
    config.stall_warning_ms = stallWarning?.milliseconds ?? 0
    let texts: [(WritableKeyPath<ring_config_t, UnsafePointer<CChar>?>, String?)] = [
      (\.hostfile, hostfile), (\.hosts, hosts), (\.rendezvous, rendezvous), (\.job_id, jobID), (\.trace_dir, traceDirectory),
    ]
    if texts.contains(where: { $0.1?.utf8.contains(0) ?? false }) {
      // In C it would be a shorter text, of another meaning.
      throw RingError(
        status: .invalidArgument, rank: nil, detectedBy: nil, osError: 0, sequence: 0,
        text: "ring_group_create: a text of the configuration has a NUL in it")
    }
    return try Configuration.set(texts[...], in: &config) { config in
      guard let secret = secret else { return try withUnsafePointer(to: &config, body) }
      return try secret.withUnsafeBytes { bytes in
        // An empty array may have no address, and an empty secret isn't none.
        config.secret = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1)
        config.secret_len = bytes.count
        return try withUnsafePointer(to: &config, body)
      }
    }
  }

  private static func set<Result>(
    _ texts: ArraySlice<(WritableKeyPath<ring_config_t, UnsafePointer<CChar>?>, String?)>, in config: inout ring_config_t,
    _ body: (inout ring_config_t) throws -> Result
  ) rethrows -> Result {
    guard let (field, text) = texts.first else { return try body(&config) }
    guard let text = text else { return try set(texts.dropFirst(), in: &config, body) }
    return try text.withCString { pointer in
      config[keyPath: field] = pointer
      return try set(texts.dropFirst(), in: &config, body)
    }
  }
}
