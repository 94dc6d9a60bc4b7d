//! A program as the front end knows it, with the places of its files on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compile::{Analysis, Declaration};
use lsp_types::{Location, Position};
use syntax::source::{Expansion, FileId, Span};

use crate::paths;
use crate::text::{Encoding, Text};

/// The name that the front end gives the folder of the built-in files.
const BUILT_IN: &str = "<builtin>";

/// A program as the front end knows it.
#[derive(Debug)]
pub struct Snapshot {
    pub(crate) analysis: Analysis,
    /// The path and text of each file; the index is the file's id.
    files: Vec<(PathBuf, Text)>,
    /// The ids by which a file is known: one for each of its includes.
    ids: BTreeMap<PathBuf, Vec<FileId>>,
    library: PathBuf,
    pub(crate) encoding: Encoding,
}

impl Snapshot {
    /// Wraps an analysis. Copies of the files that are built in are, or will be, in `library`.
    pub fn new(analysis: Analysis, library: &Path, encoding: Encoding) -> Snapshot {
        let files: Vec<(PathBuf, Text)> = analysis
            .sources
            .files()
            .iter()
            .map(|file| {
                let path = match Path::new(&*file.name).strip_prefix(BUILT_IN) {
                    Ok(name) => library.join(name),
                    Err(_) => paths::normal(Path::new(&*file.name)),
                };
                (path, Text::new(file.text.clone()))
            })
            .collect();
        let mut ids: BTreeMap<PathBuf, Vec<FileId>> = BTreeMap::new();
        for ((path, _), id) in files.iter().zip(0..) {
            ids.entry(path.clone()).or_default().push(FileId(id));
        }
        Snapshot {
            analysis,
            files,
            ids,
            library: library.to_path_buf(),
            encoding,
        }
    }

    /// Returns the paths of all files of the program.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.ids.keys().map(PathBuf::as_path)
    }

    /// Returns whether the file at `path` belongs to the program.
    pub fn has(&self, path: &Path) -> bool {
        self.ids.contains_key(path)
    }

    /// Returns the places of all uses of names, and of the names that they mean.
    pub fn uses(&self) -> impl Iterator<Item = (Span, Span)> + '_ {
        self.analysis.names.uses()
    }

    /// Returns the file, position and name of a use that is written in a file; `None` if a macro makes it.
    pub fn written(&self, at: Span) -> Option<(&Path, Position, &str)> {
        let (path, text) = self.file(at)?;
        let position = text.position(at.start as usize, self.encoding);
        let (found, _) = self.name_at(path, position)?;
        (found == at).then(|| (path.as_path(), position, self.analysis.sources.text(at)))
    }

    /// Returns the path and the text of the file of a place.
    pub(crate) fn file(&self, span: Span) -> Option<&(PathBuf, Text)> {
        self.files.get(span.file.0 as usize)
    }

    /// Returns whether a place is in a file that is built into the compiler.
    pub(crate) fn is_built_in(&self, span: Span) -> bool {
        self.file(span)
            .is_some_and(|(path, _)| path.starts_with(&self.library))
    }

    /// Returns a place as the protocol has it.
    pub(crate) fn location(&self, span: Span) -> Option<Location> {
        let (path, text) = self.file(span)?;
        let range = text.range(span.start as usize, span.end as usize, self.encoding);
        Some(Location::new(paths::uri_of(path)?, range))
    }

    /// Returns what is found at a position: for each id of the file, since a file can be included several times.
    fn places(&self, path: &Path, position: Position) -> impl Iterator<Item = (FileId, u32)> + '_ {
        let ids = self.ids.get(path).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(move |id| {
            let (_, text) = self.files.get(id.0 as usize)?;
            Some((*id, text.offset(position, self.encoding) as u32))
        })
    }

    /// Returns the name at a position: its place and the place of its declaration. A name that a macro made is not
    /// written there.
    pub(crate) fn name_at(&self, path: &Path, position: Position) -> Option<(Span, Span)> {
        let names = &self.analysis.names;
        let mut found = self
            .places(path, position)
            .flat_map(|(file, offset)| names.at(file, offset));
        found.find(|(at, declared)| self.is_written(*at, *declared))
    }

    /// Returns whether the name that is declared at `declared` stands at `at` itself, and not in what a macro makes there.
    pub(crate) fn is_written(&self, at: Span, declared: Span) -> bool {
        let known = self.declaration(declared).map(|d| &*d.name);
        known == Some(self.analysis.sources.text(at))
    }

    /// Returns the declaration at a place.
    pub(crate) fn declaration(&self, declared: Span) -> Option<&Declaration> {
        self.analysis.names.declaration(declared)
    }

    /// Returns the use of a macro at a position, or that of the macro whose definition is there.
    pub(crate) fn macro_at(&self, path: &Path, position: Position) -> Option<&Expansion> {
        let mut places = self.places(path, position);
        places.find_map(|(file, offset)| {
            let holds = |span: Span, length: u32| {
                span.file == file && span.start <= offset && offset <= span.start + length
            };
            let mut all = self.analysis.sources.expansions();
            all.find(|use_| {
                let length = use_.macro_name.len() as u32;
                holds(use_.site, length) || holds(use_.definition, length)
            })
        })
    }

    /// Returns the path of the file that an `#include` at a position names.
    pub(crate) fn included_at(&self, path: &Path, position: Position) -> Option<&Path> {
        let mut places = self.places(path, position);
        let file = places.find_map(|(file, offset)| {
            let files = self.analysis.sources.files();
            files.iter().position(|included| {
                let at = included.included_at;
                at.is_some_and(|at| {
                    at.file == file && {
                        let (line, _) = self.analysis.sources.line(at);
                        line.start <= offset && offset <= line.end
                    }
                })
            })
        })?;
        self.files.get(file).map(|(path, _)| path.as_path())
    }
}
