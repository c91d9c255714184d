//! From `ring_config_t` to settings.

use std::ffi::{CStr, OsString, c_char, c_void};
use std::os::unix::ffi::OsStringExt;

use super::sized::MAX_STRUCT;
use super::types::{ring_transport_t, ring_wire_t};
use crate::untyped::{self, MAX_SECRET, Secret, Settings};
use crate::{Error, Result, Status};

/// In the flags of ring_config_t, alike on all ranks: sums and means of float16 and bfloat16 are kept in
/// float32 from the first addition to the last and rounded once, a mean after its division. Without it each
/// addition rounds.
///
/// It holds for ring_all_reduce, ring_reduce_scatter, ring_reduce_scatter_v and ring_reduce, as requests, too,
/// and in groups that are split off. Values are added in the order that they have without it, and all ranks
/// end with the same bits. Nothing changes for other types and operations, or for a sum of two ranks.
///
/// It costs bytes, since partial sums travel as 4 an element in place of 2. The reduction alone (reduce_scatter,
/// reduce) sends up to twice as many; an all_reduce, whose results go round as 2, up to 1.5 times as many.
/// Groups of two send no partial sums, and neither do small calls, in which every rank's values travel as they
/// are: these send no more.
pub const RING_FLAG_WIDE_ACCUMULATION: u32 = 1;

const _: () = assert!(RING_FLAG_WIDE_ACCUMULATION == untyped::WIDE_ACCUMULATION);

/// What a group is made of. Set up by ring_config_init, which makes every field mean "default"; the
/// library copies what the pointers point to before ring_group_create returns.
///
/// Exactly one of hostfile, hosts and rendezvous is set; an empty string counts as set. Fields that this build
/// doesn't have are RING_STATUS_UNSUPPORTED when set.
///
/// A hostfile is a JSON array with one entry a rank, each an array of "host:port" strings (one
/// connection lane per address) or one such string. Hosts are IPv4, [IPv6], [IPv6%interface] or
/// names. A rank listens on its own entry's addresses and connects to those of the next rank; files
/// may differ between ranks in the other entries, where port 0 is allowed.
///
/// With a rendezvous only one address is known beforehand: "host:port", where rank 0 listens, in the
/// form of a hostfile's. Every other rank listens at a port that its system chooses, and tells rank 0,
/// which tells all where the others are once everyone has come: a rank is where rank 0 saw its connection
/// come from, and rank 0, with the ranks of its host, where each rank has reached it. Rank 0 alone
/// may have "0.0.0.0:port" or "[::]:port". Ranks reach each other directly, at any port.
#[repr(C)]
pub struct ring_config {
    /// sizeof(ring_config_t), set by ring_config_init.
    pub struct_size: usize,
    /// This rank, from 0; -1 is not set.
    pub rank: i32,
    /// Ranks in the group. With a rendezvous it must be set; else 0, or as many as the hostfile has
    /// entries.
    pub size: i32,
    /// Path of a JSON hostfile.
    pub hostfile: *const c_char,
    /// Or its text.
    pub hosts: *const c_char,
    /// Or "host:port" where rank 0 listens, alike on all ranks; needs rank and size.
    pub rendezvous: *const c_char,
    /// Ranks with another job id are refused; NULL is "". At most 255 bytes.
    pub job_id: *const c_char,
    /// Shared secret, 16 bytes to 4096, alike on all ranks: each proves to its neighbours that it knows
    /// it, and never sends it. NULL: peers are not authenticated. Data is not encrypted either way.
    pub secret: *const c_void,
    /// Bytes of the secret.
    pub secret_len: usize,
    /// Milliseconds for the whole of ring_group_create; 0 is 60 s, RING_TIMEOUT_INFINITE none.
    pub connect_timeout_ms: u32,
    /// Milliseconds without progress after which a call fails; 0 is 300 s, RING_TIMEOUT_INFINITE
    /// none. Ranks may differ.
    pub timeout_ms: u32,
    /// TCP connections per neighbour and address, alike on all ranks; 0 is 1, at most 64.
    pub connections: u32,
    /// RING_WIRE_NATIVE, or RING_WIRE_MLX to be one of stock MLX's ranks: then the ranks know each other by a
    /// hostfile of IPv4 addresses or names; rendezvous, secret, flags and more than one connection are
    /// RING_STATUS_INVALID_CONFIG, and job_id is told to nobody.
    pub wire: ring_wire_t,
    /// RING_TRANSPORT_AUTO or RING_TRANSPORT_TCP; RING_TRANSPORT_SHM is RING_STATUS_UNSUPPORTED in this build.
    pub transport: ring_transport_t,
    /// 0 or RING_FLAG_WIDE_ACCUMULATION, alike on all ranks; unknown bits are refused.
    pub flags: u32,
    /// Directory for traces; NULL: none. It is made if only its last part is missing. Each rank writes one file there,
    /// ring-ID-rank-RANK.json, in Chrome's trace format: the last 10,000 calls of this group and of those split from
    /// it, with times, bytes and waits. It is written when this group or the last of them is destroyed, at most once a
    /// second when another is, and when one has failed, then by the first call that returns the failure; it is always
    /// whole. What can't be written at such a moment goes to the log. RING_STATUS_INVALID_CONFIG where no file can be
    /// made there when the group is created.
    pub trace_dir: *const c_char,
    /// A call that has made no progress for so many milliseconds puts a line in the log, at
    /// RING_LOG_LEVEL_WARN; 0: none does. It names the rank that is waited for, and says whether that has
    /// made the call, as all ranks answer a moment later (with RING_WIRE_MLX, the neighbour that is waited for,
    /// as far as this rank sees). A further line comes each time that the wait has lasted twice as long; progress
    /// ends it, and a timeout that isn't longer comes first. The call goes on as it would, once a log callback has
    /// returned. Requests count from when they have their turn; ranks may differ; groups that are split off have
    /// it, too.
    pub stall_warning_ms: u32,
    /// 0.
    pub reserved: u32,
}

/// What a group is made of.
pub type ring_config_t = ring_config;

// No struct of the ABI ends in padding.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<ring_config>() == 104);

/// Sets up a configuration: zeroes struct_size bytes at config, then sets struct_size and rank (-1). Call it
/// with sizeof(ring_config_t). With NULL, or less than the struct's first version, it does nothing. Never blocks.
/// The struct stays the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ring_config_init(config: *mut ring_config_t, struct_size: usize) {
    if config.is_null() || struct_size < size_of::<ring_config>() {
        return;
    }
    // SAFETY: the caller has struct_size bytes there, which are at least the struct's.
    unsafe {
        config.cast::<u8>().write_bytes(0, struct_size);
        (*config).struct_size = struct_size;
        (*config).rank = -1;
    }
}

fn refused(status: Status, text: String) -> Error {
    Error::new(status, text)
}

/// Copies a caller's configuration.
pub(super) fn settings(config: *const ring_config) -> Result<Settings> {
    let ours = size_of::<ring_config>();
    if config.is_null() {
        return Err(refused(Status::InvalidArgument, "config is NULL".into()));
    }
    // SAFETY: not NULL, and every version of the struct begins with its size.
    let theirs = unsafe { (*config).struct_size };
    if !(ours..=MAX_STRUCT).contains(&theirs) {
        let text = format!(
            "struct_size is {theirs}, not sizeof(ring_config_t) = {ours}; was ring_config_init called?"
        );
        return Err(refused(Status::InvalidArgument, text));
    }
    // SAFETY: the caller has `theirs` bytes there: the struct, and a newer version's fields.
    let (config, beyond) = unsafe {
        let beyond = std::slice::from_raw_parts(config.cast::<u8>().add(ours), theirs - ours);
        (&*config, beyond)
    };
    if beyond.iter().any(|byte| *byte != 0) {
        let text = "a field is set that this version of the library doesn't know";
        return Err(refused(Status::InvalidArgument, text.into()));
    }
    Ok(Settings {
        rank: config.rank,
        size: config.size,
        hostfile: text(config.hostfile).map(OsString::from_vec),
        hosts: text(config.hosts),
        rendezvous: text(config.rendezvous),
        job_id: text(config.job_id).unwrap_or_default(),
        secret: secret(config.secret, config.secret_len)?,
        connect_timeout_ms: config.connect_timeout_ms,
        timeout_ms: config.timeout_ms,
        connections: config.connections,
        wire: config.wire,
        transport: config.transport,
        flags: config.flags,
        trace_dir: text(config.trace_dir).map(OsString::from_vec),
        stall_warning_ms: config.stall_warning_ms,
        reserved: config.reserved,
        ..Settings::default()
    })
}

fn text(pointer: *const c_char) -> Option<Vec<u8>> {
    // SAFETY: not NULL, and a caller's string ends in a NUL.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_bytes().to_vec())
}

fn secret(pointer: *const c_void, len: usize) -> Result<Option<Secret>> {
    match (pointer.is_null(), len) {
        (true, 0) => Ok(None),
        (false, 1..=MAX_SECRET) => {
            // SAFETY: not NULL, and the caller says that so many bytes are there.
            let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), len) };
            Ok(Some(Secret::new(bytes.to_vec())))
        }
        (true, _) => Err(refused(Status::InvalidConfig, format!("secret is NULL, but secret_len is {len}"))),
        (false, 0) => Err(refused(Status::InvalidConfig, "secret is set, but secret_len is 0".into())),
        _ => Err(refused(Status::InvalidConfig, format!("secret_len is {len}, more than {MAX_SECRET}"))),
    }
}
