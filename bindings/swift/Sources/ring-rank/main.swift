// A rank of the ring that the environment describes, which the tests start and end.
//   ring-rank sum     all-reduces once and prints the result
//   ring-rank stay    the same, and then makes no call until it is killed, for a minute at most
import Ring

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

do {
  let group = try Group.fromEnvironment()
  var values = (0..<5).map { Float(group.rank) + Float($0) / 2 }
  try group.allReduce(&values, .sum)
  print(group.rank, group.size, values)
  if CommandLine.arguments.dropFirst().first == "stay" { sleep(60) }
} catch {
  print(error)
  exit(1)
}
