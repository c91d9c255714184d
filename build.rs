//! Generates include/ring.h from src/ffi, and names the shared library.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Version macros, and attributes that a compiler may lack.
fn after_includes() -> String {
    let part = |name: &str| env::var(name).unwrap_or_default();
    format!(
        "\n/** Of this header, as the next two; ring_version_string has the library's. */\n\
         #define RING_VERSION_MAJOR {}\n/** Likewise. */\n#define RING_VERSION_MINOR {}\n\
         /** Likewise. */\n#define RING_VERSION_PATCH {}\n\
         /** (major << 16) | (minor << 8) | patch, of this header; ring_version gives that of the library. */\n\
         #define RING_VERSION ((RING_VERSION_MAJOR << 16) | (RING_VERSION_MINOR << 8) | RING_VERSION_PATCH)\n\
         /** The ABI that this header describes: a library with another ring_abi_version isn't to be used with it. */\n\
         #define RING_ABI_VERSION 1\n\n\
         /** In a timeout: wait for ever. */\n\
         #define RING_TIMEOUT_INFINITE UINT32_MAX\n\n\
         /** Before a function: a compiler warns where its status is ignored. */\n\
         #if defined(__GNUC__) || defined(__clang__)\n\
         #define RING_NODISCARD __attribute__((warn_unused_result))\n\
         #else\n\
         #define RING_NODISCARD\n\
         #endif",
        part("CARGO_PKG_VERSION_MAJOR"),
        part("CARGO_PKG_VERSION_MINOR"),
        part("CARGO_PKG_VERSION_PATCH"),
    )
}

/// The files that the header is made of, in its order.
const SOURCES: [&str; 13] = [
    "version",
    "types",
    "errors",
    "config",
    "group",
    "collectives",
    "collectives_v",
    "messages",
    "custom",
    "requests",
    "log",
    "stats",
    "table",
];

/// The header's text; None while the source doesn't parse, which rustc will explain better.
fn header(root: &Path) -> Option<String> {
    let mut config = cbindgen::Config::from_root_or_default(root);
    config.after_includes = Some(after_includes());
    let builder = SOURCES.iter().fold(cbindgen::Builder::new(), |builder, name| {
        builder.with_src(root.join("src/ffi").join(name).with_extension("rs"))
    });
    match builder.with_config(config).generate() {
        Ok(bindings) => {
            let mut text = Vec::new();
            bindings.write(&mut text);
            String::from_utf8(text).ok()
        }
        Err(error) => {
            println!("cargo::warning=ring.h was not generated: {error}");
            None
        }
    }
}

/// What the linker calls the library: without it, programs would look for a path in target/.
fn name_library(profile: &Path) {
    let major = env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    match env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => {
            println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libring.{major}.dylib");
        }
        _ => {
            let soname = format!("libring.so.{major}");
            println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{soname}");
            // Unloading Rust code isn't safe: thread-local destructors would point into nothing.
            println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
            // The table's slots are the library's own, also where the host has a function called ring_send.
            println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
            // Programs that are linked against target/ look for the name there.
            #[cfg(unix)]
            let _ = std::os::unix::fs::symlink("libring.so", profile.join(soname));
        }
    }
}

fn main() {
    for input in ["src/ffi", "cbindgen.toml", "build.rs", "Cargo.toml", "include/ring.h"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    // OUT_DIR is target/PROFILE/build/PACKAGE/out.
    name_library(out.ancestors().nth(3).unwrap_or(&out));
    if let Some(text) = header(&root) {
        let generated = out.join("ring.h");
        let committed = root.join("include/ring.h");
        if fs::write(&generated, &text).is_ok() && fs::read_to_string(&committed).ok().as_ref() != Some(&text)
        {
            // A source tree that is read-only keeps the header it has; a test compares the two.
            let _ = fs::copy(&generated, &committed);
        }
    }
    println!("cargo::rustc-env=RING_GENERATED_HEADER={}", out.join("ring.h").display());
}
