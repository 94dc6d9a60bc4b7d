//! The measured P4 programs, built in, and their compilation to switches. It knows no table's contents.

use engine::{Executor, Switch, SwitchConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use syntax::{FileLoader, IncludeStyle, LoadError, Loaded, Loader};

/// Lists the built-in files by their paths in the repository.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../", $path)))),*]
    };
}
const FILES: &[(&str, &str)] = files![
    "benches/headers.p4",
    "benches/l2_switch.p4",
    "benches/router.p4",
    "benches/router_psa.p4",
    "benches/middleblock.p4",
    "benches/tables.p4",
    "benches/wide_field.p4",
    "python/holdfast/apps/headers.p4",
    "python/holdfast/apps/discovery.p4",
    "python/holdfast/apps/domain.p4",
    "python/holdfast/apps/protect/protect.p4",
    "python/holdfast/apps/protect/acceptance.p4",
    "python/holdfast/apps/bier/bier.p4",
    "python/holdfast/apps/bier/packet.p4",
    "python/holdfast/apps/bier/routing.p4",
    "python/holdfast/apps/bier/channels.p4",
    "python/holdfast/apps/bier/replication.p4",
    "python/holdfast/apps/telemetry/telemetry.p4",
    "python/holdfast/apps/telemetry/packet.p4",
    "python/holdfast/apps/telemetry/int.p4",
    "python/holdfast/apps/telemetry/routing.p4",
    "python/holdfast/apps/telemetry/hop.p4",
    "python/holdfast/apps/telemetry/edge.p4",
    "python/holdfast/apps/telemetry/reports.p4",
    "python/holdfast/apps/shorternet/shorternet.p4",
    "python/holdfast/apps/bng/bng.p4",
    "python/holdfast/apps/bng/frames.p4",
    "python/holdfast/apps/bng/wire.p4",
    "python/holdfast/apps/bng/neighbours.p4",
    "python/holdfast/apps/bng/reasons.p4",
    "python/holdfast/apps/firewall/firewall.p4",
    "python/holdfast/apps/firewall/packet.p4",
    "python/holdfast/apps/firewall/flows.p4",
    "python/holdfast/apps/firewall/reasons.p4",
];

/// A loader of built-in files only, which reads nothing from the file system.
struct BuiltIn {
    libraries: FileLoader,
}

impl BuiltIn {
    fn file(name: &str) -> Option<Loaded> {
        let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
        Some(Loaded {
            path: PathBuf::from(name),
            text: (*text).to_string(),
        })
    }
}

impl Loader for BuiltIn {
    fn open(&self, path: &Path) -> Result<Loaded, LoadError> {
        let name = path.to_string_lossy();
        BuiltIn::file(&name).ok_or_else(|| LoadError::NotFound(vec![path.to_path_buf()]))
    }

    fn include(&self, name: &str, style: IncludeStyle, from: &Path) -> Result<Loaded, LoadError> {
        match style {
            IncludeStyle::Angled => self.libraries.include(name, style, from),
            IncludeStyle::Quoted => {
                let folder = from.parent().unwrap_or(Path::new(""));
                // From an application's folder to the one of all.
                let path = match name.strip_prefix("../") {
                    Some(above) => folder.parent().unwrap_or(folder).join(above),
                    None => folder.join(name),
                };
                self.open(&path)
            }
        }
    }
}

/// A built-in program, compiled to machine code.
pub struct Code {
    program: Arc<ir::Program>,
    executor: Arc<dyn Executor>,
}

impl Code {
    /// Makes a new switch that runs the compiled program.
    pub fn switch(&self) -> Switch {
        let (program, executor) = (self.program.clone(), self.executor.clone());
        Switch::new(program, executor, SwitchConfig::default())
    }
}

/// Compiles a built-in program to machine code. Fails if the program has errors.
pub fn code(name: &str, defines: &[(&str, String)]) -> Result<Code, String> {
    let libraries = compile::libraries();
    let libraries = libraries.fold(FileLoader::new(), |l, (name, text)| l.builtin(name, text));
    let options = compile::Options {
        include_dirs: Vec::new(),
        defines: (defines.iter())
            .map(|(name, value)| ((*name).to_string(), value.clone()))
            .collect(),
        ..Default::default()
    };
    let outcome = compile::compile_with(Path::new(name), &BuiltIn { libraries }, &options);
    let rendered = outcome.render();
    let program = Arc::new(outcome.compiled.ok_or(rendered)?.program);
    let executor = jit::compile(program.clone()).map_err(|e| e.to_string())?;
    Ok(Code {
        program,
        executor: Arc::new(executor),
    })
}

/// Compiles a built-in program to machine code, and returns a switch that runs it. Fails if the program has errors.
pub fn switch(name: &str, defines: &[(&str, String)]) -> Result<Switch, String> {
    Ok(code(name, defines)?.switch())
}
