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
