//! A program and its script from files, on both executors; a directory of them.
//!
//! `NAME.stf` tests `NAME.p4` beside it.

use crate::parse::parse;
use crate::run::run;
use crate::script::Script;
use compile::Options;
use engine::{Executor, Interpreter};
use ir::Program;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Everything was as expected, on both executors.
    Passed,
    /// Something was not.
    Failed,
    /// There is nothing to run here: no program, or one for another architecture.
    Skipped,
}

impl Status {
    /// `passed`, `failed` or `skipped`.
    pub fn name(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }
}

/// The result of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestResult {
    /// The script's file name without its extension.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// Why it failed or was skipped; empty if it passed.
    pub reason: String,
}

/// Runs all scripts of a directory, by name. `Err` if the directory cannot be read.
pub fn run_directory(directory: &Path, options: &Options) -> std::io::Result<Vec<TestResult>> {
    let mut scripts: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "stf") {
            scripts.push(path);
        }
    }
    scripts.sort();
    Ok(scripts.iter().map(|s| run_file(s, options)).collect())
}

/// Runs one script against the program beside it.
pub fn run_file(script: &Path, options: &Options) -> TestResult {
    let name = script.file_stem().unwrap_or_default().to_string_lossy();
    let (status, reason) = match test(script, options) {
        Ok(()) => (Status::Passed, String::new()),
        Err((status, reason)) => (status, reason),
    };
    TestResult {
        name: name.into_owned(),
        status,
        reason,
    }
}

fn failed(reason: impl Into<String>) -> (Status, String) {
    (Status::Failed, reason.into())
}

fn test(script: &Path, options: &Options) -> Result<(), (Status, String)> {
    let skipped = |reason: &str| Err((Status::Skipped, reason.to_string()));
    let path = script.with_extension("p4");
    let Ok(source) = std::fs::read(&path) else {
        return skipped("there is no program of this name beside it");
    };
    if !String::from_utf8_lossy(&source).contains("v1model.p4") {
        return skipped("the program is not for v1model");
    }
    let text = std::fs::read(script).map_err(|e| failed(format!("{}: {e}", script.display())))?;
    let (parsed, problems) = parse(&String::from_utf8_lossy(&text));
    if let Some(problem) = problems.first() {
        return Err(failed(problem.to_string()));
    }
    let outcome = compile::compile_file(&path, options);
    let Some(compiled) = outcome.compiled else {
        return Err(failed(format!("does not compile:\n{}", outcome.render())));
    };
    run_on_both(&parsed, Arc::new(compiled.program)).map_err(failed)
}

/// Runs a script on the interpreter and as machine code. Both must do as expected, and the same.
pub fn run_on_both(script: &Script, program: Arc<Program>) -> Result<(), String> {
    let interpreter: Arc<dyn Executor> = Arc::new(Interpreter::new(program.clone()));
    let reference = run(script, program.clone(), interpreter)
        .map_err(|why| format!("on the interpreter: {why}"))?;
    let machine_code: Arc<dyn Executor> =
        Arc::new(jit::compile(program.clone()).map_err(|why| format!("no machine code: {why}"))?);
    let outputs =
        run(script, program, machine_code).map_err(|why| format!("as machine code: {why}"))?;
    if outputs != reference {
        return Err(format!(
            "the executors differ where anything was allowed:\n  interpreter  {reference:02x?}\n  machine code {outputs:02x?}"
        ));
    }
    Ok(())
}
