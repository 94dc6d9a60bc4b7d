//! The applications under test, compiled from their sources.

use crate::frames;
use crate::history::Dialect;
use crate::telemetry;
use crate::twin::Subject;
use compile::Options;
use std::path::{Path, PathBuf};

/// Returns the root directory of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the compiler's options with the repository's include directory and the macros `defines`, each a
/// name and a value.
pub fn options(defines: &[(&str, &str)]) -> Options {
    let define = |&(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    Options {
        include_dirs: vec![root().join("p4include")],
        defines: defines.iter().map(define).collect(),
        ..Default::default()
    }
}

/// An application under test: a program, its definitions, and what its histories consist of.
#[derive(Clone)]
pub struct Application {
    /// The name of the application, with the variant.
    pub name: String,
    /// The path of the program, relative to the repository's root.
    pub path: &'static str,
    /// The preprocessor's definitions: names and values.
    pub defines: Vec<(&'static str, String)>,
    /// The packets, parameters and first updates of its histories.
    pub dialect: Dialect,
}

impl Application {
    fn new(name: &str, path: &'static str, defines: &[(&'static str, &str)]) -> Application {
        let owned = |&(name, value): &(&'static str, &str)| (name, value.to_string());
        Application {
            name: name.to_string(),
            path,
            defines: defines.iter().map(owned).collect(),
            dialect: Dialect::of(frames::frame),
        }
    }

    fn with(self, dialect: Dialect) -> Application {
        Application { dialect, ..self }
    }

    /// Compiles the program for both executors (interpreter and machine code). `Err` holds the compiler's
    /// diagnostics, or why there is no machine code.
    pub fn subject(&self) -> Result<Subject, String> {
        let defines: Vec<(&str, &str)> = self.defines.iter().map(|(n, v)| (*n, &v[..])).collect();
        let outcome = compile::compile_file(&root().join(self.path), &options(&defines));
        let diagnostics = || format!("{}:\n{}", self.path, outcome.render());
        let program = match &outcome.compiled {
            Some(compiled) => compiled.program.clone(),
            None => return Err(diagnostics()),
        };
        Subject::new(program).map_err(|e| format!("{}: {e}", self.path))
    }
}

/// Returns all applications, with each of their variants.
pub fn all() -> Vec<Application> {
    let mut all = vec![
        router(),
        ipfrr(),
        protect(),
        protect_small_numbers(),
        rtag(),
        mpls(),
        ipmc(),
        bier("ONE_PASS", "ONE_PASS"),
        bier("RECIRCULATE", "ONE_PASS"),
        bier("CLUSTERS", "ONE_PASS"),
        bier("CLUSTERS", "RECIRCULATE"),
        bier_one_plus_one(),
        shorternet(),
        telemetry(Domain::ByDscp),
        telemetry(Domain::ByPort),
        telemetry(Domain::TransitOnly),
        thesis_telemetry(),
    ];
    all.extend(["ROUTED", "BRIDGED", "BINDINGS_ONLY"].map(firewall));
    all.extend(["SINGLE", "AUTH_ONLY", "FORWARD_ONLY"].map(bng));
    all.extend([balancer(), access()]);
    all
}

/// Returns the IP router without fast reroute.
pub fn router() -> Application {
    Application::new("router", "python/holdfast/apps/router/router.p4", &[])
}

/// Returns the router that knows how long packets may be.
pub fn router_with_mtus() -> Application {
    let defines = [("ROUTER_MTU", "1")];
    Application::new(
        "router_mtu",
        "python/holdfast/apps/router/router.p4",
        &defines,
    )
}

/// Returns the router with IP fast reroute. Its loopback addresses, for which tunnels are made, are all of
/// 10.0.0.0/8, since many generated packets have such addresses.
pub fn ipfrr() -> Application {
    let defines = [("LOOPBACKS", "0x0A000000 &&& 0xFF000000")];
    Application::new("ipfrr", "python/holdfast/apps/router/ipfrr.p4", &defines)
}

/// Returns P4-Protect with so few connections that whole tables and registers can be compared.
pub fn protect() -> Application {
    let path = "python/holdfast/apps/protect/protect.p4";
    Application::new("protect", path, &[("CONNECTIONS", "16")])
}

/// Returns P4-Protect with sequence numbers of only 4 bits, which wrap around often.
pub fn protect_small_numbers() -> Application {
    let path = "python/holdfast/apps/protect/protect.p4";
    let defines = [("CONNECTIONS", "16"), ("SN_BITS", "4")];
    Application::new("protect, small numbers", path, &defines)
}

/// Returns the 1+1 protection that uses R-TAGs (IEEE 802.1CB).
pub fn rtag() -> Application {
    let path = "python/holdfast/apps/protect/rtag.p4";
    Application::new("rtag", path, &[("CONNECTIONS", "16")]).with(Dialect::of(frames::rtag_frame))
}

/// Returns the MPLS router with recovery from failures.
pub fn mpls() -> Application {
    let path = "python/holdfast/apps/mpls/mpls.p4";
    Application::new("mpls", path, &[]).with(Dialect::of(frames::mpls_frame))
}

/// Returns the IP multicast router, with packets of BIER networks.
pub fn ipmc() -> Application {
    let path = "python/holdfast/apps/ipmc/ipmc.p4";
    Application::new("ipmc", path, &[]).with(Dialect::of(frames::bier_frame))
}

/// The preprocessor's definitions of every variant of BIER here: short BitStrings, and numbers that random groups and
/// sessions have.
const BIER: [(&str, &str); 4] = [
    ("BSL", "64"),
    ("CLUSTER_SAMPLING", "4"),
    ("FIRST_RECIRCULATION_SESSION", "3"),
    ("LOOPBACKS", "0x0A000000 &&& 0xFF000000"),
];

/// Returns BIER with its macro `REPLICATION`, the way to replicate packets, set to `replication`, and its
/// macro `CLUSTER_MISSES`, the way for BitStrings without a cluster, set to `cluster_misses`.
pub fn bier(replication: &'static str, cluster_misses: &'static str) -> Application {
    let ways = [
        ("REPLICATION", replication),
        ("CLUSTER_MISSES", cluster_misses),
    ];
    let name = format!("bier, {replication}, {cluster_misses}");
    let defines = [&BIER[..], &ways[..]].concat();
    Application::new(&name, "python/holdfast/apps/bier/bier.p4", &defines)
        .with(Dialect::of(frames::bier_frame))
}

/// Returns BIER with 1+1 protection of its packets.
pub fn bier_one_plus_one() -> Application {
    let defines = [&BIER[..], &[("ONE_PLUS_ONE", "1"), ("CONNECTIONS", "16")]].concat();
    let path = "python/holdfast/apps/bier/bier.p4";
    Application::new("bier, 1+1", path, &defines).with(Dialect::of(frames::bier_frame))
}

/// Returns Shorternet with so few contexts that whole tables can be compared. Its links to other edges are at the
/// ports with odd numbers.
pub fn shorternet() -> Application {
    let defines = [("CONTEXTS", "16"), ("SHORT_PORTS", "9w1 &&& 9w1")];
    let path = "python/holdfast/apps/shorternet/shorternet.p4";
    Application::new("shorternet", path, &defines).with(Dialect::of(frames::shorternet_frame))
}

/// Returns the firewall with the macro `variant` defined, and with few cells for flows. Most of its random packets
/// are refused, since their source address is seldom bound to the port at which they arrive.
pub fn firewall(variant: &'static str) -> Application {
    let defines = [
        (variant, "1"),
        ("WAY_BITS", "2"),
        ("SOURCE_BITS", "2"),
        ("RULES", "64"),
        ("LIMITS", "4"),
    ];
    let name = format!("firewall, {variant}");
    Application::new(&name, "python/holdfast/apps/firewall/firewall.p4", &defines)
}

/// How the nodes of an INT domain recognise packets with INT.
#[derive(Clone, Copy, Debug)]
pub enum Domain {
    /// By a DSCP.
    ByDscp,
    /// By a UDP port.
    ByPort,
    /// By a DSCP, and all nodes are transit nodes.
    TransitOnly,
}

/// Returns In-band Network Telemetry (INT) v2.1 for a kind of domain.
pub fn telemetry(domain: Domain) -> Application {
    let (name, defines) = match domain {
        Domain::ByDscp => ("telemetry", vec![]),
        Domain::ByPort => ("telemetry, by port", vec![("INT_UDP_PORT", "3")]),
        Domain::TransitOnly => ("telemetry, transit", vec![("INT_TRANSIT_ONLY", "1")]),
    };
    let path = "python/holdfast/apps/telemetry/telemetry.p4";
    Application::new(name, path, &defines).with(telemetry::dialect())
}

/// Returns the In-band Network Telemetry (INT) of the thesis, which has another packet format than INT v2.1.
pub fn thesis_telemetry() -> Application {
    let path = "python/holdfast/apps/telemetry/thesis.p4";
    Application::new("telemetry, thesis", path, &[]).with(telemetry::thesis_dialect())
}

/// Returns one of the two programs of the broadband gateway, selected by the macro `variant`, with registers and
/// meters so small that they can be compared as a whole.
pub fn bng(variant: &'static str) -> Application {
    let defines = [(variant, "1"), ("SESSION_IDS", "8"), ("LINE_CELLS", "4")];
    let name = format!("bng, {variant}");
    Application::new(&name, "python/holdfast/apps/bng/bng.p4", &defines)
        .with(Dialect::of(frames::bng_frame))
}

/// Returns the load balancer of the broadband gateway, with only 4 buckets.
pub fn balancer() -> Application {
    let defines = [("BUCKETS", "4"), ("ADDRESSES", "64")];
    let path = "python/holdfast/apps/bng/balancer.p4";
    Application::new("bng, balancer", path, &defines).with(Dialect::of(frames::bng_frame))
}

/// Returns the access node between subscribers and the broadband gateway.
pub fn access() -> Application {
    Application::new("bng, access", "python/holdfast/apps/bng/access.p4", &[])
        .with(Dialect::of(frames::bng_frame))
}
