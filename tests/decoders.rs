//! What strangers and peers may send to the decoders, and people write into hostfiles: the properties of
//! the fuzz targets, on data of every kind that this can make, and on the fuzzers' seeds.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use ring::bootstrap::hostfile;
use ring::dtype::{Dtype, Op};
use ring::error::{Error, Status};
use ring::wire::{
    Answer, CallHeader, Frame, Guarded, Hello, Kind, LinkKind, MAX_ABSENT, MAX_JOB_ID, MAX_MESSAGES, Meeting,
    Member, Message, Opening, Place, Presence, Refused, Traffic, Unreached,
};

#[path = "../fuzz/src/allocations.rs"]
mod allocations;
#[path = "../fuzz/src/properties.rs"]
mod properties;

type Property = fn(&[u8]);

const TARGETS: [(&str, Property); 5] = [
    ("hello", properties::hello),
    ("opening", properties::opening),
    ("call_header", properties::call_header),
    ("control_frame", properties::control_frame),
    ("hostfile", properties::hostfile),
];

fn hello(kind: LinkKind, answer: Answer, job_id: &[u8]) -> Vec<u8> {
    let hello = Hello {
        versions: (1, 3),
        kind,
        little_endian: true,
        answer,
        lane: 5,
        lanes: 7,
        size: 9,
        from: 3,
        to: 4,
        flags: 0x8000_0001,
        group: [1; 16],
        nonce: std::array::from_fn(|i| 7 * i as u8),
        job_id: job_id.to_vec(),
    };
    hello.encode()
}

fn hellos() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("control", hello(LinkKind::Control, Answer::None, b"")),
        ("lane", hello(LinkKind::Lane, Answer::None, b"job-17")),
        ("message-out", hello(LinkKind::MessageOut, Answer::None, &[b'x'; MAX_JOB_ID])),
        ("message-in", hello(LinkKind::MessageIn, Answer::None, b"")),
        ("accepted", hello(LinkKind::Control, Answer::Accepted, b"job-17")),
        ("differs", hello(LinkKind::Lane, Answer::Differs, b"")),
        ("taken", hello(LinkKind::Control, Answer::Taken, b"")),
        ("other-job", hello(LinkKind::Control, Answer::OtherJob, "jöb\0".as_bytes())),
        ("myself", hello(LinkKind::Control, Answer::Myself, b"")),
        ("formed", hello(LinkKind::Control, Answer::Formed, b"job-17")),
        ("rival", hello(LinkKind::Rival, Answer::None, b"job-17")),
        ("pair", hello(LinkKind::Pair, Answer::None, b"job-17")),
        ("not-yet", hello(LinkKind::MessageOut, Answer::NotYet, b"job-17")),
        ("rendezvous", hello(LinkKind::Rendezvous, Answer::None, b"job-17")),
        ("with-more-behind", [hello(LinkKind::Lane, Answer::None, b"job"), vec![0x93; 48]].concat()),
    ]
}

fn openings() -> Vec<(&'static str, Vec<u8>)> {
    let challenge = Guarded::Challenge(std::array::from_fn(|i| 5 * i as u8)).encode();
    vec![
        ("accepted", hello(LinkKind::Lane, Answer::Accepted, b"job-17")),
        ("challenge", challenge.clone()),
        ("no-secret", Guarded::NoSecret.encode()),
        ("refused", Guarded::Refused.encode()),
        ("with-more-behind", [challenge, vec![0x93; 48]].concat()),
    ]
}

fn call_headers() -> Vec<(&'static str, Vec<u8>)> {
    let all_reduce = CallHeader {
        algorithm: 1,
        dtype: Some(Dtype::Float32),
        op: Some(Op::Sum),
        count: 1000,
        ..CallHeader::new(Kind::AllReduce, 17)
    };
    let all_gather = CallHeader {
        dtype: Some(Dtype::Complex64),
        count: u64::MAX,
        digest: 0x0123_4567_89ab_cdef,
        root: 3,
        ..CallHeader::new(Kind::AllGather, 1)
    };
    let message = CallHeader { dtype: Some(Dtype::Bool), ..CallHeader::new(Kind::Message, 1 << 40) };
    let refused = CallHeader { refused: Refused { sequence: 16, status: 1 }, ..all_reduce };
    let headers = [
        ("all-reduce", all_reduce),
        ("all-gather", all_gather),
        ("barrier", CallHeader::new(Kind::Barrier, 2)),
        ("message", message),
        ("after-a-refusal", refused),
    ];
    headers.map(|(name, header)| (name, header.encode().to_vec())).into()
}

/// What a rank says of itself that is in a call or not, with as many messages on their way.
fn present(in_call: bool, messages: usize) -> Vec<u8> {
    let header = |kind, sequence| CallHeader {
        dtype: Some(Dtype::Bfloat16),
        count: 1 << 33,
        ..CallHeader::new(kind, sequence)
    };
    let traffic = Traffic { sent: [1 << 20, 2], received: [3, u64::MAX], awaits: [false, true] };
    let message = |i| Message {
        peer: i as u32,
        sends: i % 2 == 0,
        is_request: false,
        header: header(Kind::Message, 1 + i as u64),
    };
    let presence = Presence {
        last: 16,
        call: in_call.then(|| (header(Kind::AllGather, 17), traffic)),
        messages: (0..messages).map(message).collect(),
        has_more: false,
    };
    Frame::Present { round: 9, rank: 4, presence }.encode()
}

/// What a rank says of itself while the ring forms.
fn known(right_address: Option<&str>) -> Vec<u8> {
    let member = Member {
        rank: 3,
        version: 2,
        nonce: std::array::from_fn(|i| 3 * i as u8),
        neighbours: [[2; 16], [0; 16]],
        right_address: right_address.map(|text| text.parse().unwrap()),
        boot_id: [0xb0; 16],
        cpus: 64,
    };
    Frame::Known(member).encode()
}

fn control_frames() -> Vec<(&'static str, Vec<u8>)> {
    let record = |text: &str| {
        let error = Error { sequence: 17, os_error: 104, ..Error::new(Status::PeerLost, text).at_rank(2) };
        Frame::record(&error, 1).encode()
    };
    let goodbye = Frame::Goodbye { rank: 3, sequence: 41 }.encode();
    let lost =
        "barrier(), call 17: the process of rank 2 (192.0.2.1:5000) has ended (Connection reset by peer)";
    let unreached = |text: &str| {
        let text = text.to_owned();
        Frame::Unreached(Unreached { from: 0, to: 2, number: 3, os_error: 111, text }).encode()
    };
    let meeting = |word| Frame::Meeting(word).encode();
    let at = |text: &str| Place::At(text.parse().unwrap());
    let places = vec![at("192.0.2.1:5000"), Place::BesideHost(40001), at("[fe80::1%7]:5001")];
    let unknown = Frame::record(&Error::new(Status::Timeout, ""), 0).encode();
    vec![
        ("record", record(lost)),
        ("record-without-text", unknown),
        ("record-cut", record(&"ä".repeat(2048))),
        ("goodbye", goodbye.clone()),
        ("roll-call", Frame::RollCall { round: 9 }.encode()),
        ("present", present(false, 0)),
        ("present-in-a-call", present(true, 0)),
        ("present-with-a-message", present(false, 1)),
        ("present-with-all", present(true, MAX_MESSAGES)),
        ("present-with-more", present(true, MAX_MESSAGES + 1)),
        ("unreached", unreached("rank 0 can't reach rank 2: 192.0.2.1:5000: Connection refused")),
        ("unreached-cut", unreached(&"ä".repeat(512))),
        ("known-alone", known(None)),
        ("known-on-ipv4", known(Some("192.0.2.1:5000"))),
        ("known-on-ipv6", known(Some("[fe80::1%7]:5001"))),
        ("confirmed", Frame::Confirmed { rank: 1, group: std::array::from_fn(|i| !(i as u8)) }.encode()),
        ("meeting-host", meeting(Meeting::Host { is_everywhere: true })),
        ("meeting-listening", meeting(Meeting::Listening { port: 40000 })),
        ("meeting-absent", meeting(Meeting::Absent { count: 300, ranks: (1..=MAX_ABSENT as u32).collect() })),
        ("meeting-places", meeting(Meeting::Places { first: 80, places })),
        ("several", [record(lost), present(true, 1), goodbye.clone(), goodbye].concat()),
    ]
}

/// Right and wrong ones.
fn hostfiles() -> Vec<(&'static str, Vec<u8>)> {
    let files = [
        ("two-lanes", r#"[["10.0.0.1:5000", "10.1.0.1:5000"], ["10.0.0.2:5000", "10.1.0.2:5000"]]"#),
        ("flat", r#"["Node-1.example.:80", "localhost:0", "0.0.0.0:65535"]"#),
        ("ipv6", r#"["[::1]:5000", "[fe80::1%eth0]:5000", "[::ffff:10.0.0.1]:1"]"#),
        ("odd-interface", r#"["[fe80::1%a\\\\\"b]:1", "[fe80::1%et\u00ad]:2"]"#),
        ("escaped", r#"["\u0061:1", "b\n:2"]"#),
        ("launcher", r#"[{"ssh": "a", "ips": ["10.0.0.1"]}, {"ssh": "b", "ips": ["10.0.0.2"]}]"#),
        ("object", r#"{"hosts": []}"#),
        ("twice", r#"["a:1", "A:01"]"#),
        ("no-brackets", r#"["::1:5000"]"#),
        ("cut", "[[\"a:1\"],\n [\"b:2\"]"),
        ("half-a-character", r#"["a:1", "\ud800:2"]"#),
        ("kinds", r#"[["a:1", 1e300], null, true, -0, [[{}]]]"#),
        ("address", "[fe80::1%wg-0.7]:5000"),
    ];
    files.map(|(name, text)| (name, text.as_bytes().to_vec())).into()
}

fn seeds(target: &str) -> Vec<(&'static str, Vec<u8>)> {
    match target {
        "hello" => hellos(),
        "opening" => openings(),
        "call_header" => call_headers(),
        "control_frame" => control_frames(),
        _ => hostfiles(),
    }
}

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

/// The seeds are what this version writes, so that fuzzing starts behind the first checks. Where
/// RING_WRITE_SEEDS is set they are written instead.
#[test]
fn the_fuzzers_seeds_are_this_versions() {
    let write = std::env::var_os("RING_WRITE_SEEDS").is_some();
    for (target, property) in TARGETS {
        let folder = corpus(target);
        if write {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
        }
        let seeds = seeds(target);
        for (name, bytes) in &seeds {
            property(bytes);
            if write {
                fs::write(folder.join(name), bytes).unwrap();
            }
            // Call headers are in the host's byte order.
            let same =
                cfg!(target_endian = "big") || fs::read(folder.join(name)).is_ok_and(|seed| seed == *bytes);
            assert!(same, "fuzz/corpus/{target}/{name}: run RING_WRITE_SEEDS=1 cargo test --test decoders");
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), seeds.len(), "files in fuzz/corpus/{target}");
    }
}

#[test]
fn the_seeds_of_the_wire_decode() {
    for (name, bytes) in hellos() {
        assert!(matches!(Hello::decode(&bytes), Ok(Some(_))), "{name}");
    }
    for (name, bytes) in openings() {
        assert!(matches!(Opening::decode(&bytes), Ok(Some(_))), "{name}");
    }
    for (name, bytes) in call_headers() {
        assert!(CallHeader::decode(bytes.first_chunk().unwrap()).is_some(), "{name}");
    }
    for (name, bytes) in control_frames() {
        assert!(matches!(Frame::decode(&bytes), Ok(Some(_))), "{name}");
    }
}

/// A seed in which some bytes have changed, cut or followed by others.
fn spoilt(target: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let seeds: Vec<_> = seeds(target).into_iter().map(|(_, bytes)| bytes).collect();
    let changes = prop::collection::vec((any::<Index>(), any::<u8>()), 0..4);
    // The first bytes have the lengths and kinds.
    let early = prop::collection::vec((0usize..24, any::<u8>()), 0..2);
    let more = prop::collection::vec(any::<u8>(), 0..64);
    (select(seeds), changes, early, any::<Index>(), any::<bool>(), more).prop_map(
        |(mut bytes, changes, early, end, cut, more)| {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            for (at, byte) in early {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            if cut {
                bytes.truncate(end.index(bytes.len()));
            }
            bytes.extend(more);
            bytes
        },
    )
}

fn any_header() -> impl Strategy<Value = CallHeader> {
    let kinds = select(Kind::ALL);
    let numbers = (any::<u8>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<i32>());
    let dtype = prop::option::of(select(Dtype::ALL));
    let op = prop::option::of(select(Op::ALL));
    let refused = (any::<u64>(), any::<i32>()).prop_map(|(sequence, status)| Refused { sequence, status });
    (kinds, dtype, op, numbers, refused).prop_map(|(kind, dtype, op, numbers, refused)| {
        let (algorithm, sequence, count, digest, number) = numbers;
        // One place holds either.
        let (root, element) = if kind.is_custom() { (-1, number as u32) } else { (number, 0) };
        CallHeader { kind, algorithm, dtype, op, sequence, count, digest, root, element, refused }
    })
}

proptest! {
    #[test]
    fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for (_, property) in TARGETS {
            property(&bytes);
        }
    }

    #[test]
    fn spoilt_hellos_are_judged(bytes in spoilt("hello")) {
        properties::hello(&bytes);
    }

    #[test]
    fn spoilt_openings_are_judged(bytes in spoilt("opening")) {
        properties::opening(&bytes);
    }

    #[test]
    fn spoilt_call_headers_are_judged(bytes in spoilt("call_header")) {
        properties::call_header(&bytes);
    }

    #[test]
    fn spoilt_control_frames_are_judged(bytes in spoilt("control_frame")) {
        properties::control_frame(&bytes);
    }

    #[test]
    fn spoilt_hostfiles_are_judged(bytes in spoilt("hostfile")) {
        properties::hostfile(&bytes);
    }

    #[test]
    fn nested_and_long_hostfiles_are_judged(
        piece in select(&["[", "{\"\":", "[],", "[[1],", "{\"\":0},", "\"a:1\",", "1,", "\\u0000", "\"ä\u{7f}"][..]),
        count in 0usize..3000,
    ) {
        let text = format!("[{}", piece.repeat(count));
        properties::hostfile(text.as_bytes());
        properties::hostfile(format!("{}0]", text).as_bytes());
        properties::hostfile(format!("[\"{}:1\"]", piece.replace('"', "x").repeat(count)).as_bytes());
    }

    #[test]
    fn call_headers_go_both_ways(header in any_header()) {
        prop_assert_eq!(CallHeader::decode(&header.encode()), Some(header));
        properties::call_header(&header.encode());
    }

    #[test]
    fn hellos_go_both_ways(job_id in prop::collection::vec(any::<u8>(), 0..=MAX_JOB_ID), sent in 0usize..400) {
        let bytes = hello(LinkKind::Lane, Answer::Accepted, &job_id);
        properties::hello(&bytes);
        properties::hello(&bytes[..sent.min(bytes.len())]);
    }
}

/// The largest hostfile that is read, made of one piece and what stands before it: each is wrong, and told
/// without a tree of it, which would take a hundred times its bytes. The most is a string with escapes, which
/// is decoded as it grows, kept, and said again in the words on what is wrong.
#[test]
fn a_large_wrong_hostfile_takes_little_memory() {
    const BYTES: usize = 4 << 20;
    let files = [
        ("[", "{\"\":0},", "0]"),
        ("[{", "\"key\":0,", "\"\":0}]"),
        ("[{", "\"\":{},", "\"ips\":0}]"),
        ("{", "\"\":[],", "\"hosts\":0}"),
        ("[", "[],", "0]"),
        ("[", "1,", "0]"),
        ("[", "\"a:0\",", "0]"),
        ("[", "\"a:1\",", "0]"),
        ("[[", "\"a:0\",", "0]]"),
        ("[\"", "x", "\"]"),
        ("[\"", ":", "\"]"),
        ("[\"", "\\u0041", "\"]"),
        ("[\"", "\\ud800", "\"]"),
        // Not JSON.
        ("", "[", ""),
        ("", "{\"hosts\":", ""),
        ("[", "[[1],", ""),
        ("[", "\"a:0\",", ""),
    ];
    for (before, piece, after) in files {
        let count = (BYTES - before.len() - after.len()) / piece.len();
        let text = format!("{before}{}{after}", piece.repeat(count));
        let parsed = allocations::at_most(5 * BYTES, || hostfile::parse(text.as_bytes(), "hosts"));
        let error = parsed.expect_err(piece).text;
        assert_eq!(error.contains("not JSON"), after.is_empty(), "{before}{piece}: {error}");
        assert!(error.len() < 1000, "{before}{piece}: {error}");
    }
}

#[test]
#[should_panic(expected = "bytes were allocated")]
fn an_allocation_of_a_peers_size_would_be_seen() {
    allocations::at_most(4096, || Vec::<u8>::with_capacity(4097));
}
