//! The captures of another switch: those of a directory that `HOLDFAST_REFERENCE` names (docs/VALIDATION.md says how they are made), and
//! a case of our own, so that what reads them is tested where there are none.
#![expect(
    clippy::disallowed_macros,
    reason = "a test says what it skips and has found"
)]

#[path = "reference/captures.rs"]
mod captures;

use conformance::apps;
use std::fs;
use std::path::{Path, PathBuf};
use stf::Status;
use wire::pcap::Writer;

#[test]
fn the_reference_switch_agrees() {
    let Some(directory) = std::env::var_os("HOLDFAST_REFERENCE").map(PathBuf::from) else {
        println!("HOLDFAST_REFERENCE names no directory of captures");
        return;
    };
    let cases = captures::cases(&directory).expect("the directory of HOLDFAST_REFERENCE");
    assert!(!cases.is_empty(), "{}: no case", directory.display());
    let mut differing = Vec::new();
    for case in &cases {
        let result = captures::run_case(case, &apps::options(&[]));
        println!("{} {} {}", result.status.name(), result.name, result.reason);
        if result.status != Status::Passed {
            differing.push(result.name);
        }
    }
    assert!(
        differing.is_empty(),
        "{} of {}: {differing:?}",
        differing.len(),
        cases.len()
    );
}

/// A packet: its time and its bytes.
type Frame = (u64, Vec<u8>);

/// A directory with the program that cuts packets, and captures of it.
struct Case {
    directory: PathBuf,
    program: PathBuf,
}

impl Case {
    fn new(name: &str, captures: &[(&str, &[Frame])]) -> Case {
        let directory =
            std::env::temp_dir().join(format!("holdfast-{name}-{}", std::process::id()));
        let program = directory.join("truncate.p4");
        fs::create_dir_all(directory.join("truncate")).expect("a directory");
        let run = apps::root().join("tests/p4/run");
        fs::create_dir_all(directory.join("include")).expect("a directory");
        for file in ["truncate.p4", "include/rest.p4"] {
            fs::copy(run.join(file), directory.join(file)).expect("a copy");
        }
        for (file, frames) in captures {
            let mut writer = Writer::new(Vec::new()).expect("memory");
            for (time_ns, frame) in *frames {
                writer.write(*time_ns, frame).expect("memory");
            }
            let path = directory.join("truncate").join(file);
            fs::write(path, writer.into_inner()).expect("a file");
        }
        Case { directory, program }
    }

    fn run(&self) -> (Status, String) {
        let result = captures::run_case(&self.program, &apps::options(&[]));
        (result.status, result.reason)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Two ports in, in turns; one out.
const IN_0: &str = "pcap0_in.pcap";
const IN_2: &str = "pcap2_in.pcap";
const OUT_1: &str = "pcap1_out.pcap";

fn sent() -> [Vec<Frame>; 2] {
    [
        vec![(1000, vec![3, 0xaa, 0xbb, 0xcc]), (3000, vec![1, 0xdd])],
        vec![(2000, vec![2, 0xee, 0xff])],
    ]
}

fn left() -> Vec<Frame> {
    vec![
        (1500, vec![3, 0xaa, 0xbb]),
        (2500, vec![2, 0xee]),
        (3500, vec![1]),
    ]
}

#[test]
fn captures_are_sent_in_the_order_of_their_times_and_compared() {
    let [first, second] = sent();
    let case = Case::new("same", &[(IN_0, &first), (IN_2, &second), (OUT_1, &left())]);
    assert_eq!(case.run(), (Status::Passed, String::new()));
    let found = captures::cases(&case.directory).expect("the directory");
    assert_eq!(found, std::slice::from_ref(&case.program));

    // Another byte, a packet too few, a packet at a port that is silent.
    let mut other = left();
    other[1].1[1] = 0xef;
    let fewer = &left()[..2];
    for (name, captures) in [
        ("other", vec![(OUT_1, &other[..])]),
        ("fewer", vec![(OUT_1, fewer)]),
        (
            "port",
            vec![(OUT_1, &left()[..]), ("pcap7_out.pcap", fewer)],
        ),
    ] {
        let [first, second] = sent();
        let mut all = vec![(IN_0, &first[..]), (IN_2, &second[..])];
        all.extend(captures);
        let (status, reason) = Case::new(name, &all).run();
        assert_eq!(status, Status::Failed, "{name}");
        assert!(reason.contains("on the interpreter: port"), "{reason}");
    }
}

#[test]
fn what_is_no_case_is_said() {
    let [first, _] = sent();
    let said = |name: &str, change: &dyn Fn(&Case), expected: &str| {
        let case = Case::new(name, &[(IN_0, &first)]);
        change(&case);
        let (status, reason) = case.run();
        assert_eq!(status, Status::Failed);
        assert!(reason.contains(expected), "{reason}");
    };
    let write = |path: &Path, text: &str| fs::write(path, text).expect("a file");
    said(
        "name",
        &|case| write(&case.file("truncate/eth.pcap"), ""),
        "eth.pcap: a capture is named after its port and direction",
    );
    said(
        "capture",
        &|case| {
            write(
                &case.file("truncate/pcap0_in.pcap"),
                "no capture at all, but long enough",
            )
        },
        "pcap0_in.pcap: ",
    );
    said(
        "empty",
        &|case| fs::remove_file(case.file("truncate/pcap0_in.pcap")).expect("the file"),
        "no packet in any capture of what came in",
    );
    said(
        "packets",
        &|case| write(&case.file("truncate.stf"), "packet 0 00\n"),
        "line 1: packets of a case with captures are in the captures",
    );
}
