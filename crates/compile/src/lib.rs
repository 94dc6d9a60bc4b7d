//! P4_16 tree to IR: the compiler of v1model and PSA programs.
//!
//! The passes, in order:
//!
//! 1. `syntax` reads the text; core.p4, v1model.p4 and psa.p4 are built in here.
//! 2. [`check`]: names, types, constants. The tree becomes a checked program (`hir`, `types`, `fold`).
//! 3. [`arch`]: finds the blocks of the package that `main` is, `V1Switch` or `PSA_Switch`.
//! 4. [`lower`]: writes them out as IR; everything that is not a slot or a structured statement goes.
//! 5. [`indices`]: header stacks' next indexes that are known in a parser state.
//! 6. [`p4info`]: the data for the control plane, and the P4Runtime ids.
//! 7. [`validity`]: guards field writes, so that the fields of invalid headers are zero.
//! 8. `ir::verify`: the invariants of the IR, checked on every program.
//!
//! [`examine_file`] goes another way after lowering: [`reads`] follows the paths of packets and names reads of what may not be there.
//!
//! Every message is a constructor in [`errors`]. This crate knows nothing about how a program is run; it reads
//! the surroundings of its blocks in [`ir::architecture`]. An unsupported construct is an error with a place, never a panic.
#![forbid(unsafe_code)]

mod arch;
mod check;
mod errors;
mod externs;
mod fold;
mod hir;
mod indices;
mod limits;
mod lower;
mod meaning;
pub mod names;
pub mod p4info;
mod reads;
mod types;
mod validity;

use std::path::{Path, PathBuf};

use ir::architecture::Description;
use syntax::diagnostics::Diagnostic;
use syntax::source::SourceMap;
use syntax::{FileLoader, IncludeStyle, LoadError, Loaded, Loader};

pub use names::{Declaration, NameKind, Names};
pub use p4info::P4Info;

/// The core library.
pub const CORE_P4: &str = include_str!("../../../p4include/core.p4");
/// Returns the names and texts of the files that are built in: the core library's and those of the architectures.
pub fn libraries() -> impl Iterator<Item = (&'static str, &'static str)> {
    let files = lower::ROOMS.iter().flat_map(|(_, room)| {
        let names = room.include_files.iter();
        names.map(|name| (*name, room.text))
    });
    std::iter::once(("core.p4", CORE_P4)).chain(files)
}

/// Lists the architectures whose include file is built in: applies `of` to each and joins the texts with
/// commas, and with the word `last` before the last one, as in `a, b or c`.
pub(crate) fn architectures(of: impl Fn(&Description) -> String, last: &str) -> String {
    let built_in = lower::ROOMS
        .iter()
        .filter(|(_, room)| !room.include_files.is_empty());
    let mut names: Vec<String> = built_in.map(|(description, _)| of(description)).collect();
    let end = names.pop().unwrap_or_default();
    match names.is_empty() {
        true => end,
        false => format!("{} {last} {end}", names.join(", ")),
    }
}

/// Returns the names of the architectures whose include files are built in, such as `v1model and PSA`.
pub fn architecture_names() -> String {
    architectures(|description| description.title.to_string(), "and")
}

/// Returns the names of the include files that are built in, such as `v1model.p4 or psa.p4`.
pub(crate) fn architecture_files() -> String {
    let first = |description: &Description| lower::room(description).include_files[0].to_string();
    architectures(first, "or")
}

/// The options of a compilation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The directories in which includes are looked for, before the files that are built in.
    pub include_dirs: Vec<PathBuf>,
    /// Macros and their values.
    pub defines: Vec<(String, String)>,
    /// True if every value is copied when it is evaluated, and every argument of a function, action or control at its
    /// call, as the specification describes calls. Otherwise only what something else may change meanwhile is. Programs
    /// mean the same either way; tests compare them.
    pub copy_arguments: bool,
}

/// A compiled program.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The program.
    pub program: ir::Program,
    /// Its description for the control plane.
    pub p4info: P4Info,
}

/// The outcome of a compilation.
#[derive(Debug)]
pub struct Outcome {
    /// The program, if there was no error and it has a `main`.
    pub compiled: Option<Compiled>,
    /// Errors and warnings, in the order they were found.
    pub diagnostics: Vec<Diagnostic>,
    /// The files, which diagnostics point into.
    pub sources: SourceMap,
    /// True if names and types are right; a program fails then only in things that v1model, or this compiler, does not support.
    pub checked: bool,
}

impl Outcome {
    /// Returns whether no diagnostic is an error. An accepted program without `main` is a library: it is
    /// checked, but `compiled` is `None`.
    pub fn accepted(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Renders all diagnostics as text, each with the source lines to which it refers.
    pub fn render(&self) -> String {
        syntax::render_all(&self.diagnostics, &self.sources)
    }
}

/// Compiles the program in the file `path`.
pub fn compile_file(path: &Path, options: &Options) -> Outcome {
    compile_with(path, &loader(options), options)
}

/// Returns the program in the file `path` after the preprocessor, as text that compiles to the same program.
pub fn preprocess_file(path: &Path, options: &Options) -> syntax::Preprocessed {
    syntax::preprocess(path, &loader(options), &options.defines)
}

/// Looks for reads of invalid headers and of variables without a value in the program in the file `path`,
/// and returns these as warnings; `compiled` is `None`.
pub fn examine_file(path: &Path, options: &Options) -> Outcome {
    examine_with(path, &loader(options), options)
}

/// Looks for reads of invalid headers and of variables without a value in the program text `source`, and
/// returns these as warnings; `compiled` is `None`. `name` is the file name in messages.
pub fn examine_text(source: &str, name: &str, options: &Options) -> Outcome {
    let text = Text {
        name: PathBuf::from(name),
        text: source.to_string(),
        files: loader(options),
    };
    examine_with(Path::new(name), &text, options)
}

fn examine_with(path: &Path, loader: &dyn Loader, options: &Options) -> Outcome {
    let parsed = syntax::parse(path, loader, &options.defines);
    let mut diagnostics = parsed.diagnostics;
    let mut checked = false;
    let (tree, sources) = (&parsed.program, &parsed.sources);
    // Only what compiles is followed: the walk relies on the invariants of the IR.
    if passes(
        tree,
        sources,
        "examined",
        false,
        &mut diagnostics,
        &mut checked,
    )
    .is_some()
    {
        let (module, _) = check::check(tree, sources);
        if let (Some(mut lowered), _) = lower::lower(&module, sources, "examined", true, false) {
            indices::fold(&mut lowered.program, &lowered.next_indexes);
            diagnostics.extend(reads::check(&lowered, sources));
        }
    }
    Outcome {
        compiled: None,
        diagnostics,
        sources: parsed.sources,
        checked,
    }
}

/// Compiles the program text `source`. `name` is the file name in messages; includes in quotes are searched
/// for in its directory.
pub fn compile_text(source: &str, name: &str, options: &Options) -> Outcome {
    let text = Text {
        name: PathBuf::from(name),
        text: source.to_string(),
        files: loader(options),
    };
    compile_with(Path::new(name), &text, options)
}

/// Returns whether the library file `file` with the contents `text`, or a file that it includes, declares
/// `name` at the top level.
fn declares(file: &str, text: &str, name: &str) -> bool {
    let text = Text {
        name: PathBuf::from(file),
        text: text.to_string(),
        files: loader(&Options::default()),
    };
    let parsed = syntax::parse(Path::new(file), &text, &[]);
    let mut names = parsed.program.decls.iter().filter_map(|d| d.name());
    names.any(|n| n.as_str() == name)
}

/// Returns what finds files in the directories of `options`, and after those the files that are built in.
pub fn loader(options: &Options) -> FileLoader {
    let built_in = libraries().fold(FileLoader::new(), |loader, (name, text)| {
        loader.builtin(name, text)
    });
    options
        .include_dirs
        .iter()
        .fold(built_in, |loader, dir| loader.include_dir(dir))
}

/// One file in memory, the others from elsewhere.
struct Text {
    name: PathBuf,
    text: String,
    files: FileLoader,
}

impl Loader for Text {
    fn open(&self, path: &Path) -> Result<Loaded, LoadError> {
        match path == self.name {
            true => Ok(Loaded {
                path: self.name.clone(),
                text: self.text.clone(),
            }),
            false => self.files.open(path),
        }
    }

    fn include(&self, name: &str, style: IncludeStyle, from: &Path) -> Result<Loaded, LoadError> {
        self.files.include(name, style, from)
    }

    fn similar(&self, name: &str, style: IncludeStyle, from: &Path) -> Option<String> {
        self.files.similar(name, style, from)
    }
}

/// Compiles the program that `loader` returns for `path`. All included files, core.p4 and v1model.p4 among
/// them, come from `loader`.
pub fn compile_with(path: &Path, loader: &dyn Loader, options: &Options) -> Outcome {
    let parsed = syntax::parse(path, loader, &options.defines);
    let mut diagnostics = parsed.diagnostics;
    let name = path
        .file_stem()
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut checked = false;
    let compiled = passes(
        &parsed.program,
        &parsed.sources,
        &name,
        options.copy_arguments,
        &mut diagnostics,
        &mut checked,
    );
    Outcome {
        compiled,
        checked,
        diagnostics,
        sources: parsed.sources,
    }
}

/// A program after the front end: tree, names and diagnostics, from which editors are answered.
#[derive(Debug)]
pub struct Analysis {
    /// The syntax tree. With errors, it lacks the parts that could not be read.
    pub tree: syntax::ast::Program,
    /// The files, which all places are in.
    pub sources: SourceMap,
    /// Errors and warnings, in the order they were found: those of a compilation.
    pub diagnostics: Vec<Diagnostic>,
    /// The names, their declarations and uses.
    pub names: Names,
}

/// Compiles the program that `loader` returns for `path`, and returns what is known of it, with errors as far as they
/// leave it known.
pub fn analyse_with(path: &Path, loader: &dyn Loader, options: &Options) -> Analysis {
    let parsed = syntax::parse(path, loader, &options.defines);
    let (tree, sources) = (parsed.program, parsed.sources);
    let mut diagnostics = parsed.diagnostics;
    let (module, found, names) = check::check_and_record(&tree, &sources, Some(Names::default()));
    diagnostics.extend(found);
    if !has_errors(&diagnostics) {
        // The program is not needed, but what cannot be lowered is an error.
        let _ = lowered(&module, &sources, "program", false, &mut diagnostics);
    }
    Analysis {
        tree,
        sources,
        diagnostics,
        names: names.unwrap_or_default(),
    }
}

/// Returns the names that could stand where the program that `loader` returns for `path` has the name `word`, which
/// it must not declare. Empty if the program there has no place for a name, or the parser did not reach it.
pub fn complete_with(
    path: &Path,
    loader: &dyn Loader,
    options: &Options,
    word: &str,
) -> Vec<Declaration> {
    let parsed = syntax::parse(path, loader, &options.defines);
    let names = Some(Names::completing(word));
    let (_, _, names) = check::check_and_record(&parsed.program, &parsed.sources, names);
    names.map(Names::into_candidates).unwrap_or_default()
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(Diagnostic::is_error)
}

/// Checks and lowers a parsed program, and verifies its IR, up to the first step that finds an error; then
/// returns `None`. Appends all errors and warnings to `diagnostics`, and sets `checked` if names and types
/// are right. `name` becomes the program's name. A program with syntax errors is still checked as far as it
/// could be parsed.
fn passes(
    tree: &syntax::ast::Program,
    sources: &SourceMap,
    name: &str,
    copies_arguments: bool,
    diagnostics: &mut Vec<Diagnostic>,
    checked: &mut bool,
) -> Option<Compiled> {
    let (module, found) = check::check(tree, sources);
    diagnostics.extend(found);
    if has_errors(diagnostics) {
        return None;
    }
    *checked = true;
    lowered(&module, sources, name, copies_arguments, diagnostics)
}

/// Lowers a checked program without errors, and verifies its IR, up to the first step that finds an error; then
/// returns `None`. Appends all errors and warnings to `diagnostics`.
fn lowered(
    module: &hir::Module,
    sources: &SourceMap,
    name: &str,
    copies_arguments: bool,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Compiled> {
    let (lowered, found) = lower::lower(module, sources, name, false, copies_arguments);
    diagnostics.extend(found);
    let mut lowered = lowered.filter(|_| !has_errors(diagnostics))?;
    indices::fold(&mut lowered.program, &lowered.next_indexes);
    let (p4info, found) = p4info::build(module, &mut lowered);
    diagnostics.extend(found);
    validity::guard(&mut lowered.program);
    if has_errors(diagnostics) {
        return None;
    }
    if let Err(violations) = ir::verify::verify(&lowered.program) {
        let found = limits::diagnostics(&violations, module, &lowered, sources);
        diagnostics.extend(found);
        return None;
    }
    Some(Compiled {
        program: lowered.program,
        p4info,
    })
}
