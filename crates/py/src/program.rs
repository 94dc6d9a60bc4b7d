//! `Program`: a compiled program that any number of switches share, with the code that runs it.

use crate::errors::{CompileError, chosen, control_error};
use crate::handle::detached;
use engine::{Executor, Interpreter};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The executor that runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExecutorKind {
    Jit,
    Interpreter,
}

impl ExecutorKind {
    /// Parses the name of an executor: `jit` or `interpreter`. Fails for any other name.
    pub(crate) fn parse(name: &str) -> PyResult<ExecutorKind> {
        let choices = [
            ("jit", ExecutorKind::Jit),
            ("interpreter", ExecutorKind::Interpreter),
        ];
        chosen("executor must be", name, choices)
    }
}

/// An error or a warning of the compiler.
#[pyclass(module = "holdfast._core", get_all, set_all)]
pub(crate) struct Diagnostic {
    code: String,
    severity: String,
    message: String,
    file: String,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    notes: Vec<String>,
    hint: Option<String>,
    rendered: String,
}

/// Builds a [`CompileError`] with its rendered text and its diagnostics.
fn compile_error(rendered: &str, diagnostics: Vec<Py<Diagnostic>>) -> PyErr {
    let error = CompileError::new_err(rendered.to_owned());
    match Python::attach(|py| error.value(py).setattr("diagnostics", diagnostics)) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// An immutable compiled program, shared by any number of switches.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Program {
    ir: Arc<ir::Program>,
    p4info: String,
    // Serialized; empty for what was given as text.
    p4info_message: Vec<u8>,
    // The compiler's, serialized; empty if it is not known.
    own_p4info: Vec<u8>,
    warnings: Vec<Py<Diagnostic>>,
    // Made when first needed.
    machine_code: OnceLock<Result<Arc<dyn Executor>, String>>,
    interpreter: OnceLock<Arc<dyn Executor>>,
}

impl Program {
    fn new(
        ir: ir::Program,
        (p4info, p4info_message): (String, Vec<u8>),
        own_p4info: Vec<u8>,
        warnings: Vec<Py<Diagnostic>>,
    ) -> Program {
        Program {
            ir: Arc::new(ir),
            p4info,
            p4info_message,
            own_p4info,
            warnings,
            machine_code: OnceLock::new(),
            interpreter: OnceLock::new(),
        }
    }

    /// Returns the program in the compiler's intermediate representation.
    pub(crate) fn ir(&self) -> &Arc<ir::Program> {
        &self.ir
    }

    /// Returns the compiler's P4Info, serialized; empty if it is unknown.
    pub(crate) fn own_p4info(&self) -> &[u8] {
        &self.own_p4info
    }

    /// Returns the program's executor of this kind, which all switches share. The first call for a kind compiles it.
    pub(crate) fn executor(&self, kind: ExecutorKind) -> Result<Arc<dyn Executor>, String> {
        match kind {
            ExecutorKind::Jit => self
                .machine_code
                .get_or_init(|| match jit::compile(self.ir.clone()) {
                    Ok(executor) => Ok(Arc::new(executor)),
                    Err(error) => Err(error.to_string()),
                })
                .clone(),
            ExecutorKind::Interpreter => Ok(self
                .interpreter
                .get_or_init(|| Arc::new(Interpreter::new(self.ir.clone())))
                .clone()),
        }
    }

    /// Makes an engine's switch that runs this program. Must be called without the interpreter lock, since it may
    /// compile the program to machine code.
    pub(crate) fn make_switch(
        &self,
        kind: ExecutorKind,
        config: engine::SwitchConfig,
    ) -> Result<engine::Switch, String> {
        let executor = self.executor(kind)?;
        Ok(engine::Switch::new(self.ir.clone(), executor, config))
    }
}

/// What stands before and after the serialized P4Info, as hexadecimal digits, in the last line of an artifact. The
/// line is a comment of the program's text form. If its end is missing, the artifact was cut off.
const P4INFO_LINE: (&str, &str) = ("; p4info ", " end\n");

/// Returns the P4Info in an artifact, serialized and as text; both empty if it contains none. Fails if it is damaged.
fn p4info_in(text: &str) -> Result<(Vec<u8>, String), String> {
    let damaged = || "its P4Info is damaged".to_owned();
    let (begin, end) = P4INFO_LINE;
    let last = text.lines().next_back().unwrap_or_default();
    let Some(digits) = last.strip_prefix(begin) else {
        return Ok((Vec::new(), String::new()));
    };
    let digits = digits.strip_suffix(end.trim_end()).ok_or_else(damaged)?;
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let digits = pair.iter().map(|digit| char::from(*digit).to_digit(16));
        let digits: Option<Vec<u32>> = digits.collect();
        match digits?[..] {
            [high, low] => Some((high << 4 | low) as u8),
            _ => None,
        }
    });
    let message: Vec<u8> = pairs.collect::<Option<_>>().ok_or_else(damaged)?;
    let text = p4runtime::p4info_text(&message).map_err(|_| damaged())?;
    Ok((message, text))
}

/// The result of a compilation: the program if it has no errors, the diagnostics, and their text.
struct Compilation {
    compiled: Option<compile::Compiled>,
    diagnostics: Vec<Diagnostic>,
    rendered: String,
}

/// Converts the outcome of a compilation into its Python form, without the interpreter lock.
fn compiled(outcome: compile::Outcome) -> Compilation {
    let diagnostics = outcome.diagnostics.iter().map(|d| {
        let at = outcome.sources.location(d.span);
        let end = outcome.sources.location(d.span.after());
        Diagnostic {
            code: d.code.into(),
            severity: if d.is_error() { "error" } else { "warning" }.into(),
            message: d.message.clone(),
            file: at.file.to_string(),
            line: at.line,
            column: at.column,
            end_line: end.line,
            end_column: end.column,
            notes: d.notes.clone(),
            hint: d.hint.clone(),
            rendered: d.render(&outcome.sources),
        }
    });
    Compilation {
        diagnostics: diagnostics.collect(),
        rendered: outcome.render(),
        compiled: outcome.compiled,
    }
}

/// Returns the compiled program, or a [`crate::errors::CompileError`] with all diagnostics.
fn finish(compilation: Compilation) -> PyResult<Program> {
    let diagnostics = compilation
        .diagnostics
        .into_iter()
        .map(|diagnostic| Python::attach(|py| Py::new(py, diagnostic)))
        .collect::<PyResult<Vec<_>>>()?;
    match compilation.compiled {
        Some(compiled) => Ok(Program::new(
            compiled.program,
            (compiled.p4info.to_text(), compiled.p4info.to_bytes()),
            compiled.p4info.to_bytes(),
            diagnostics,
        )),
        None => Err(compile_error(&compilation.rendered, diagnostics)),
    }
}

fn options(include_dirs: Vec<PathBuf>, defines: BTreeMap<String, String>) -> compile::Options {
    compile::Options {
        include_dirs,
        defines: defines.into_iter().collect(),
        ..Default::default()
    }
}

/// Returns an empty map, the default of the parameter `defines`, which the Python signature shows as an ellipsis.
fn nothing() -> BTreeMap<String, String> {
    BTreeMap::new()
}

#[pymethods]
impl Program {
    /// Compiles the program in a file. Raises :class:`CompileError` if it has errors.
    #[staticmethod]
    #[pyo3(
        signature = (path, include_dirs=Vec::new(), defines=nothing()),
        text_signature = "(path, include_dirs=(), defines=...)"
    )]
    fn compile(
        path: PathBuf,
        include_dirs: Vec<PathBuf>,
        defines: BTreeMap<String, String>,
    ) -> PyResult<Program> {
        let options = options(include_dirs, defines);
        finish(detached(|| {
            compiled(compile::compile_file(&path, &options))
        }))
    }

    /// Compiles a program given as text; quoted includes are searched for beside ``name``. Raises
    /// :class:`CompileError` if it has errors.
    #[staticmethod]
    #[pyo3(
        signature = (source, name="program.p4", include_dirs=Vec::new(), defines=nothing()),
        text_signature = "(source, name='program.p4', include_dirs=(), defines=...)"
    )]
    fn compile_text(
        source: &str,
        name: &str,
        include_dirs: Vec<PathBuf>,
        defines: BTreeMap<String, String>,
    ) -> PyResult<Program> {
        let options = options(include_dirs, defines);
        finish(detached(|| {
            compiled(compile::compile_text(source, name, &options))
        }))
    }

    /// Returns a program's text after the preprocessor: with lines such as ``# 12 "file.p4"`` for the places in the
    /// source, and without; the files that it was read from, those that are built in among them; and its warnings. Raises
    /// :class:`CompileError` if the preprocessor finds errors.
    #[staticmethod]
    #[pyo3(
        signature = (path, include_dirs=Vec::new(), defines=nothing()),
        text_signature = "(path, include_dirs=(), defines=...)"
    )]
    fn preprocess(
        path: PathBuf,
        include_dirs: Vec<PathBuf>,
        defines: BTreeMap<String, String>,
    ) -> PyResult<(String, String, Vec<String>, Vec<Diagnostic>)> {
        let options = options(include_dirs, defines);
        let (text, plain, outcome) = detached(|| {
            let found = compile::preprocess_file(&path, &options);
            let outcome = compile::Outcome {
                compiled: None,
                diagnostics: found.diagnostics,
                sources: found.sources,
                checked: false,
            };
            (found.text, found.plain, outcome)
        });
        let files = outcome.sources.files().iter().map(|f| f.name.to_string());
        let files = files.filter(|name| name != "<command line>").collect();
        let accepted = outcome.accepted();
        let compilation = compiled(outcome);
        if !accepted {
            return finish(compilation).map(|_| Default::default());
        }
        Ok((text, plain, files, compilation.diagnostics))
    }

    /// Finds reads of invalid headers and of uninitialised variables in the program in a file. Each is a diagnostic
    /// with the path of packets that leads to it. If the program has errors, only these are returned.
    #[staticmethod]
    #[pyo3(
        signature = (path, include_dirs=Vec::new(), defines=nothing()),
        text_signature = "(path, include_dirs=(), defines=...)"
    )]
    fn examine(
        path: PathBuf,
        include_dirs: Vec<PathBuf>,
        defines: BTreeMap<String, String>,
    ) -> Vec<Diagnostic> {
        let options = options(include_dirs, defines);
        detached(|| compiled(compile::examine_file(&path, &options)).diagnostics)
    }

    /// Loads an artifact that :meth:`artifact` returned, after verifying it. ``p4info`` replaces the P4Info in the
    /// artifact. Raises :class:`ControlError` INVALID_ARGUMENT if it is damaged.
    #[staticmethod]
    #[pyo3(signature = (data, p4info=String::new()), text_signature = "(data, p4info='')")]
    fn from_artifact(data: &[u8], p4info: String) -> PyResult<Program> {
        let loaded: Result<_, String> = detached(|| {
            let text = std::str::from_utf8(data).map_err(|e| e.to_string())?;
            let own_p4info = p4info_in(text)?;
            let program = ir::text::parse(text).map_err(|e| e.to_string())?;
            ir::verify::verify(&program).map_err(|errors| {
                let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                texts.join("; ")
            })?;
            Ok((program, own_p4info))
        });
        match loaded {
            Ok((program, (own, text))) if p4info.is_empty() => {
                Ok(Program::new(program, (text, own.clone()), own, Vec::new()))
            }
            Ok((program, (own, _))) => {
                Ok(Program::new(program, (p4info, Vec::new()), own, Vec::new()))
            }
            Err(why) => {
                let message = format!("not a compiled program: {why}");
                Err(control_error("INVALID_ARGUMENT", &message))
            }
        }
    }

    /// Returns the compiled program with its P4Info, in the form in which P4Runtime transfers it
    /// (``p4_device_config``).
    fn artifact(&self) -> Vec<u8> {
        detached(|| {
            let mut text = ir::text::print(&self.ir);
            if !self.own_p4info.is_empty() {
                text.push_str(P4INFO_LINE.0);
                for byte in &self.own_p4info {
                    let _ = write!(text, "{byte:02x}");
                }
                text.push_str(P4INFO_LINE.1);
            }
            text.into_bytes()
        })
    }

    /// Returns the intermediate representation as text.
    #[getter]
    fn ir_text(&self) -> String {
        detached(|| ir::text::print(&self.ir))
    }

    /// Returns the name of the program, usually the stem of the source file's name.
    #[getter]
    fn name(&self) -> &str {
        &self.ir.name
    }

    /// Returns the P4Info in protobuf text format. For a program loaded from an artifact, it is the one given to
    /// :meth:`from_artifact`, or else the one in the artifact, empty if that has none.
    #[getter]
    fn p4info(&self) -> &str {
        &self.p4info
    }

    /// Returns the serialized ``P4Info``; empty for a program from :meth:`from_artifact` with a ``p4info``, or from
    /// an artifact without one.
    #[getter]
    fn p4info_message(&self) -> &[u8] {
        &self.p4info_message
    }

    /// Returns the warnings of the compiler.
    #[getter]
    fn warnings(&self, py: Python<'_>) -> Vec<Py<Diagnostic>> {
        self.warnings.iter().map(|w| w.clone_ref(py)).collect()
    }

    fn __repr__(&self) -> String {
        format!("<Program {}>", self.ir.name)
    }
}
