import CLibring

/// The library that is loaded: its versions, and its log.
public enum RingLibrary {
  /// Its version as text, such as "0.1.0".
  public static var version: String { String(cString: ring_version_string()) }

  /// Its version as a number: `major << 16 | minor << 8 | patch`.
  public static var versionNumber: UInt32 { ring_version() }

  /// Its ABI.
  public static var abiVersion: UInt32 { ring_abi_version() }

  /// Sends log lines of `level` and more serious ones to `handler` from now on, for the whole process; nil turns the log off, as it is
  /// at first. The handler runs on any thread, one line at a time; calls on groups from inside it are refused. When this
  /// returns the former handler isn't running and won't be called again.
  public static func setLogHandler(
    upTo level: LogLevel = .info, _ handler: (@Sendable (LogLevel, String) -> Void)?
  ) throws {
    guard let handler = handler else { return try checked(ring_set_log_callback(nil, nil, level.rawValue)) }
    let sink = Unmanaged.passRetained(LogSink(handler))
    // Sinks stay for the process. Two threads that set handlers can't tell whose the library took last, and a lock that a handler
    // would wait for, with its thread waited for under it, never opened.
    try checked(
      ring_set_log_callback(
        { level, line, sink in
          Unmanaged<LogSink>.fromOpaque(sink!).takeUnretainedValue().handler(LogLevel(rawValue: level), String(cString: line!))
        }, sink.toOpaque(), level.rawValue)
    ) { sink.release() }
  }

  private static func checked(_ status: ring_status_t, otherwise: () -> Void = {}) throws {
    if status == RingError.Status.ok.rawValue { return }
    let error = RingError(status, group: nil)
    otherwise()
    throw error
  }
}

/// How much a log line matters; a smaller number is more serious.
public struct LogLevel: RawRepresentable, Hashable, Sendable {
  /// The number in `ring.h`.
  public let rawValue: Int32

  /// A level by its number.
  public init(rawValue: Int32) { self.rawValue = rawValue }

  /// A group has failed.
  public static let error = LogLevel(constant: RING_LOG_LEVEL_ERROR)
  /// Something is wrong, and the group lives on.
  public static let warn = LogLevel(constant: RING_LOG_LEVEL_WARN)
  /// What a person who watches would like to know.
  public static let info = LogLevel(constant: RING_LOG_LEVEL_INFO)
  /// Everything.
  public static let debug = LogLevel(constant: RING_LOG_LEVEL_DEBUG)
}

private final class LogSink {
  let handler: @Sendable (LogLevel, String) -> Void
  init(_ handler: @escaping @Sendable (LogLevel, String) -> Void) { self.handler = handler }
}
