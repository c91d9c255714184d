// swift-tools-version:5.7
import PackageDescription

// libring itself is found by pkg-config: `make install`, or a stage of it that PKG_CONFIG_PATH names.
let package = Package(
  name: "Ring",
  // The first that have Float16; concurrency is older.
  platforms: [.macOS(.v11), .iOS(.v14), .tvOS(.v14), .watchOS(.v7)],
  products: [.library(name: "Ring", targets: ["Ring"])],
  targets: [
    // No providers: no package manager has libring.
    .systemLibrary(name: "CLibring", pkgConfig: "libring"),
    .target(name: "Ring", dependencies: ["CLibring"]),
    // A rank that the tests can kill.
    .executableTarget(name: "ring-rank", dependencies: ["Ring"]),
    .testTarget(name: "RingTests", dependencies: ["Ring", "ring-rank"]),
  ]
)
