//! The first inputs of fuzzing: the programs of the repository's tests, generated and random valid programs, random histories.

use conformance::{apps, generated};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The number of random programs and histories.
const RANDOM: u64 = 40;

/// Returns the files that programs may include, by their names.
pub fn includes() -> &'static [(String, String)] {
    static INCLUDES: OnceLock<Vec<(String, String)>> = OnceLock::new();
    INCLUDES.get_or_init(|| {
        let files = [
            ("include/rest.p4", "tests/p4/run/include/rest.p4"),
            ("headers.p4", "python/holdfast/apps/headers.p4"),
            ("../headers.p4", "python/holdfast/apps/headers.p4"),
        ];
        let read = |path: &str| std::fs::read_to_string(apps::root().join(path));
        let mut includes = vec![
            ("core.p4".to_string(), compile::CORE_P4.to_string()),
            ("v1model.p4".to_string(), include_str!("../../p4include/v1model.p4").to_string()),
        ];
        for (name, path) in files {
            // Without one of them there is less to start from, and nothing else is lost.
            if let Ok(text) = read(path) {
                includes.push((name.to_string(), text));
            }
        }
        includes
    })
}

/// Writes the inputs to start from into the directory that `FUZZ_SEEDS` names, before libFuzzer reads it.
///
/// # Panics
/// If they cannot be written, or there are none.
pub fn write(target: &str) {
    let Some(directory) = std::env::var_os("FUZZ_SEEDS").map(PathBuf::from) else {
        return;
    };
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "no seeds for {target}");
    for (i, seed) in seeds.iter().enumerate() {
        let path = directory.join(format!("seed-{i:04}"));
        std::fs::write(&path, seed).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}

/// Returns the inputs that a target starts from.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "parse" | "compile" => {
            let mut sources = sources();
            sources.extend((0..RANDOM).map(generated_source));
            sources
        }
        "artifact" => artifacts(),
        "packet" => histories(),
        "capture" => captures(),
        "report" => reports(),
        "generated" => (0..RANDOM).map(generated::case).collect(),
        _ => Vec::new(),
    }
}

/// Generates a program, as text, from a seed.
fn generated_source(seed: u64) -> Vec<u8> {
    generated::source(&generated::case(seed)).into_bytes()
}

/// Returns an input that is not a mutant, when the target has an endless supply of those.
pub fn fresh(target: &str, seed: u64) -> Option<Vec<u8>> {
    match target {
        "parse" | "compile" => Some(generated_source(seed)),
        "artifact" => Some(ir::text::print(&ir::arbitrary::program(seed)).into_bytes()),
        "generated" => Some(generated::case(seed)),
        _ => None,
    }
}

fn sources() -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    collect(&apps::root().join("tests/p4"), &mut files);
    collect(&apps::root().join("python/holdfast/apps"), &mut files);
    let read = |path: &PathBuf| std::fs::read(path).ok();
    let sources = files.iter().filter_map(read);
    sources.filter(|s| s.len() <= crate::MAX_INPUT).collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "p4") {
            files.push(path);
        }
    }
}

fn artifacts() -> Vec<Vec<u8>> {
    let mut programs: Vec<ir::Program> = (0..RANDOM).map(ir::arbitrary::program).collect();
    let mut files = Vec::new();
    collect(&apps::root().join("tests/p4/run"), &mut files);
    let options = apps::options(&[]);
    let compiled = files
        .iter()
        .filter_map(|path| compile::compile_file(path, &options).compiled);
    programs.extend(compiled.map(|c| c.program));
    programs
        .iter()
        .map(|p| ir::text::print(p).into_bytes())
        .collect()
}

/// Returns a file of the older format, and one of the newer in each byte order with every kind of block that has packets.
fn captures() -> Vec<Vec<u8>> {
    let mut writer = wire::pcap::Writer::new(Vec::new()).expect("memory takes a header");
    for length in [0, 14, 60] {
        writer
            .write(1_000_000_007, &vec![0xab; length])
            .expect("memory takes a packet");
    }
    vec![writer.into_inner(), pcapng(false), pcapng(true)]
}

/// Builds a pcapng file: section header, interface with a resolution and an offset, enhanced, simple and obsolete packet, and a
/// block that nobody knows.
fn pcapng(big_endian: bool) -> Vec<u8> {
    let u16 = |n: u16| match big_endian {
        true => n.to_be_bytes(),
        false => n.to_le_bytes(),
    };
    let u32 = |n: u32| match big_endian {
        true => n.to_be_bytes(),
        false => n.to_le_bytes(),
    };
    let block = |kind: u32, body: Vec<u8>| {
        let length = u32(12 + body.len() as u32);
        [&u32(kind)[..], &length, &body, &length].concat()
    };
    let frame = [0x5a; 16];
    let section = [
        &u32(0x1a2b_3c4d)[..],
        &u16(1),
        &u16(0),
        &[0xff; 8], // of unknown length
    ];
    let options = [
        &u16(9)[..],
        &u16(1),
        &[9, 0, 0, 0], // nanoseconds
        &u16(14),
        &u16(8),
        &[0; 8],
        &u16(0),
        &u16(0),
    ];
    let interface = [&u16(1)[..], &u16(0), &u32(64), &options.concat()];
    let times = [&u32(0)[..], &u32(1_000_000)].concat();
    let lengths = [&u32(16)[..], &u32(20)].concat();
    let enhanced = [&u32(0)[..], &times, &lengths, &frame];
    let simple = [&u32(16)[..], &frame];
    let obsolete = [&u16(0)[..], &u16(0), &times, &lengths, &frame];
    [
        block(0x0a0d_0d0a, section.concat()),
        block(1, interface.concat()),
        block(6, enhanced.concat()),
        block(3, simple.concat()),
        block(2, obsolete.concat()),
        block(0x0bad, vec![0; 8]),
    ]
    .concat()
}

/// Returns telemetry reports: with INT-MD over TCP; with INT-MX over UDP with its port; of a drop, of a frame and of TLVs; several
/// of them in one payload; and one of the thesis.
fn reports() -> Vec<Vec<u8>> {
    let ipv4 = |protocol: u8, dscp: u8| {
        let addresses = [10, 0, 0, 1, 10, 0, 0, 2];
        [
            &[0x45, dscp << 2, 0, 0, 0, 0, 0, 0, 60, protocol, 0, 0][..],
            &addresses,
        ]
        .concat()
    };
    let tcp = [&[0, 1, 0, 80][..], &[0; 16]].concat();
    let udp = [0, 1, 0xD4, 0x31, 0, 0, 0, 0];
    // Node and latency of two hops.
    let stack = [&[0; 3][..], &[2, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 10]].concat();
    let md = [
        &[0x10, 7, 0, 0, 0x20, 0, 2, 8, 0xA0, 0, 0, 0, 0, 0, 0, 0][..],
        &stack,
    ]
    .concat();
    let mx = [0x34, 3, 7, 0xD0, 0x20, 0, 0, 0, 0xA0, 0, 0, 0, 0, 0, 0, 0];
    let group = [0x20, 0, 0, 5, 0, 0, 0, 3];
    let report = |in_type: u8, flags: u8, bits: u16, metadata: &[u8], packet: &[u8]| {
        let words = [0xFF, (metadata.len() / 4) as u8];
        let main = [&bits.to_be_bytes()[..], &[0; 6]].concat();
        [
            &[0x10 | in_type][..],
            &words,
            &[flags],
            &main,
            metadata,
            packet,
        ]
        .concat()
    };
    let of_md = report(
        4,
        0x20,
        0x2000,
        &[0, 0, 0, 30],
        &[ipv4(6, 0x17), tcp.clone(), md].concat(),
    );
    let of_mx = report(
        4,
        0x20,
        0x5000,
        &[1; 8],
        &[&ipv4(17, 0)[..], &udp, &mx].concat(),
    );
    let of_drop = report(4, 0x80, 0x4001, &[7; 8], &[ipv4(6, 0), tcp].concat());
    let ipv6 = [&[0x65, 0xC0, 0, 0, 0, 0, 17, 60][..], &[9; 32], &udp].concat();
    let frame = [&[0; 12][..], &[0x81, 0, 0, 5, 0x86, 0xDD], &ipv6].concat();
    let of_frame = report(3, 0x40, 0xFFFF, &[3; 80], &frame);
    let tlvs = [&[0, 1, 0, 0, 1, 1, 1, 1, 0x30, 12, 0, 0][..], &ipv6].concat();
    let of_tlvs = report(1, 0x20, 0x0E00, &[4; 24], &tlvs);
    let mut first = of_md.clone();
    first[1] = ((first.len() - 4) / 4) as u8;
    let thesis = [&[2, 0, 9][..], &[5; 24]].concat();
    let payloads = [
        of_md,
        of_mx.clone(),
        of_drop,
        of_frame,
        of_tlvs,
        [first, of_mx].concat(),
    ];
    let grouped = payloads.map(|it| [&group[..], &it].concat());
    grouped.into_iter().chain([thesis]).collect()
}

fn histories() -> Vec<Vec<u8>> {
    let history = |seed: u64| {
        let mut rng = ir::arbitrary::Rng::new(seed);
        (0..600).map(|_| rng.below(256) as u8).collect()
    };
    (0..RANDOM).map(history).collect()
}
