//! Types after name resolution, and the declarations they refer to.
//!
//! A type is compared with `==`: typedefs are gone, structs and enums are equal when they are the same declaration with
//! the same type arguments. Nothing here knows about expressions.

use std::rc::Rc;
use std::sync::Arc;

pub(crate) use ir::id as index;
use syntax::ast::{Annotation, Direction};
use syntax::source::Span;

use crate::meaning::{Function, Meaning, Method, Object};

index! {
    /// A struct, header or header union (with given type arguments).
    StructId,
    /// An enum.
    EnumId,
    /// A `type` declaration.
    NewTypeId,
    /// An extern object type.
    ExternId,
    /// The type of a parser, control or package without a body.
    BlockTypeId,
    /// A parser or control with a body.
    BlockId,
    /// A type parameter.
    TypeParamId,
    /// The default value of a parameter.
    DefaultId,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ty {
    /// `bool`
    Bool,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `string`
    String,
    /// `int`: a compile-time integer of any size.
    Int,
    /// `void`
    Void,
    /// `bit<w>`
    Bit(u32),
    /// `int<w>`
    Signed(u32),
    /// `varbit<w>`
    Varbit(u32),
    /// A struct.
    Struct(StructId),
    /// A header.
    Header(StructId),
    /// A header union.
    Union(StructId),
    /// An enum, serializable or not.
    Enum(EnumId),
    /// A type made by `type`.
    New(NewTypeId),
    /// A header stack.
    Stack(Rc<Ty>, u32),
    /// A tuple, and the type of `{ a, b }`.
    Tuple(Rc<[Ty]>),
    /// `list<T>`
    List(Rc<Ty>),
    /// The type of `{ a = x, b = y }` before it is known which struct it is.
    Record(Rc<[(Arc<str>, Ty)]>),
    /// An extern object.
    Extern(ExternId, Rc<[Ty]>),
    /// The type of a parser, control or package, without a body.
    BlockType(BlockTypeId, Rc<[Ty]>),
    /// An instance of a parser or control with a body.
    Block(BlockId),
    /// `value_set<T>`
    ValueSet(Rc<Ty>),
    /// A type parameter.
    Param(TypeParamId),
    /// `{#}` and `...` before it is known what they stand for.
    Any,
    /// Already reported as an error; silently compatible with everything.
    Missing,
}

/// A field of a struct, header or header union.
#[derive(Clone, Debug)]
pub struct FieldDef {
    /// The field's name.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Ty,
    /// Its annotations.
    pub annotations: Rc<[Annotation]>,
    /// The numbers in its `@field_list`.
    pub field_lists: Vec<u32>,
    /// The place of its declaration.
    pub span: Span,
}

/// A struct, header or header union.
#[derive(Clone, Debug)]
pub struct StructDef {
    /// Its name.
    pub name: Arc<str>,
    /// The type arguments, for a specialised generic type.
    pub args: Vec<Ty>,
    /// Its fields in order.
    pub fields: Vec<FieldDef>,
    /// Its annotations.
    pub annotations: Rc<[Annotation]>,
    /// Number of types it consists of, at any depth and itself included.
    pub nodes: u64,
}

/// The largest number of types of which one type may consist, at any depth and itself included.
pub const MAX_TYPE_NODES: u64 = 1 << 16;

impl StructDef {
    /// Returns the position of the field `name`; `None` if there is no such field.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| &*f.name == name)
    }
}

/// An enum.
#[derive(Clone, Debug)]
pub struct EnumDef {
    /// Its name.
    pub name: Arc<str>,
    /// For a serializable enum, `bit<w>` or `int<w>`.
    pub underlying: Option<Ty>,
    /// Its members in order; the values of a serializable enum.
    pub members: Vec<(Arc<str>, Option<num_bigint::BigInt>)>,
    /// Its annotations.
    pub annotations: Rc<[Annotation]>,
    /// The place of its declaration.
    pub span: Span,
}

/// A `type` declaration.
#[derive(Clone, Debug)]
pub struct NewTypeDef {
    /// Its name.
    pub name: Arc<str>,
    /// The type that represents it.
    pub underlying: Ty,
    /// Its annotations.
    pub annotations: Rc<[Annotation]>,
    /// The place of its declaration.
    pub span: Span,
}

/// A parameter, with what a call needs to know of it.
#[derive(Clone, Debug)]
pub struct ParamSig {
    /// Its name.
    pub name: Arc<str>,
    /// Its direction.
    pub direction: Direction,
    /// Its type; may mention type parameters.
    pub ty: Ty,
    /// True if `@optional` stands before it.
    pub optional: bool,
    /// The default value, already checked.
    pub default: Option<DefaultId>,
    /// The place of its declaration.
    pub span: Span,
}

/// The type of a function, method, constructor, parser, control or package.
#[derive(Clone, Debug)]
pub struct FnSig {
    /// Its name.
    pub name: Arc<str>,
    /// Its own type parameters.
    pub type_params: Vec<TypeParamId>,
    /// Its parameters.
    pub params: Vec<ParamSig>,
    /// The type of its result.
    pub ret: Ty,
    /// Its annotations.
    pub annotations: Rc<[Annotation]>,
    /// The place of its declaration.
    pub span: Span,
}

/// Struct, header or header union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructKind {
    /// `struct`
    Struct,
    /// `header`
    Header,
    /// `header_union`
    Union,
}

/// A declaration of an extern function, constructor or method.
#[derive(Clone, Debug)]
pub struct Declared<M> {
    /// The signature.
    pub sig: Rc<FnSig>,
    /// The meaning, unless the extern is the program's own. One of a single architecture is a position in its
    /// table.
    pub meaning: Option<M>,
}

/// A declaration of an extern function; a meaning of a single architecture is the position of its row.
pub type DeclaredFunction = Declared<Meaning<Function, usize>>;

/// A declaration of a method; a meaning of a single architecture is the positions of the object's row and of
/// the method in it.
pub type DeclaredMethod = Declared<Meaning<Method, (usize, usize)>>;

/// An extern object type.
#[derive(Clone, Debug)]
pub struct ExternDef {
    /// Its name.
    pub name: Arc<str>,
    /// Its annotations.
    pub annotations: Rc<[Annotation]>,
    /// Its meaning, unless it is the program's own.
    pub meaning: Option<Meaning<Object, usize>>,
    /// Its type parameters.
    pub type_params: Vec<TypeParamId>,
    /// Its constructors.
    pub constructors: Vec<Declared<()>>,
    /// Its methods.
    pub methods: Vec<Rc<DeclaredMethod>>,
    /// Abstract methods, whose body an instance gives.
    pub abstract_methods: Vec<Rc<FnSig>>,
    /// The place of its declaration.
    pub span: Span,
}

/// The type of a parser, control or package without a body.
#[derive(Clone, Debug)]
pub struct BlockTypeDef {
    /// Which of the three.
    pub kind: BlockKind,
    /// Its name, type parameters and parameters.
    pub sig: Rc<FnSig>,
}

/// Parser, control or package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// `parser`
    Parser,
    /// `control`
    Control,
    /// `package`
    Package,
}

/// All declared types of a program.
#[derive(Clone, Debug, Default)]
pub struct Types {
    /// Structs, headers and header unions.
    pub structs: Vec<StructDef>,
    /// Enums.
    pub enums: Vec<EnumDef>,
    /// New types.
    pub new_types: Vec<NewTypeDef>,
    /// Extern object types.
    pub externs: Vec<ExternDef>,
    /// Parser, control and package types.
    pub block_types: Vec<BlockTypeDef>,
    /// Names of parsers and controls with a body, by [`BlockId`].
    pub block_names: Vec<Arc<str>>,
    /// Names of type parameters.
    pub type_params: Vec<Arc<str>>,
    /// Error names in order.
    pub errors: Vec<Arc<str>>,
    /// Match kinds in order.
    pub match_kinds: Vec<Arc<str>>,
}

impl Types {
    /// Returns the definition of a struct, header or header union.
    pub fn structure(&self, id: StructId) -> &StructDef {
        &self.structs[id.index()]
    }

    /// Returns the definition of an enum.
    pub fn enumeration(&self, id: EnumId) -> &EnumDef {
        &self.enums[id.index()]
    }

    /// Returns the definition of a type declared by `type`.
    pub fn new_type(&self, id: NewTypeId) -> &NewTypeDef {
        &self.new_types[id.index()]
    }

    /// Returns the definition of an extern type.
    pub fn external(&self, id: ExternId) -> &ExternDef {
        &self.externs[id.index()]
    }

    /// Counts the types of which `ty` consists, at any depth and itself included; a header stack's element
    /// counts once per element.
    pub fn nodes(&self, ty: &Ty) -> u64 {
        let sum = |items: &[Ty]| {
            items
                .iter()
                .fold(1u64, |n, t| n.saturating_add(self.nodes(t)))
        };
        match ty {
            Ty::Struct(id) | Ty::Header(id) | Ty::Union(id) => self.structure(*id).nodes,
            Ty::Stack(item, size) => self
                .nodes(item)
                .saturating_mul(u64::from(*size))
                .saturating_add(1),
            Ty::Tuple(items) | Ty::Extern(_, items) | Ty::BlockType(_, items) => sum(items),
            Ty::List(item) | Ty::ValueSet(item) => self.nodes(item).saturating_add(1),
            _ => 1,
        }
    }

    /// Returns the type that represents `ty`: the underlying type of a type declared by `type` or of a
    /// serializable enum, else `ty` itself.
    pub fn representation(&self, ty: &Ty) -> Ty {
        match ty {
            Ty::New(id) => self.representation(&self.new_type(*id).underlying),
            Ty::Enum(id) => match &self.enumeration(*id).underlying {
                Some(underlying) => underlying.clone(),
                None => ty.clone(),
            },
            _ => ty.clone(),
        }
    }

    /// Returns the width in bits of a type whose values are stored in one slot; `None` for any other type.
    pub fn scalar_width(&self, ty: &Ty) -> Option<u32> {
        match self.representation(ty) {
            Ty::Bool => Some(1),
            Ty::Bit(w) | Ty::Signed(w) => Some(w),
            Ty::Error => Some(ir::ERROR_WIDTH),
            Ty::Enum(_) => Some(ir::ENUM_WIDTH),
            _ => None,
        }
    }

    /// Returns the width in bits of a value whose members are laid out in order without gaps; `None` if a
    /// part of the type, such as a varbit, has no fixed width.
    pub fn packed_width(&self, ty: &Ty) -> Option<u32> {
        match ty {
            Ty::Struct(id) | Ty::Header(id) => {
                let widths = self
                    .structure(*id)
                    .fields
                    .iter()
                    .map(|f| self.packed_width(&f.ty));
                widths.sum()
            }
            Ty::Tuple(items) => items.iter().map(|t| self.packed_width(t)).sum(),
            Ty::Stack(element, size) => Some(self.packed_width(element)? * size),
            _ => self.scalar_width(ty),
        }
    }

    /// Returns the types of a struct's fields or a tuple's members; `None` for any other type.
    pub fn members(&self, ty: &Ty) -> Option<Vec<Ty>> {
        match ty {
            Ty::Struct(id) => {
                let fields = &self.structure(*id).fields;
                Some(fields.iter().map(|f| f.ty.clone()).collect())
            }
            Ty::Tuple(items) => Some(items.to_vec()),
            _ => None,
        }
    }

    /// Returns the types of the scalars that a struct or tuple consists of, at any depth, in order. For any
    /// other type, headers included, returns that type alone.
    pub fn flat_members(&self, ty: &Ty) -> Vec<Ty> {
        match ty {
            Ty::Struct(id) => {
                let fields = &self.structure(*id).fields;
                fields
                    .iter()
                    .flat_map(|f| self.flat_members(&f.ty))
                    .collect()
            }
            Ty::Tuple(items) => items.iter().flat_map(|t| self.flat_members(t)).collect(),
            ty => vec![ty.clone()],
        }
    }

    /// Returns whether values of a type are compared as signed numbers.
    pub fn is_signed(&self, ty: &Ty) -> bool {
        matches!(self.representation(ty), Ty::Signed(_))
    }

    /// Renders a type as P4 writes it.
    pub fn show(&self, ty: &Ty) -> String {
        let list = |items: &[Ty]| {
            items
                .iter()
                .map(|t| self.show(t))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let applied = |name: &str, args: &[Ty]| match args {
            [] => name.to_string(),
            args => format!("{name}<{}>", list(args)),
        };
        match ty {
            Ty::Bool => "bool".into(),
            Ty::Error => "error".into(),
            Ty::MatchKind => "match_kind".into(),
            Ty::String => "string".into(),
            Ty::Int => "int".into(),
            Ty::Void => "void".into(),
            Ty::Bit(w) => format!("bit<{w}>"),
            Ty::Signed(w) => format!("int<{w}>"),
            Ty::Varbit(w) => format!("varbit<{w}>"),
            Ty::Struct(id) | Ty::Header(id) | Ty::Union(id) => {
                let def = self.structure(*id);
                applied(&def.name, &def.args)
            }
            Ty::Enum(id) => self.enumeration(*id).name.to_string(),
            Ty::New(id) => self.new_type(*id).name.to_string(),
            Ty::Stack(element, size) => format!("{}[{size}]", self.show(element)),
            Ty::Tuple(items) => format!("tuple<{}>", list(items)),
            Ty::List(item) => format!("list<{}>", self.show(item)),
            Ty::Record(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(n, t)| format!("{n}: {}", self.show(t)))
                    .collect();
                format!("{{ {} }}", fields.join(", "))
            }
            Ty::Extern(id, args) => applied(&self.external(*id).name, args),
            Ty::BlockType(id, args) => applied(&self.block_types[id.index()].sig.name, args),
            Ty::Block(id) => self.block_names[id.index()].to_string(),
            Ty::ValueSet(item) => format!("value_set<{}>", self.show(item)),
            Ty::Param(id) => self.type_params[id.index()].to_string(),
            Ty::Any => "{#}".into(),
            Ty::Missing => "?".into(),
        }
    }

    /// Returns the type `ty` with each of its type parameters replaced by the type that `map` returns for
    /// it; a parameter for which `map` returns `None` stays.
    pub fn substitute(&self, ty: &Ty, map: &dyn Fn(TypeParamId) -> Option<Ty>) -> Ty {
        let list = |items: &Rc<[Ty]>| {
            items
                .iter()
                .map(|t| self.substitute(t, map))
                .collect::<Rc<[Ty]>>()
        };
        match ty {
            Ty::Param(id) => map(*id).unwrap_or_else(|| ty.clone()),
            Ty::Stack(element, size) => Ty::Stack(Rc::new(self.substitute(element, map)), *size),
            Ty::Tuple(items) => Ty::Tuple(list(items)),
            Ty::List(item) => Ty::List(Rc::new(self.substitute(item, map))),
            Ty::Extern(id, args) => Ty::Extern(*id, list(args)),
            Ty::BlockType(id, args) => Ty::BlockType(*id, list(args)),
            Ty::ValueSet(item) => Ty::ValueSet(Rc::new(self.substitute(item, map))),
            _ => ty.clone(),
        }
    }
}
