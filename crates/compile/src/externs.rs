//! The meaning of externs: by architecture and declaration, never by the bare name.
//!
//! An architecture's file (`v1model.p4`, built in, found on the include path or a program's own copy) is the one that declares the
//! package of `main`, together with what it includes; the core library's is the one that declares `packet_in`. An extern that
//! such a file declares, with the parameters that the table of its architecture has, means what the table says. Any other extern is the
//! program's own and has no meaning here, whatever its name; lowering reports where it is used.
//!
//! The checker resolves each declaration once; lowering sees meanings. The tables of the architectures are in their rooms ([`lower`]).

use ir::architecture::Description;
use syntax::ast::{self, DeclKind, Direction};
use syntax::source::{FileId, SourceMap, Span};

use crate::lower;
use crate::lower::room::{Externs, ObjectRow, name_of};
use crate::meaning::{Function, Meaning, Method};
use crate::types::{FnSig, Ty, Types};

/// The files whose declarations of externs have a meaning.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// The file that declares `packet_in`.
    core: Option<FileId>,
    /// The architecture, and the file that declares its package.
    architecture: Option<(FileId, &'static Description)>,
    /// For each file the one that includes it.
    included_by: Vec<Option<FileId>>,
}

impl Origins {
    /// Finds the file of the core library and the file of the architecture whose package is the type of
    /// `main`; in a program without `main`, of the architecture that the program includes.
    pub fn find(program: &ast::Program, sources: &SourceMap) -> Origins {
        let package = |decl: &ast::Decl| match &decl.kind {
            DeclKind::Package(package) => {
                let mut known = ir::architecture::ALL.iter().copied();
                let description = known.find(|d| d.package == package.name.as_str())?;
                Some((package.name.span.file, description))
            }
            _ => None,
        };
        let packages: Vec<_> = program.decls.iter().filter_map(package).collect();
        let main = program.decls.iter().find_map(type_of_main);
        let of_main = packages.iter().find(|(_, d)| Some(d.package) == main);
        let core = program.decls.iter().find_map(|decl| match &decl.kind {
            DeclKind::Extern(external) if external.name.as_str() == "packet_in" => {
                Some(external.name.span.file)
            }
            _ => None,
        });
        let files = sources.files().iter();
        Origins {
            core,
            architecture: of_main.or(packages.first()).copied(),
            included_by: files.map(|f| f.included_at.map(|at| at.file)).collect(),
        }
    }

    /// Returns the architecture that the program includes; `None` if it includes none.
    pub fn architecture(&self) -> Option<&'static Description> {
        self.architecture.map(|(_, description)| description)
    }

    /// Returns the meaning of an extern function; `None` if its declaration is not one of the core
    /// library's or the architecture's.
    pub(crate) fn function(&self, sig: &FnSig, types: &Types) -> Option<Meaning<Function, usize>> {
        let mut tables = self.tables(sig.span);
        let (at, meaning) = tables.find_map(|t| matching(t.functions, sig, types))?;
        Some(meaning.with(at))
    }

    /// Returns the row for an extern type, and its position in the table of the core library or of the
    /// architecture; `None` if neither declares the type. The row is found by the type's name and number of
    /// type parameters; `span` is the place of the declaration.
    pub(crate) fn object(
        &self,
        name: &str,
        type_params: usize,
        span: Span,
    ) -> Option<(usize, &'static ObjectRow)> {
        let mut rows = self.tables(span).flat_map(|t| t.objects.iter().enumerate());
        rows.find(|(_, row)| row.name == name && row.type_params.contains(&type_params))
    }

    /// Returns the tables of externs that apply to a declaration at `span`: the core library's if the
    /// declaration is in the core library's file, and the architecture's if it is in the architecture's file
    /// or in one that this includes.
    fn tables(&self, span: Span) -> impl Iterator<Item = &'static Externs> {
        let of_core = self.core.is_some_and(|file| self.is_part(span.file, file));
        let core = of_core.then_some(&lower::core::EXTERNS);
        let architecture = self
            .architecture
            .filter(|(file, _)| self.is_part(span.file, *file));
        core.into_iter()
            .chain(architecture.map(|(_, description)| lower::room(description).externs))
    }

    /// Returns whether `file` is the file `whole`, or is included by it at any depth.
    fn is_part(&self, file: FileId, whole: FileId) -> bool {
        let includer = |f: &FileId| self.included_by.get(f.0 as usize).copied().flatten();
        std::iter::successors(Some(file), includer).any(|f| f == whole)
    }
}

impl ObjectRow {
    /// Checks that the extern type has a constructor with the parameters of `sig`. Returns `Some(())` if it
    /// has one, else `None`.
    pub fn constructor(&self, sig: &FnSig, types: &Types) -> Option<()> {
        let shown = parameters(sig);
        let mut known = self.constructors.iter();
        known
            .any(|pattern| fits(pattern, &shown, types))
            .then_some(())
    }

    /// Returns the meaning of a method of the extern type; `None` if the type has no method with this
    /// signature. `object` is the position of the type in its table.
    pub fn method(
        &self,
        object: usize,
        sig: &FnSig,
        types: &Types,
    ) -> Option<Meaning<Method, (usize, usize)>> {
        let (at, meaning) = matching(self.methods, sig, types)?;
        Some(meaning.with((object, at)))
    }
}

/// Returns the name of the type of `main` if `decl` is the instance `main`; `None` for any other declaration.
fn type_of_main(decl: &ast::Decl) -> Option<&str> {
    let DeclKind::Instantiation(instance) = &decl.kind else {
        return None;
    };
    let path = match &instance.ty.kind {
        ast::TypeKind::Named(path) | ast::TypeKind::Specialised { path, .. } => path,
        _ => return None,
    };
    (instance.name.as_str() == "main").then(|| path.name.as_str())
}

/// Returns the position and the meaning of the first row whose pattern has the name, the result and the
/// parameters of `sig`; `None` if there is no such row.
fn matching<'r, M>(rows: &'r [(&str, M)], sig: &FnSig, types: &Types) -> Option<(usize, &'r M)> {
    let declared = parameters(sig);
    let position = rows.iter().position(|(pattern, _)| {
        let (ret, rest) = pattern.split_once(' ').unwrap_or(("void", pattern));
        name_of(pattern) == &*sig.name
            && type_fits(ret, &sig.ret, types)
            && fits(rest.trim_start_matches(|c| c != '('), &declared, types)
    })?;
    Some((position, &rows[position].1))
}

fn parameters(sig: &FnSig) -> Vec<(Direction, &Ty)> {
    sig.params.iter().map(|p| (p.direction, &p.ty)).collect()
}

/// Returns whether parameters have the directions and types of a pattern such as `(in bit<32>, out _)`,
/// where `_` stands for any type.
fn fits(pattern: &str, declared: &[(Direction, &Ty)], types: &Types) -> bool {
    let inner = pattern.trim_start_matches('(').trim_end_matches(')');
    let wanted: Vec<&str> = inner.split(", ").filter(|p| !p.is_empty()).collect();
    let one = |(wanted, (direction, ty)): (&&str, &(Direction, &Ty))| {
        let (word, shown) = wanted.split_once(' ').unwrap_or(("", wanted));
        let same = match direction {
            Direction::None => word.is_empty(),
            Direction::In => word == "in",
            Direction::Out => word == "out",
            Direction::InOut => word == "inout",
        };
        same && type_fits(shown, ty, types)
    };
    wanted.len() == declared.len() && wanted.iter().zip(declared).all(one)
}

fn type_fits(pattern: &str, ty: &Ty, types: &Types) -> bool {
    pattern == "_" || *ty == Ty::Missing || types.show(ty) == pattern
}
