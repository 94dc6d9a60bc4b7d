//! Runs a program and its script from files, or a directory of them, on the executors.
//!
//! `NAME.stf` tests `NAME.p4` beside it. It knows v1model and PSA; it skips scripts for another architecture with a message.

use crate::parse::parse;
use crate::run::run;
use crate::script::Script;
use compile::{Options, Outcome};
use engine::{Executor, Interpreter};
use ir::Program;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// All expectations were met, on every executor that was asked for.
    Passed,
    /// The script sends no packet and checks no state. The program compiles and loads into a switch of every
    /// executor, and the script's commands, if any, were accepted.
    Loaded,
    /// An expectation was not met.
    Failed,
    /// There is no program, or one for another architecture, so nothing was run.
    Skipped,
}

impl Status {
    /// Returns the status in words: `passed`, `passed without packets`, `failed` or `skipped`.
    pub fn name(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Loaded => "passed without packets",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }
}

/// The executors on which a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executors {
    /// Only the interpreter.
    Interpreter,
    /// Only machine code.
    MachineCode,
    /// Both, one after the other; their results must be equal.
    Both,
}

/// The result of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestResult {
    /// The script's file name without its extension; in a directory, its path from there.
    pub name: String,
    /// The result.
    pub status: Status,
    /// Why it failed or was skipped; empty if it passed.
    pub reason: String,
}

/// Finds the `.stf` scripts in a directory and in all directories below it, sorted by path. Does not follow
/// links to directories.
pub fn scripts(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut scripts = Vec::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(next) = directories.pop() {
        for entry in std::fs::read_dir(next)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|e| e == "stf") {
                scripts.push(path);
            }
        }
    }
    scripts.sort();
    Ok(scripts)
}

/// Runs all scripts in a directory and in all directories below it. `Err` if a directory cannot be read.
pub fn run_directory(directory: &Path, options: &Options) -> std::io::Result<Vec<TestResult>> {
    let result = |script: &PathBuf| {
        let from_here = script.strip_prefix(directory).unwrap_or(script);
        TestResult {
            name: from_here.with_extension("").to_string_lossy().into_owned(),
            ..run_file(script, options, Executors::Both)
        }
    };
    Ok(scripts(directory)?.iter().map(result).collect())
}

/// Runs one script on the program with the same name beside it.
pub fn run_file(script: &Path, options: &Options, executors: Executors) -> TestResult {
    result_of(script, test(script, options, executors))
}

/// Makes the result of a test from its outcome: a status, or a status with the reason for it. The test's name is that
/// of `file`, without its ending.
fn result_of(file: &Path, outcome: Result<Status, (Status, String)>) -> TestResult {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let (status, reason) = match outcome {
        Ok(status) => (status, String::new()),
        Err(ended) => ended,
    };
    TestResult {
        name: name.into_owned(),
        status,
        reason,
    }
}

/// Runs a program on both executors with the script that `script` returns; its error becomes the reason for a failed
/// test.
pub fn run_script(
    program: &Path,
    options: &Options,
    script: impl FnOnce() -> Result<Script, String>,
) -> TestResult {
    let script = || script().map_err(failed);
    result_of(
        program,
        test_program(program, options, Executors::Both, script),
    )
}

fn failed(reason: impl Into<String>) -> (Status, String) {
    (Status::Failed, reason.into())
}

fn skipped(reason: impl Into<String>) -> (Status, String) {
    (Status::Skipped, reason.into())
}

fn test(
    script: &Path,
    options: &Options,
    executors: Executors,
) -> Result<Status, (Status, String)> {
    let program = script.with_extension("p4");
    if !program.is_file() {
        return Err(skipped("there is no program of this name beside it"));
    }
    test_program(&program, options, executors, || {
        let text =
            std::fs::read(script).map_err(|e| failed(format!("{}: {e}", script.display())))?;
        let (parsed, problems) = parse(&String::from_utf8_lossy(&text));
        if let Some(problem) = problems.first() {
            return Err(failed(problem.to_string()));
        }
        Ok(parsed)
    })
}

fn test_program(
    program: &Path,
    options: &Options,
    executors: Executors,
    script: impl FnOnce() -> Result<Script, (Status, String)>,
) -> Result<Status, (Status, String)> {
    let outcome = compile::compile_file(program, options);
    if let Some(architecture) = other_architecture(&outcome) {
        let known = compile::architecture_names().replace(" and ", " or ");
        return Err(skipped(format!(
            "the program is for {architecture}, not {known}"
        )));
    }
    let script = script()?;
    let rendered = outcome.render();
    let Some(compiled) = outcome.compiled else {
        return Err(failed(format!("does not compile:\n{rendered}")));
    };
    run_on(&script, Arc::new(compiled.program), executors).map_err(failed)?;
    Ok(match script.checks_something() {
        true => Status::Passed,
        false => Status::Loaded,
    })
}

/// Returns the name of the architecture's file if a program is not for a known architecture: the first file other
/// than core.p4 that the main file includes, or "an architecture of its own" if it includes none. `None` if the
/// program includes the file of a known architecture, directly or not.
fn other_architecture(outcome: &Outcome) -> Option<String> {
    let files = outcome.sources.files();
    let is_known = |name: &str| {
        let name = name.rsplit(['/', '\\']).next();
        let mut known = compile::libraries().skip(1);
        known.any(|(file, _)| name == Some(file))
    };
    if files.iter().any(|f| is_known(&f.name)) {
        return None;
    }
    // A file that cannot be found is not among the files, so the text says its name.
    let included = files.first().into_iter().flat_map(|f| f.text.lines());
    let mut names = included.filter_map(|line| {
        let rest = line
            .trim_start()
            .strip_prefix('#')?
            .trim_start()
            .strip_prefix("include")?;
        let name = rest.split(['"', '<', '>']).nth(1)?;
        (!name.ends_with("core.p4")).then(|| name.to_string())
    });
    Some(
        names
            .next()
            .unwrap_or("an architecture of its own".to_string()),
    )
}

/// Runs a script on the interpreter and on machine code. `Err` if one of them does not behave as expected,
/// or if the two differ.
pub fn run_on_both(script: &Script, program: Arc<Program>) -> Result<(), String> {
    run_on(script, program, Executors::Both)
}

/// Runs a script on the given executors. `Err` if one does not behave as expected, or if two executors differ.
pub fn run_on(script: &Script, program: Arc<Program>, executors: Executors) -> Result<(), String> {
    let interpreted = || {
        let interpreter: Arc<dyn Executor> = Arc::new(Interpreter::new(program.clone()));
        run(script, program.clone(), interpreter)
            .map_err(|why| format!("on the interpreter: {why}"))
    };
    let compiled = || {
        let code =
            jit::compile(program.clone()).map_err(|why| format!("no machine code: {why}"))?;
        run(script, program.clone(), Arc::new(code))
            .map_err(|why| format!("as machine code: {why}"))
    };
    match executors {
        Executors::Interpreter => interpreted().map(drop),
        Executors::MachineCode => compiled().map(drop),
        Executors::Both => {
            let (reference, outputs) = (interpreted()?, compiled()?);
            if outputs == reference {
                return Ok(());
            }
            Err(format!(
                "the executors differ where anything was allowed:\n  interpreter  {reference:02x?}\n  machine code {outputs:02x?}"
            ))
        }
    }
}
