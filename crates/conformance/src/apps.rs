//! The applications under test, compiled from their sources.

use crate::twin::Subject;
use compile::Options;
use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The options of the compiler, with the directories of includes.
pub fn options(defines: &[(&str, &str)]) -> Options {
    let define = |&(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    Options {
        include_dirs: vec![root().join("p4include")],
        defines: defines.iter().map(define).collect(),
        ..Default::default()
    }
}

/// A program of the repository on both executors; an error says why there is none.
pub fn subject(path: &str, defines: &[(&str, &str)]) -> Result<Subject, String> {
    let outcome = compile::compile_file(&root().join(path), &options(defines));
    let diagnostics = || format!("{path}:\n{}", outcome.render());
    let program = match &outcome.compiled {
        Some(compiled) => compiled.program.clone(),
        None => return Err(diagnostics()),
    };
    Subject::new(program).map_err(|e| format!("{path}: {e}"))
}

/// The router.
pub fn router() -> Result<Subject, String> {
    subject("python/holdfast/apps/router/router.p4", &[])
}

/// The router with IP fast reroute, for whose tunnels the packets' addresses are loopbacks too.
pub fn ipfrr() -> Result<Subject, String> {
    let defines = [("LOOPBACKS", "0x0A000000 &&& 0xFF000000")];
    subject("python/holdfast/apps/router/ipfrr.p4", &defines)
}

/// P4-Protect with tables and registers small enough to compare whole.
pub fn protect() -> Result<Subject, String> {
    let defines = [("CONNECTIONS", "16")];
    subject("python/holdfast/apps/protect/protect.p4", &defines)
}

/// P4-Protect with a number space so small that it wraps around all the time.
pub fn protect_small_numbers() -> Result<Subject, String> {
    let defines = [("CONNECTIONS", "16"), ("SN_BITS", "4")];
    subject("python/holdfast/apps/protect/protect.p4", &defines)
}

/// BIER with one way to replicate, short BitStrings, and numbers that random groups and sessions have.
pub fn bier(replication: &str, cluster_misses: &str) -> Result<Subject, String> {
    let defines = [
        ("BSL", "64"),
        ("REPLICATION", replication),
        ("CLUSTER_MISSES", cluster_misses),
        ("CLUSTER_SAMPLING", "4"),
        ("FIRST_RECIRCULATION_SESSION", "3"),
        ("LOOPBACKS", "0x0A000000 &&& 0xFF000000"),
    ];
    subject("python/holdfast/apps/bier/bier.p4", &defines)
}

/// Shorternet with tables small enough to compare whole, and short frames at all ports with odd numbers.
pub fn shorternet() -> Result<Subject, String> {
    let defines = [("CONTEXTS", "16"), ("SHORT_PORTS", "9w1 &&& 9w1")];
    subject("python/holdfast/apps/shorternet/shorternet.p4", &defines)
}

/// The firewall with few cells for flows; addresses and ports of random packets are seldom bound.
pub fn firewall(variant: &str) -> Result<Subject, String> {
    let defines = [
        (variant, "1"),
        ("WAY_BITS", "2"),
        ("SOURCE_BITS", "2"),
        ("RULES", "64"),
        ("LIMITS", "4"),
    ];
    subject("python/holdfast/apps/firewall/firewall.p4", &defines)
}

/// INT v2.1, with the indicator and the parts that the definitions say.
pub fn telemetry(defines: &[(&str, &str)]) -> Result<Subject, String> {
    subject("python/holdfast/apps/telemetry/telemetry.p4", defines)
}

/// The thesis's INT.
pub fn thesis_telemetry() -> Result<Subject, String> {
    subject("python/holdfast/apps/telemetry/thesis.p4", &[])
}

/// A plane of the gateway with registers and meters small enough to compare whole.
pub fn bng(variant: &str) -> Result<Subject, String> {
    let defines = [(variant, "1"), ("SESSION_IDS", "8"), ("LINE_CELLS", "4")];
    subject("python/holdfast/apps/bng/bng.p4", &defines)
}

/// The gateway's balancer with few buckets.
pub fn balancer() -> Result<Subject, String> {
    let defines = [("BUCKETS", "4"), ("ADDRESSES", "64")];
    subject("python/holdfast/apps/bng/balancer.p4", &defines)
}
