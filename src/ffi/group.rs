//! Groups: made, asked, destroyed.

use std::sync::Arc;

use super::boundary::{borrow, on_group, refuse_callback, status, value};
use super::config::{ring_config_t, settings};
use super::types::ring_status_t;
use crate::untyped::{DEFAULT_TIMEOUT, Group, settings_from_environment, timeout_from_ms};
use crate::{Error, Result, Status, log};

/// A communicator: this process's place in a ring of processes, from create to destroy. Any thread
/// may call any function on it; collectives are served first come, first served.
///
/// Functions: ring_group_create, ring_group_create_from_env, ring_group_rank, ring_group_size,
/// ring_group_failure, ring_group_last_error, ring_group_set_timeout, ring_group_split,
/// ring_group_abort, ring_group_destroy, and the collectives and messages.
pub struct ring_group {
    _opaque: [u8; 0],
}

/// A communicator.
pub type ring_group_t = ring_group;

/// Joins the ring that config describes, and gives the group in *out. Blocks until all ranks
/// have joined or connect_timeout_ms is over. Reads no environment variable. A ring of one needs no
/// socket. config and what it points to stay the caller's and may go once this has returned. The caller owns the
/// group and ends it with ring_group_destroy.
///
/// - RING_STATUS_INVALID_ARGUMENT: config or out is NULL, config->struct_size is wrong, or a field is set
///   that a newer header has and this library doesn't.
/// - RING_STATUS_INVALID_STATE: called from a callback.
/// - RING_STATUS_INVALID_CONFIG: a setting or the hostfile is wrong; the text says what.
/// - RING_STATUS_UNSUPPORTED: a setting is one that this build doesn't have.
/// - RING_STATUS_CONNECT_FAILED: an own address is taken; a neighbour, or with a rendezvous any rank,
///   didn't come in time, has other settings, or isn't a rank of this ring; the text names ranks,
///   addresses and errors. A rank that fails at once is only missing to those that had not met it: its
///   own text has the cause.
/// - RING_STATUS_AUTH_FAILED: the right neighbour, or rank 0 at the rendezvous, did not prove that it
///   knows config->secret, has a secret where this rank has none, or the reverse: at once. The same of the
///   left neighbour, or for rank 0 of those who come to it: after connect_timeout_ms, since it may have
///   been a stranger, and the rank may still come.
/// - RING_STATUS_SYSTEM: the host refused descriptors or threads.
/// - RING_STATUS_INTERNAL: the library has a fault of its own.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_group_create(
    config: *const ring_config_t,
    out: *mut *mut ring_group_t,
) -> ring_status_t {
    status(|| {
        check_out("ring_group_create", out)?;
        give(Group::create(&settings(config).and_then(|settings| settings.check())?)?, out)
    })
}

/// As ring_group_create, with the configuration from the environment. Of several variables for one
/// thing the first that is set wins:
///
/// - this rank: RING_RANK, MLX_RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, RANK;
/// - the others: RING_HOSTFILE, RING_RENDEZVOUS, MLX_HOSTFILE, MASTER_ADDR with MASTER_PORT (and 1 is
///   added to the port where TORCHELASTIC_USE_AGENT_STORE is True, since it is then taken);
/// - the number of ranks, which a rendezvous needs and a hostfile must have: RING_SIZE, else that of the
///   launcher which gave the rank (OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_NTASKS, WORLD_SIZE). With a
///   rendezvous and a rank from RING_RANK or MLX_RANK it is the first of these, unless that is 1.
///
/// And RING_JOB_ID, RING_SECRET or RING_SECRET_FILE (a file with the secret, less one newline at its
/// end), RING_CONNECT_TIMEOUT_MS, RING_TIMEOUT_MS, RING_STALL_WARNING_MS, RING_CONNECTIONS, RING_WIRE
/// (native or mlx), RING_TRANSPORT (auto, tcp or shm), RING_TRACE (the directory for traces), and RING_LOG
/// (error, warn, info or debug), which sends the log to stderr unless a log callback is set.
///
/// The statuses of ring_group_create; RING_STATUS_INVALID_CONFIG also where a variable is missing or
/// malformed.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_group_create_from_env(out: *mut *mut ring_group_t) -> ring_status_t {
    status(|| {
        check_out("ring_group_create_from_env", out)?;
        let (settings, level) = settings_from_environment(|name| std::env::var_os(name))?;
        let config = settings.check()?;
        if let Some(level) = level {
            log::set_if_off(log::stderr_sink(), level);
        }
        give(Group::create(&config)?, out)
    })
}

fn check_out(name: &str, out: *mut *mut ring_group_t) -> Result<()> {
    refuse_callback(name)?;
    match out.is_null() {
        true => Err(Error::new(Status::InvalidArgument, format!("{name}: out is NULL"))),
        false => Ok(()),
    }
}

fn give(group: Arc<Group>, out: *mut *mut ring_group_t) -> Result<()> {
    // SAFETY: checked not to be NULL; the caller has a pointer's room there.
    unsafe { out.write(Arc::into_raw(group).cast_mut().cast()) };
    Ok(())
}

/// This process's rank in group, from 0; -1 for NULL. Never blocks, also in a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ring_group_rank(group: *const ring_group_t) -> i32 {
    value(-1, || borrow(group).map_or(-1, |group| group.rank() as i32))
}

/// The number of ranks in group; -1 for NULL. Never blocks, also in a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ring_group_size(group: *const ring_group_t) -> i32 {
    value(-1, || borrow(group).map_or(-1, |group| group.size() as i32))
}

/// Sets how many milliseconds without progress, timeout_ms, a call that starts later may take: 0 is 300 s,
/// RING_TIMEOUT_INFINITE none. Ranks may differ. Never blocks; also on a group that has failed.
///
/// - RING_STATUS_INVALID_ARGUMENT: group is NULL.
/// - RING_STATUS_INVALID_STATE: called from a callback or in a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ring_group_set_timeout(group: *mut ring_group_t, timeout_ms: u32) -> ring_status_t {
    on_group("ring_group_set_timeout", group, |group| {
        group.set_timeout(timeout_from_ms(timeout_ms, DEFAULT_TIMEOUT));
        Ok(())
    })
}

/// A collective: the ranks that give the same color, 0 or more, form a group of their own, in the order of
/// their key and, where these are equal, of their ranks here. *out is this rank's new group, or NULL where
/// color is negative. Blocks until all ranks have called it and every new ring stands.
///
/// The new group has the timeouts, number of connections, flags, job id and secret of this one as they are
/// now, and connections and call numbers of its own. Both are used, fail, are aborted and destroyed independently, in
/// any order and from different threads. The caller owns it and ends it with ring_group_destroy.
///
/// Either all ranks get their group, or all get one status and none. Not sticky, and the group lives on:
///
/// - RING_STATUS_INVALID_ARGUMENT: group or out is NULL; the call takes its number, as a refused ring_all_reduce.
/// - RING_STATUS_INVALID_STATE: called from a callback or in a forked child.
/// - RING_STATUS_UNSUPPORTED: the group is on the MLX wire.
/// - RING_STATUS_CONNECT_FAILED: two ranks of a new group can't reach each other within the shorter of
///   connect_timeout_ms and half of the group's timeout; the text names them, by their ranks here, and says
///   why.
///
/// Sticky: as in ring_all_reduce.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_group_split(
    group: *mut ring_group_t,
    color: i32,
    key: i32,
    out: *mut *mut ring_group_t,
) -> ring_status_t {
    on_group("ring_group_split", group, |group| {
        let given = check_out("ring_group_split", out);
        let child = group.split(given.map(|()| (color, key)))?;
        let handle = child.map_or(std::ptr::null_mut(), |child| Arc::into_raw(child).cast_mut().cast());
        // SAFETY: the split refuses a NULL; the caller has a pointer's room there.
        unsafe { out.write(handle) };
        Ok(())
    })
}

/// Fails the group on every rank: calls that are blocked on it, here and elsewhere, return
/// RING_STATUS_ABORTED within 100 ms, with this rank named, and so does every later call. Any thread may
/// call it at any time, while others are blocked in calls, too; it never blocks. A group that has failed
/// already keeps its failure, and this is RING_STATUS_OK. Of ranks that abort at the same moment each may name
/// itself. The group is still to be destroyed.
///
/// - RING_STATUS_INVALID_ARGUMENT: group is NULL.
/// - RING_STATUS_INVALID_STATE: called from a callback or in a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ring_group_abort(group: *mut ring_group_t) -> ring_status_t {
    on_group("ring_group_abort", group, |group| {
        group.abort();
        Ok(())
    })
}

/// Leaves the ring and frees the group; NULL does nothing. Calls that other threads are blocked in
/// return RING_STATUS_ABORTED first. Unless the group has failed, what successful calls sent is
/// delivered if the peers' hosts take it within a second, for which this blocks. A peer that still
/// needs this rank gets RING_STATUS_PEER_LOST. Any thread may call it, once: the handle must not be used
/// afterwards. Requests live on until ring_request_destroy, and are done. In a forked child and from a callback it
/// does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ring_group_destroy(group: *mut ring_group_t) {
    let Some(ours) = borrow(group) else { return };
    if ours.check_usable().is_err() || refuse_callback("ring_group_destroy").is_err() {
        return;
    }
    value((), || ours.destroy());
    // SAFETY: made by Arc::into_raw in `give`; no call may follow.
    value((), || drop(unsafe { Arc::from_raw(group.cast::<Group>()) }));
}
