//! The measured P4 programs, built in, and their compilation to switches. It knows no table's contents.

use engine::{Executor, Switch, SwitchConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use syntax::{FileLoader, IncludeStyle, LoadError, Loaded, Loader};

/// The built-in files by the name that they are included by.
const FILES: [(&str, &str); 14] = [
    ("headers.p4", include_str!("../../../benches/headers.p4")),
    (
        "l2_switch.p4",
        include_str!("../../../benches/l2_switch.p4"),
    ),
    ("router.p4", include_str!("../../../benches/router.p4")),
    (
        "middleblock.p4",
        include_str!("../../../benches/middleblock.p4"),
    ),
    ("tables.p4", include_str!("../../../benches/tables.p4")),
    (
        "wide_field.p4",
        include_str!("../../../benches/wide_field.p4"),
    ),
    (
        "protect.p4",
        include_str!("../../../python/holdfast/apps/protect/protect.p4"),
    ),
    (
        "acceptance.p4",
        include_str!("../../../python/holdfast/apps/protect/acceptance.p4"),
    ),
    (
        "bier.p4",
        include_str!("../../../python/holdfast/apps/bier/bier.p4"),
    ),
    (
        "packet.p4",
        include_str!("../../../python/holdfast/apps/bier/packet.p4"),
    ),
    (
        "routing.p4",
        include_str!("../../../python/holdfast/apps/bier/routing.p4"),
    ),
    (
        "channels.p4",
        include_str!("../../../python/holdfast/apps/bier/channels.p4"),
    ),
    (
        "replication.p4",
        include_str!("../../../python/holdfast/apps/bier/replication.p4"),
    ),
    (
        "../headers.p4",
        include_str!("../../../python/holdfast/apps/headers.p4"),
    ),
];

/// Files in memory; nothing of the file system is read.
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
            IncludeStyle::Quoted => self.open(Path::new(name)),
        }
    }
}

/// A built-in program as machine code.
pub struct Code {
    program: Arc<ir::Program>,
    executor: Arc<dyn Executor>,
}

impl Code {
    /// A new switch that runs it.
    pub fn switch(&self) -> Switch {
        let (program, executor) = (self.program.clone(), self.executor.clone());
        Switch::new(program, executor, SwitchConfig::default())
    }
}

/// Compiles a built-in program to machine code.
pub fn code(name: &str, defines: &[(&str, String)]) -> Result<Code, String> {
    let libraries = FileLoader::new()
        .builtin("core.p4", compile::CORE_P4)
        .builtin("v1model.p4", compile::V1MODEL_P4);
    let options = compile::Options {
        include_dirs: Vec::new(),
        defines: (defines.iter())
            .map(|(name, value)| ((*name).to_string(), value.clone()))
            .collect(),
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

/// Compiles a built-in program to machine code; a switch that runs it.
pub fn switch(name: &str, defines: &[(&str, String)]) -> Result<Switch, String> {
    Ok(code(name, defines)?.switch())
}
