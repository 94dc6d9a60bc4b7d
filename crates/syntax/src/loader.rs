//! Sources of the text of files.
//!
//! The preprocessor uses a [`Loader`]; it opens no file itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The text of a file, and the path at which it was found; includes relative to the file begin there.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The path, as messages show it.
    pub path: PathBuf,
    /// The text.
    pub text: String,
}

/// Why a file could not be loaded.
#[derive(Clone, Debug)]
pub enum LoadError {
    /// It does not exist at any of these paths.
    NotFound(Vec<PathBuf>),
    /// It exists at this path, but could not be read for this reason.
    Unreadable(PathBuf, String),
}

/// The form of an `#include`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IncludeStyle {
    /// `#include "file"`: searched first in the directory of the including file.
    Quoted,
    /// `#include <file>`: searched only in the include directories.
    Angled,
}

/// Finds and reads files.
pub trait Loader {
    /// Reads the file at `path`, without a search in other directories.
    fn open(&self, path: &Path) -> Result<Loaded, LoadError>;

    /// Finds and reads the file that an `#include` of `name` in the file `from` refers to.
    fn include(&self, name: &str, style: IncludeStyle, from: &Path) -> Result<Loaded, LoadError>;

    /// Returns the name of a file that is written almost like `name` and that an `#include` would find, for a hint
    /// when it does not find `name`; `None` if there is no such file.
    fn similar(&self, _name: &str, _style: IncludeStyle, _from: &Path) -> Option<String> {
        None
    }
}

/// Returns whether two file names are equal apart from case, separators such as `_`, and the ending `.p4`.
fn alike(a: &str, b: &str) -> bool {
    let bare = |name: &str| -> String {
        let letters = name.trim_end_matches(".p4").trim_end_matches(".P4").chars();
        let letters = letters.filter(|c| c.is_alphanumeric() || *c == '/');
        letters.flat_map(char::to_lowercase).collect()
    };
    !bare(a).is_empty() && bare(a) == bare(b)
}

/// Reads the file `name` from the directory of `from` if the include is quoted, or else from the first of
/// `dirs` that has it. `Err(NotFound)` lists all the paths that were tried.
fn search(
    name: &str,
    style: IncludeStyle,
    from: &Path,
    dirs: &[PathBuf],
    open: impl Fn(&Path) -> Result<Loaded, LoadError>,
) -> Result<Loaded, LoadError> {
    let beside = match style {
        IncludeStyle::Quoted => Some(from.parent().unwrap_or(Path::new("")).to_path_buf()),
        IncludeStyle::Angled => None,
    };
    let mut tried = Vec::new();
    for dir in beside.iter().chain(dirs) {
        match open(&dir.join(name)) {
            Err(LoadError::NotFound(places)) => {
                tried.extend(places);
                tried.dedup();
            }
            found_or_unreadable => return found_or_unreadable,
        }
    }
    Err(LoadError::NotFound(tried))
}

/// Reads files from the file system, or if they do not exist there from files that the caller built in.
#[derive(Clone, Debug, Default)]
pub struct FileLoader {
    include_dirs: Vec<PathBuf>,
    builtins: BTreeMap<String, String>,
}

impl FileLoader {
    /// Creates a loader without include directories and built-in files.
    pub fn new() -> FileLoader {
        FileLoader::default()
    }

    /// Adds a directory in which included files are searched for, after the directories added before.
    #[must_use]
    pub fn include_dir(mut self, dir: impl Into<PathBuf>) -> FileLoader {
        self.include_dirs.push(dir.into());
        self
    }

    /// Adds a built-in file, which an include of `name` finds if no include directory has such a file.
    #[must_use]
    pub fn builtin(mut self, name: impl Into<String>, text: impl Into<String>) -> FileLoader {
        self.builtins.insert(name.into(), text.into());
        self
    }
}

impl Loader for FileLoader {
    fn open(&self, path: &Path) -> Result<Loaded, LoadError> {
        if !path.is_file() {
            return Err(LoadError::NotFound(vec![path.to_path_buf()]));
        }
        match std::fs::read(path) {
            // The language allows any 8-bit characters in comments and strings.
            Ok(bytes) => Ok(Loaded {
                path: path.to_path_buf(),
                text: String::from_utf8_lossy(&bytes).into_owned(),
            }),
            Err(error) => Err(LoadError::Unreadable(path.to_path_buf(), error.to_string())),
        }
    }

    fn include(&self, name: &str, style: IncludeStyle, from: &Path) -> Result<Loaded, LoadError> {
        match search(name, style, from, &self.include_dirs, |path| {
            self.open(path)
        }) {
            Err(LoadError::NotFound(tried)) => match self.builtins.get(name) {
                Some(text) => Ok(Loaded {
                    path: Path::new("<builtin>").join(name),
                    text: text.clone(),
                }),
                None => Err(LoadError::NotFound(tried)),
            },
            other => other,
        }
    }

    fn similar(&self, name: &str, style: IncludeStyle, from: &Path) -> Option<String> {
        let beside =
            (style == IncludeStyle::Quoted).then(|| from.parent().unwrap_or(Path::new("")));
        let dirs = beside
            .into_iter()
            .chain(self.include_dirs.iter().map(PathBuf::as_path));
        let in_folder = |dir: &Path| {
            let path = dir.join(name);
            let (folder, wanted) = (path.parent()?, path.file_name()?.to_str()?);
            let folder = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            let entries = std::fs::read_dir(folder).ok()?;
            let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
            // The order of a directory is nobody's promise.
            let found = names.filter(|n| alike(n, wanted)).min()?;
            let given = Path::new(name).parent()?.join(found);
            Some(given.to_string_lossy().into_owned())
        };
        let built_in = self.builtins.keys().find(|known| alike(known, name));
        built_in.cloned().or_else(|| {
            let mut dirs = dirs;
            dirs.find_map(in_folder)
        })
    }
}

/// Reads files from a map from paths to texts; the file of `#include <name>` has the path `name`.
#[derive(Clone, Debug, Default)]
pub struct MemoryLoader {
    files: BTreeMap<PathBuf, String>,
}

impl MemoryLoader {
    /// Creates a loader without any files.
    pub fn new() -> MemoryLoader {
        MemoryLoader::default()
    }

    /// Adds a file with the contents `text` under `path`.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>, text: impl Into<String>) -> MemoryLoader {
        self.files.insert(path.into(), text.into());
        self
    }
}

impl Loader for MemoryLoader {
    fn open(&self, path: &Path) -> Result<Loaded, LoadError> {
        match self.files.get(path) {
            Some(text) => Ok(Loaded {
                path: path.to_path_buf(),
                text: text.clone(),
            }),
            None => Err(LoadError::NotFound(vec![path.to_path_buf()])),
        }
    }

    fn include(&self, name: &str, style: IncludeStyle, from: &Path) -> Result<Loaded, LoadError> {
        search(name, style, from, &[PathBuf::new()], |path| self.open(path))
    }
}
