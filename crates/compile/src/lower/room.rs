//! The compiler's part of each architecture: the table of its externs, and its include file.

use ir::architecture::Description;

use super::{Body, Call, Made, MethodCall, NewInstance, Object, ROOMS, Value};
use crate::meaning::{self, Algorithm, Function, Meaning, Method, Property};
use crate::types::{EnumDef, Types};

/// The compiler's part of an architecture: its externs and its include file.
pub(crate) struct Room {
    /// Its externs.
    pub externs: &'static Externs,
    /// The names under which its include file is built in; none if it is not.
    pub include_files: &'static [&'static str],
    /// The text of the include file.
    pub text: &'static str,
}

/// Returns the compiler's part of an architecture.
pub(crate) fn room(description: &Description) -> &'static Room {
    let found = ROOMS
        .iter()
        .find(|(known, _)| known.name == description.name);
    found.expect("each architecture has a room").1
}

/// Lowers a call of an extern function, and returns its value.
pub(crate) type LowerFunction = fn(&mut Body<'_, '_>, &Call<'_>) -> Value;

/// Creates an instance of an extern object.
pub(crate) type MakeObject = fn(&mut Body<'_, '_>, &NewInstance<'_>) -> Made;

/// Lowers a call of a method of an instance, and returns its value.
pub(crate) type LowerMethod = fn(&mut Body<'_, '_>, &Object, &MethodCall<'_>) -> Value;

/// An extern object type of an architecture.
pub(crate) struct ObjectRow {
    /// Its name.
    pub(crate) name: &'static str,
    /// The numbers of type parameters that it may have.
    pub(crate) type_params: &'static [usize],
    /// Its meaning.
    pub(crate) object: Meaning<meaning::Object, MakeObject>,
    /// The parameters of its constructors.
    pub(crate) constructors: &'static [&'static str],
    /// Its methods.
    pub(crate) methods: &'static [(&'static str, Meaning<Method, LowerMethod>)],
}

/// The externs of an architecture or of the core library. Signatures are written as in P4, without names and type parameters of
/// parameters; `_` is any type.
pub(crate) struct Externs {
    /// Functions.
    pub(crate) functions: &'static [(&'static str, Meaning<Function, LowerFunction>)],
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
    pub fn names(&self, objects: &[meaning::Object]) -> Vec<&'static str> {
        let rows = self.objects.iter();
        let rows =
            rows.filter(|row| matches!(row.object, Meaning::Common(o) if objects.contains(&o)));
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

fn find<T: Copy>(rows: &[(&str, T)], name: &str) -> Option<T> {
    rows.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| *value)
}

/// Returns the function's name in a pattern of a signature, such as `count` in `void count(in _)`.
pub(crate) fn name_of(pattern: &str) -> &str {
    let head = pattern.split('(').next().unwrap_or(pattern);
    head.rsplit(' ').next().unwrap_or(head)
}

/// Returns a hint for the error at the use of an extern `name` that the program itself declares and that
/// therefore has no meaning. The hint names the extern of this name that the architecture `description`, or
/// another, has, if there is one.
pub(super) fn advice(name: &str, description: &'static Description) -> String {
    let own = description.name;
    let others = ir::architecture::ALL
        .iter()
        .copied()
        .filter(|d| d.name != own);
    let other = others
        .into_iter()
        .find(|d| room(d).externs.known(name).is_some());
    match (
        room(description)
            .externs
            .known(name)
            .or(super::core::EXTERNS.known(name)),
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
