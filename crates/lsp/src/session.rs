//! The open documents, the programs to which they belong, and what the front end knows of these.
//!
//! A document that another program includes is a part of that program, and is not compiled alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use compile::Options;
use syntax::{FileLoader, IncludeStyle, LoadError, Loaded, Loader};

use crate::paths::normal;
use crate::snapshot::Snapshot;
use crate::text::{Encoding, Text};

/// The most files of a folder that are looked at for the program to which a document belongs.
const MOST_CANDIDATES: usize = 200;
/// The largest file, in bytes, that is looked at for that.
const MOST_BYTES: u64 = 4 << 20;

/// The settings of a session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Include directories and macros.
    pub options: Options,
    /// The program to which documents belong if it includes them; otherwise it is searched for.
    pub main: Option<PathBuf>,
    /// The folders of the workspace.
    pub folders: Vec<PathBuf>,
    /// The folder for copies of the files that are built into the compiler.
    pub library: PathBuf,
    /// The unit of columns.
    pub encoding: Encoding,
}

/// Open documents and their programs.
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    documents: BTreeMap<PathBuf, Text>,
    /// The last snapshot of each program, by the program's path.
    snapshots: BTreeMap<PathBuf, Snapshot>,
    /// The program of each open document.
    programs: BTreeMap<PathBuf, PathBuf>,
    changed: bool,
}

impl Session {
    /// Starts a session without documents.
    pub fn new(settings: Settings) -> Session {
        Session {
            settings,
            documents: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            programs: BTreeMap::new(),
            changed: false,
        }
    }

    /// Returns the settings that the session was started with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Opens a document, or gives it another text.
    pub fn set(&mut self, path: &Path, text: Text) {
        self.forget_programs_with(path);
        self.documents.insert(path.to_path_buf(), text);
        self.changed = true;
    }

    /// Closes a document; its text is the file's again.
    pub fn close(&mut self, path: &Path) {
        self.forget_programs_with(path);
        self.documents.remove(path);
        self.programs.remove(path);
        self.changed = true;
    }

    /// Forgets what is known of all programs: a file on disk has changed.
    pub fn forget(&mut self) {
        self.snapshots.clear();
        self.programs.clear();
        self.changed = true;
    }

    fn forget_programs_with(&mut self, path: &Path) {
        self.snapshots.retain(|_, snapshot| !snapshot.has(path));
    }

    /// Returns the text of an open document.
    pub fn document(&self, path: &Path) -> Option<&Text> {
        self.documents.get(path)
    }

    /// Compiles the programs of the open documents as far as they changed. Returns whether any did.
    pub fn refresh(&mut self) -> bool {
        if !std::mem::take(&mut self.changed) {
            return false;
        }
        let mut open: Vec<PathBuf> = self.documents.keys().cloned().collect();
        // Programs first, since others may be parts of them.
        open.sort_by_cached_key(|path| {
            let part = self.programs.get(path).is_some_and(|known| known != path);
            part || !has_main(self.ready(path))
        });
        for path in open {
            let program = self.program_of(&path);
            self.programs.insert(path, program);
        }
        let needed: BTreeSet<&PathBuf> = self.programs.values().collect();
        self.snapshots.retain(|path, _| needed.contains(path));
        true
    }

    /// Returns what is known of the program of an open document.
    pub fn snapshot(&mut self, path: &Path) -> Option<&Snapshot> {
        self.refresh();
        self.snapshots.get(self.programs.get(path)?)
    }

    /// Returns what is known of all programs.
    pub fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        self.snapshots.values()
    }

    /// Finds the program of a document, and has its snapshot ready: the one it belonged to, that of the settings, one
    /// that is known, itself if it has a `main`, one in its folder or a folder above, or else itself.
    fn program_of(&mut self, path: &Path) -> PathBuf {
        let known = self.programs.get(path).cloned();
        let main = self.settings.main.clone();
        for program in known.into_iter().chain(main) {
            if program != path && self.ready(&program).has(path) {
                return program;
            }
        }
        if has_main(self.ready(path)) {
            return path.to_path_buf();
        }
        let mut others = self.snapshots.iter();
        if let Some((program, _)) = others.find(|(p, s)| *p != path && s.has(path)) {
            return program.clone();
        }
        match self.programs.contains_key(path) {
            // It was searched for when the document was opened.
            true => path.to_path_buf(),
            false => self
                .includer_on_disk(path)
                .unwrap_or_else(|| path.to_path_buf()),
        }
    }

    /// Returns the snapshot of a program, made if there is none.
    fn ready(&mut self, program: &Path) -> &Snapshot {
        if !self.snapshots.contains_key(program) {
            let snapshot = self.analysed(program, &self.documents);
            self.snapshots.insert(program.to_path_buf(), snapshot);
        }
        &self.snapshots[program]
    }

    fn analysed(&self, program: &Path, documents: &BTreeMap<PathBuf, Text>) -> Snapshot {
        let Settings {
            options,
            library,
            encoding,
            ..
        } = &self.settings;
        let loader = Overlay {
            documents,
            files: compile::loader(options),
        };
        let analysis = compile::analyse_with(program, &loader, options);
        Snapshot::new(analysis, library, *encoding)
    }

    /// Compiles the program of an open document with other texts for some documents, and returns what is then known.
    pub(crate) fn supposed(&self, path: &Path, texts: BTreeMap<PathBuf, Text>) -> Option<Snapshot> {
        let program = self.programs.get(path)?;
        let mut documents = self.documents.clone();
        documents.extend(texts);
        Some(self.analysed(program, &documents))
    }

    /// Returns the names that could stand where `word` does in the document `path` if it had the text `text`.
    pub(crate) fn names_for(
        &self,
        path: &Path,
        text: Text,
        word: &str,
    ) -> Vec<compile::Declaration> {
        let Some(program) = self.programs.get(path) else {
            return Vec::new();
        };
        let mut documents = self.documents.clone();
        documents.insert(path.to_path_buf(), text);
        let options = &self.settings.options;
        let loader = Overlay {
            documents: &documents,
            files: compile::loader(options),
        };
        compile::complete_with(program, &loader, options, word)
    }

    /// Searches the folder of a document, and those above it within the workspace, for a program that includes it.
    fn includer_on_disk(&mut self, path: &Path) -> Option<PathBuf> {
        let name = path.file_name()?.to_str()?.to_string();
        let mut left = MOST_CANDIDATES;
        for folder in path.ancestors().skip(1) {
            let mut found: Vec<PathBuf> = Vec::new();
            for candidate in programs_in(folder) {
                left = left.checked_sub(1)?;
                let names_it = |text: &str| text.contains(&name);
                if candidate != path
                    && std::fs::read_to_string(&candidate).is_ok_and(|t| names_it(&t))
                {
                    found.push(candidate);
                }
            }
            for program in found {
                let snapshot = self.analysed(&program, &self.documents);
                if snapshot.has(path) && has_main(&snapshot) {
                    self.snapshots.insert(program.clone(), snapshot);
                    return Some(program);
                }
            }
            if !self
                .settings
                .folders
                .iter()
                .any(|f| folder.starts_with(f) && folder != f)
            {
                return None;
            }
        }
        None
    }
}

/// Returns the P4 files of a folder, in order, without the very large ones.
fn programs_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let small = entries.filter(|e| {
        e.metadata()
            .is_ok_and(|m| m.is_file() && m.len() <= MOST_BYTES)
    });
    let mut paths: Vec<PathBuf> = small.map(|e| e.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "p4"));
    paths.sort();
    paths
}

fn has_main(snapshot: &Snapshot) -> bool {
    let mut names = snapshot.analysis.tree.decls.iter().filter_map(|d| d.name());
    names.any(|name| name.as_str() == "main")
}

/// Open documents in front of the files.
struct Overlay<'a> {
    documents: &'a BTreeMap<PathBuf, Text>,
    files: FileLoader,
}

impl Overlay<'_> {
    fn document(&self, path: &Path) -> Option<Loaded> {
        let path = normal(path);
        let text = self.documents.get(&path)?.as_str().to_string();
        Some(Loaded { path, text })
    }
}

impl Loader for Overlay<'_> {
    fn open(&self, path: &Path) -> Result<Loaded, LoadError> {
        match self.document(path) {
            Some(loaded) => Ok(loaded),
            None => self.files.open(path),
        }
    }

    fn include(&self, name: &str, style: IncludeStyle, from: &Path) -> Result<Loaded, LoadError> {
        let beside = from.parent().filter(|_| style == IncludeStyle::Quoted);
        if let Some(loaded) = beside.and_then(|folder| self.document(&folder.join(name))) {
            return Ok(loaded);
        }
        let loaded = self.files.include(name, style, from)?;
        Ok(self.document(&loaded.path).unwrap_or(loaded))
    }

    fn similar(&self, name: &str, style: IncludeStyle, from: &Path) -> Option<String> {
        self.files.similar(name, style, from)
    }
}
