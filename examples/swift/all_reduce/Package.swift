// swift-tools-version:5.7
import PackageDescription

let package = Package(
  name: "all_reduce",
  platforms: [.macOS(.v11)],
  dependencies: [.package(name: "Ring", path: "../../../bindings/swift")],
  targets: [.executableTarget(name: "all_reduce", dependencies: ["Ring"], path: ".", sources: ["main.swift"])]
)
