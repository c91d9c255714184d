# The targets Ring::ring and Ring::ring_static for a project that has this tree as a subdirectory (add_subdirectory,
# FetchContent): cargo builds them, as `make` does, when they are needed and the sources have changed. Crates that
# Cargo.lock names and cargo doesn't have yet are downloaded; with all of them it needs no network.
# Two parts of a project may each bring it: the first one's serves both.
if(TARGET Ring::ring)
  return()
endif()
get_filename_component(_ring_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
if(CMAKE_CROSSCOMPILING)
  message(FATAL_ERROR "libring is built for the host alone here: install it for the target, and use find_package(Ring)")
endif()

find_program(RING_CARGO cargo HINTS "$ENV{CARGO_HOME}/bin" "$ENV{HOME}/.cargo/bin" DOC "the cargo that builds libring")
if(NOT RING_CARGO)
  message(FATAL_ERROR "libring is built by cargo, and there is none: install Rust (rustup.rs), or set RING_CARGO")
endif()
set(RING_CARGO_DIR "${CMAKE_CURRENT_BINARY_DIR}/cargo" CACHE PATH "where cargo builds libring")

file(STRINGS "${_ring_root}/Cargo.toml" _ring_major REGEX "^version = " LIMIT_COUNT 1)
string(REGEX REPLACE "^version = \"([0-9]+).*" "\\1" _ring_major "${_ring_major}")
if(APPLE)
  set(_ring_shared "${RING_CARGO_DIR}/release/libring.dylib")
  set(_ring_soname "@rpath/libring.${_ring_major}.dylib")
  set(_ring_static_libs m)
else()
  set(_ring_shared "${RING_CARGO_DIR}/release/libring.so")
  set(_ring_soname "libring.so.${_ring_major}")
  set(_ring_static_libs pthread dl m)
endif()
set(_ring_static "${RING_CARGO_DIR}/release/libring.a")

# What cargo makes of unchanged sources keeps its time: a file of ours tells when it ran.
file(GLOB_RECURSE _ring_sources CONFIGURE_DEPENDS "${_ring_root}/src/*.rs")
add_custom_command(
  OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/built"
  BYPRODUCTS "${_ring_shared}" "${_ring_static}"
  # A target that the environment asks cargo for would have its libraries elsewhere.
  COMMAND "${CMAKE_COMMAND}" -E env --unset=CARGO_BUILD_TARGET "${RING_CARGO}" rustc --release --locked --lib
    --crate-type cdylib,staticlib --target-dir "${RING_CARGO_DIR}"
  COMMAND "${CMAKE_COMMAND}" -E touch "${CMAKE_CURRENT_BINARY_DIR}/built"
  DEPENDS ${_ring_sources} "${_ring_root}/Cargo.toml" "${_ring_root}/Cargo.lock" "${_ring_root}/build.rs"
    "${_ring_root}/cbindgen.toml"
  WORKING_DIRECTORY "${_ring_root}"
  COMMENT "Building libring with cargo"
  VERBATIM)
add_custom_target(ring_cargo DEPENDS "${CMAKE_CURRENT_BINARY_DIR}/built")

add_library(Ring::ring SHARED IMPORTED GLOBAL)
set_target_properties(Ring::ring PROPERTIES
  IMPORTED_LOCATION "${_ring_shared}"
  IMPORTED_SONAME "${_ring_soname}"
  INTERFACE_INCLUDE_DIRECTORIES "${_ring_root}/include")
add_library(Ring::ring_static STATIC IMPORTED GLOBAL)
set_target_properties(Ring::ring_static PROPERTIES
  IMPORTED_LOCATION "${_ring_static}"
  INTERFACE_LINK_LIBRARIES "${_ring_static_libs}"
  INTERFACE_INCLUDE_DIRECTORIES "${_ring_root}/include")
add_dependencies(Ring::ring ring_cargo)
add_dependencies(Ring::ring_static ring_cargo)
