//! The meaning of externs: by architecture and declaration, never by the bare name.
//!
//! An architecture's file (`v1model.p4`, built in, found on the include path or a program's own copy) is the one that declares the
//! package of `main`, together with what it includes; the core library's is the one that declares `packet_in`. An extern that
//! such a file declares, with the parameters that the table of its architecture has, means what the table says. Any other extern is the
//! program's own and has no meaning here, whatever its name; lowering reports where it is used.
//!
//! The checker resolves each declaration once; lowering sees meanings. The tables of the architectures are in their rooms (`lower`).

mod core;

use std::rc::Rc;

use ir::HashAlgorithm;
use ir::architecture::Description;
use syntax::ast::{self, DeclKind, Direction};
use syntax::source::{FileId, SourceMap, Span};

use crate::lower::{self, Body, Call, Made, MethodCall, NewInstance, Value};
use crate::types::{EnumDef, FnSig, Ty, Types};

/// Lowers a call of an extern function, and returns its value.
pub(crate) type LowerFunction = fn(&mut Body<'_, '_>, &Call<'_>) -> Value;

/// An extern function.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Function {
    /// Rejects the packet if a condition is false.
    Verify,
    /// `static_assert`: the compiler evaluates the condition, and nothing is left to run.
    StaticAssert,
    /// Ends the packet if a condition is false.
    Assert,
    /// Means something in one architecture only, which lowers its calls.
    Lowered(LowerFunction),
}

/// Makes an instance of an extern object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Make(pub fn(&mut Body<'_, '_>, &NewInstance<'_>) -> Made);

impl PartialEq for Make {
    fn eq(&self, other: &Make) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for Make {}

/// A kind of extern object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    /// The packet as the parser reads it.
    PacketIn,
    /// The packet as the deparser writes it.
    PacketOut,
    /// Cells that the program reads and writes by index.
    Register,
    /// Cells, chosen by index, that count packets, bytes or both.
    Counter,
    /// A count for each entry of a table.
    DirectCounter,
    /// Cells, chosen by index, that measure rates and return colours.
    Meter,
    /// A meter for each entry of a table.
    DirectMeter,
    /// Actions that entries of several tables share.
    ActionProfile,
    /// An action profile with groups of actions, of which a hash of the packet chooses one.
    ActionSelector,
    /// The ones' complement sum of data given at once.
    Checksum16,
    /// An extern of one architecture only, with the function that makes its instances.
    Own(Make),
}

/// Lowers a call of a method of an instance, and returns its value.
pub(crate) type LowerMethod = fn(&mut Body<'_, '_>, &lower::Object, &MethodCall<'_>) -> Value;

/// A method of an extern object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Method {
    /// Takes a header from the packet.
    Extract,
    /// Returns the next bits of the packet, without taking them from it.
    Lookahead,
    /// Skips bits.
    Advance,
    /// Returns the length of the packet in bytes.
    PacketLength,
    /// Appends headers.
    Emit,
    /// Reads a cell: `read(out value, in index)`.
    RegisterReadTo,
    /// Reads a cell: `read(in index)`.
    RegisterRead,
    /// Writes a cell.
    RegisterWrite,
    /// Counts the packet in the cell with a given index.
    Count,
    /// Counts the packet at the table entry that was hit.
    CountDirect,
    /// Writes the colour of the packet by the meter cell `index`: `execute_meter(in index, out colour)`.
    MeterExecuteTo,
    /// Writes the colour of the packet by the meter of the table entry that was hit: `read(out colour)`.
    DirectMeterReadTo,
    /// Returns the checksum of the data in the argument.
    Checksum16Get,
    /// Means something in one architecture only, which lowers its calls.
    Lowered(LowerMethod),
}

/// A property of tables that only an architecture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Names a direct counter.
    Counter,
    /// Names a direct meter.
    Meter,
    /// Names an action profile or selector.
    Implementation,
    /// A truth value: whether entries expire.
    Timeout,
    /// An enum; its second member means that entries expire.
    TimeoutEnum,
    /// The action that runs for a group without members.
    EmptyGroupAction,
}

/// An algorithm that computes from data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// One that always gives the same result for the same data.
    Of(HashAlgorithm),
    /// Draws a number, whatever the data.
    Random,
}

/// An extern object type of an architecture.
pub(crate) struct ObjectRow {
    /// Its name.
    pub(crate) name: &'static str,
    /// The numbers of type parameters that it may have.
    pub(crate) type_params: &'static [usize],
    /// Its meaning.
    pub(crate) object: Object,
    /// The parameters of its constructors.
    pub(crate) constructors: &'static [&'static str],
    /// Its methods.
    pub(crate) methods: &'static [(&'static str, Method)],
}

/// The externs of an architecture or of the core library. Signatures are written as in P4, without names and type parameters of
/// parameters; `_` is any type.
pub(crate) struct Externs {
    /// Functions.
    pub(crate) functions: &'static [(&'static str, Function)],
    /// Object types.
    pub(crate) objects: &'static [ObjectRow],
    /// Properties of tables.
    pub(crate) properties: &'static [(&'static str, Property)],
    /// The members of the enum of hash algorithms.
    pub(crate) algorithms: &'static [(&'static str, Algorithm)],
    /// The members of the enums whose values architecture and packets share, in order.
    pub(crate) enums: &'static [(&'static str, &'static [&'static str])],
}

impl Externs {
    /// Returns the meaning of the table property `name`; `None` if the architecture has no such property.
    pub fn property(&self, name: &str) -> Option<Property> {
        find(self.properties, name)
    }

    /// Returns the names of all table properties that the architecture has.
    pub fn property_names(&self) -> impl Iterator<Item = &'static str> {
        self.properties.iter().map(|(name, _)| *name)
    }

    /// Returns the hash algorithm that `member`, a member of the architecture's enum of hash algorithms,
    /// stands for; `None` if the enum has no such member.
    pub fn algorithm(&self, member: &str) -> Option<Algorithm> {
        find(self.algorithms, member)
    }

    /// Returns the first enum of the program whose members differ from those that the architecture defines
    /// for it, together with the architecture's members; `None` if no enum differs.
    pub fn foreign_enum<'t>(
        &self,
        types: &'t Types,
    ) -> Option<(&'t EnumDef, &'static [&'static str])> {
        let differing = |(name, members): &(&str, &'static [&'static str])| {
            let declared = types.enums.iter().find(|def| &*def.name == *name)?;
            let given = declared.members.iter().map(|(member, _)| &**member);
            (!given.eq(members.iter().copied())).then_some((declared, *members))
        };
        self.enums.iter().find_map(differing)
    }

    /// Returns the names of the extern types, such as `register`, that stand for one of `objects` in this
    /// architecture.
    pub fn names(&self, objects: &[Object]) -> Vec<&'static str> {
        let rows = self.objects.iter();
        let rows = rows.filter(|row| objects.contains(&row.object));
        rows.map(|row| row.name).collect()
    }

    /// Returns the first signature of the extern function `name`, or `name` itself if it is an extern type,
    /// as the architecture declares it; `None` if the architecture declares neither.
    fn known(&self, name: &str) -> Option<&'static str> {
        let functions = self.functions.iter().map(|(signature, _)| *signature);
        let function = functions.into_iter().find(|s| name_of(s) == name);
        function.or_else(|| self.objects.iter().map(|row| row.name).find(|n| *n == name))
    }
}

/// Returns the table of the externs of an architecture.
pub(crate) fn of(description: &Description) -> &'static Externs {
    lower::room(description).externs
}

fn find<T: Copy>(rows: &[(&str, T)], name: &str) -> Option<T> {
    rows.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| *value)
}

/// A declaration of an extern function, constructor or method.
#[derive(Clone, Debug)]
pub struct Declared<M> {
    /// The signature.
    pub sig: Rc<FnSig>,
    /// The meaning, unless it is the program's own.
    pub meaning: Option<M>,
}

/// The files that give externs a meaning.
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
    pub(crate) fn function(&self, sig: &FnSig, types: &Types) -> Option<Function> {
        let mut tables = self.tables(sig.span);
        tables.find_map(|t| matching(t.functions, sig, types))
    }

    /// Returns the row for an extern type, by its name, its number of type parameters and the place of its
    /// declaration `span`; `None` if the declaration is not one of the core library's or the
    /// architecture's.
    pub(crate) fn object(
        &self,
        name: &str,
        type_params: usize,
        span: Span,
    ) -> Option<&'static ObjectRow> {
        let mut rows = self.tables(span).flat_map(|t| t.objects);
        rows.find(|row| row.name == name && row.type_params.contains(&type_params))
    }

    /// Returns the tables of externs that apply to a declaration at `span`: the core library's if the
    /// declaration is in the core library's file, and the architecture's if it is in the architecture's file
    /// or in one that this includes.
    fn tables(&self, span: Span) -> impl Iterator<Item = &'static Externs> {
        let of_core = self.core.is_some_and(|file| self.is_part(span.file, file));
        let core = of_core.then_some(&core::EXTERNS);
        let architecture = self
            .architecture
            .filter(|(file, _)| self.is_part(span.file, *file));
        core.into_iter()
            .chain(architecture.map(|(_, description)| of(description)))
    }

    /// Returns whether `file` is the file `whole`, or is included by it at any depth.
    fn is_part(&self, file: FileId, whole: FileId) -> bool {
        let includer = |f: &FileId| self.included_by.get(f.0 as usize).copied().flatten();
        std::iter::successors(Some(file), includer).any(|f| f == whole)
    }
}

impl ObjectRow {
    /// Returns the object that the extern type of this row stands for.
    pub fn object(&self) -> Object {
        self.object
    }

    /// Checks that the extern type has a constructor with the parameters of `sig`. Returns `Some(())` if it
    /// has one, else `None`.
    pub fn constructor(&self, sig: &FnSig, types: &Types) -> Option<()> {
        let shown = parameters(sig);
        let mut known = self.constructors.iter();
        known
            .any(|pattern| fits(pattern, &shown, types))
            .then_some(())
    }

    /// Returns the meaning of a method of the extern type; `None` if the type has no method with this signature.
    pub fn method(&self, sig: &FnSig, types: &Types) -> Option<Method> {
        matching(self.methods, sig, types)
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

fn matching<M: Copy>(rows: &[(&str, M)], sig: &FnSig, types: &Types) -> Option<M> {
    let declared = parameters(sig);
    let mut rows = rows.iter();
    let row = rows.find(|(pattern, _)| {
        let (ret, rest) = pattern.split_once(' ').unwrap_or(("void", pattern));
        name_of(pattern) == &*sig.name
            && type_fits(ret, &sig.ret, types)
            && fits(rest.trim_start_matches(|c| c != '('), &declared, types)
    });
    row.map(|(_, meaning)| *meaning)
}

/// Returns the function's name in a pattern of a signature, such as `count` in `void count(in _)`.
fn name_of(pattern: &str) -> &str {
    let head = pattern.split('(').next().unwrap_or(pattern);
    head.rsplit(' ').next().unwrap_or(head)
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

/// Returns a hint for the error at the use of an extern `name` that the program itself declares and that
/// therefore has no meaning. The hint names the extern of this name that the architecture `description`, or
/// another, has, if there is one.
pub fn advice(name: &str, description: &'static Description) -> String {
    let own = description.name;
    let others = ir::architecture::ALL
        .iter()
        .copied()
        .filter(|d| d.name != own);
    let other = others.into_iter().find(|d| of(d).known(name).is_some());
    match (
        of(description).known(name).or(core::EXTERNS.known(name)),
        other,
    ) {
        (Some(known), _) if known.contains('(') => {
            format!("the extern `{name}` of {own} is another, declared in its own file: `{known}`")
        }
        (Some(_), _) => {
            format!("the extern `{name}` of {own} is another, declared in its own file")
        }
        (None, Some(other)) => format!(
            "{} has an extern of this name, but this program is for {own}",
            other.name
        ),
        (None, None) => format!(
            "only the externs of {own}'s own file are implemented; write this one as a function, an action or a control"
        ),
    }
}
