//! Tests of whole connections. `channel` joins two ends, and `script` plays the other end from a text; the others are grouped by
//! mechanism.

mod bulk;
mod channel;
mod histories;
mod laws;
mod script;

/// One test per file of exchanges.
macro_rules! scripts {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                let file = concat!(stringify!($name), ".txt");
                script::run(file, include_str!(concat!("tests/scripts/", stringify!($name), ".txt")));
            }
        )*
    };
}

scripts!(
    bbr, dctcp, ecn, handshake, hpcc, newreno, ns2, rack, receiver, sack, timer, timestamps, window
);

/// The exchanges that `docs/COVERAGE.md` names as `file: name` for requirements of RFCs.
#[test]
fn exchanges_of_the_table_of_requirements_exist() {
    let text = include_str!("../../../docs/COVERAGE.md");
    let begin = text
        .find("### Requirements of the RFCs")
        .expect("the table");
    let table = text[begin..].split("\n## ").next().unwrap_or_default();
    let scripts = [
        ("newreno", include_str!("tests/scripts/newreno.txt")),
        ("sack", include_str!("tests/scripts/sack.txt")),
        ("rack", include_str!("tests/scripts/rack.txt")),
        ("timer", include_str!("tests/scripts/timer.txt")),
        ("window", include_str!("tests/scripts/window.txt")),
        ("receiver", include_str!("tests/scripts/receiver.txt")),
        ("handshake", include_str!("tests/scripts/handshake.txt")),
    ];
    let mut named = 0;
    for quoted in table.split('`').skip(1).step_by(2) {
        let Some((file, name)) = quoted.split_once(": ") else {
            continue;
        };
        let script = scripts.iter().find(|script| script.0 == file);
        let (_, script) = script.unwrap_or_else(|| panic!("no file {file}"));
        let heading = format!("== {name}");
        assert!(script.lines().any(|line| line == heading), "{quoted}");
        named += 1;
    }
    assert!(named > 30, "{named}");
}
