//! Storage and values of P4 types in terms of slots.
//!
//! A [`Place`] is a tree of slots in the shape of a type; a [`Value`] is the same tree with expressions. An [`Lvalue`]
//! also covers what only an assignment can name: slices, elements at an index, and nothing at all.

use std::rc::Rc;

use ir::{BinaryOp, Expr, HeaderId, SlotId};
use num_bigint::BigInt;

use super::{ObjectId, build};
use crate::types::Ty;

/// The slots in which a value is stored, in the structure of its type.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// One slot.
    Scalar(SlotId),
    /// A varbit: the slots of its value and of its length.
    Varbit(SlotId, SlotId),
    /// Members of a struct, tuple or array.
    Fields(Rc<[Place]>),
    /// A header, and the storage of its fields.
    Header(HeaderId, Rc<[Place]>),
    /// A header union: at most one member is valid.
    Union(Rc<[Place]>),
    /// A header stack and the slot of its next index.
    Stack(Rc<[Place]>, SlotId),
}

/// A value, as expressions over slots.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// bit, int, bool, enum or error.
    Bits(Expr),
    /// A compile-time integer.
    Int(BigInt),
    /// A string.
    Str(Rc<str>),
    /// A varbit: its value and its length in bits.
    Varbit(Expr, Expr),
    /// Members of a struct, tuple or list.
    Fields(Vec<Value>),
    /// A header: its validity and its fields. The fields of an invalid header are zero.
    Header(Expr, Vec<Value>),
    /// A header union: its members.
    Union(Vec<Value>),
    /// A header stack: its elements and its next index.
    Stack(Vec<Value>, Expr),
    /// An instance of an extern, parser or control.
    Object(ObjectId),
    /// No value: that of a call of a void function, or of an expression in which an error was reported.
    Nothing,
}

/// What can be assigned to.
#[derive(Clone, Debug)]
pub(crate) enum Lvalue {
    /// Whole storage.
    Place(Place),
    /// Bits `high` down to `low` of another lvalue.
    Slice(Box<Lvalue>, u32, u32),
    /// The given number of bits of another lvalue, from an index on that is known at run time.
    PlusSlice(Box<Lvalue>, Expr, u32),
    /// The element at an index that is known at run time; none beyond the end.
    Element(Vec<Lvalue>, Expr),
    /// Nothing: what is assigned is dropped.
    Ignore,
}

impl Place {
    /// Calls `f` for every slot of the place, including those for validity, for lengths of varbits and for
    /// next indexes of stacks.
    pub fn for_each_slot(&self, headers: &[ir::Header], f: &mut dyn FnMut(SlotId)) {
        match self {
            Place::Scalar(slot) => f(*slot),
            Place::Varbit(value, length) => {
                f(*value);
                f(*length);
            }
            Place::Fields(items) | Place::Union(items) => {
                items.iter().for_each(|p| p.for_each_slot(headers, f))
            }
            Place::Header(id, items) => {
                f(headers[id.index()].valid);
                items.iter().for_each(|p| p.for_each_slot(headers, f));
            }
            Place::Stack(items, next) => {
                f(*next);
                items.iter().for_each(|p| p.for_each_slot(headers, f));
            }
        }
    }

    /// Returns the member of a struct, header or header union at position `i`; `None` if there is none.
    pub fn field(&self, i: usize) -> Option<&Place> {
        match self {
            Place::Fields(items) | Place::Header(_, items) | Place::Union(items) => items.get(i),
            _ => None,
        }
    }
}

impl Value {
    /// Calls `f` for every expression in the value, including those for validity, for lengths of varbits
    /// and for next indexes of stacks.
    pub fn for_each_expr(&self, f: &mut dyn FnMut(&Expr)) {
        match self {
            Value::Bits(e) => f(e),
            Value::Varbit(a, b) => {
                f(a);
                f(b);
            }
            Value::Fields(items) | Value::Union(items) => {
                items.iter().for_each(|v| v.for_each_expr(f))
            }
            Value::Header(valid, items) => {
                f(valid);
                items.iter().for_each(|v| v.for_each_expr(f));
            }
            Value::Stack(items, next) => {
                f(next);
                items.iter().for_each(|v| v.for_each_expr(f));
            }
            Value::Int(_) | Value::Str(_) | Value::Object(_) | Value::Nothing => {}
        }
    }

    /// Returns whether every expression in the value is a constant.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.for_each_expr(&mut |e| constant &= matches!(e, Expr::Const(_)));
        constant
    }

    /// Returns the member of a struct, header, header union, stack or list at position `i`;
    /// [`Value::Nothing`] if there is none.
    pub fn field(self, i: usize) -> Value {
        match self {
            Value::Fields(items)
            | Value::Header(_, items)
            | Value::Union(items)
            | Value::Stack(items, _) => items.into_iter().nth(i).unwrap_or(Value::Nothing),
            _ => Value::Nothing,
        }
    }

    /// Returns, in order, the scalars and varbits that the value consists of, without validity bits, lengths
    /// of varbits and next indexes of stacks. They are the contents of the packed layout.
    pub fn leaves(&self) -> Vec<Expr> {
        match self {
            Value::Bits(e) | Value::Varbit(e, _) => vec![e.clone()],
            Value::Fields(items)
            | Value::Header(_, items)
            | Value::Union(items)
            | Value::Stack(items, _) => items.iter().flat_map(Value::leaves).collect(),
            Value::Int(_) | Value::Str(_) | Value::Object(_) | Value::Nothing => Vec::new(),
        }
    }
}

impl Lvalue {
    /// Returns the member of a struct, header or header union at position `i`, as an lvalue;
    /// [`Lvalue::Ignore`] if there is none.
    pub fn field(&self, i: usize) -> Lvalue {
        match self {
            Lvalue::Place(place) => place
                .field(i)
                .map_or(Lvalue::Ignore, |p| Lvalue::Place(p.clone())),
            Lvalue::Element(items, index) => {
                Lvalue::Element(items.iter().map(|l| l.field(i)).collect(), index.clone())
            }
            _ => Lvalue::Ignore,
        }
    }

    /// Returns the element of an array or header stack at `index`, as an lvalue; [`Lvalue::Ignore`] if
    /// `index` is a constant out of range.
    pub fn element(&self, index: &Expr) -> Lvalue {
        match self {
            Lvalue::Place(Place::Stack(items, _) | Place::Fields(items)) => {
                let mut items = items.iter().cloned().map(Lvalue::Place);
                match index {
                    Expr::Const(bits) => {
                        let item = bits.to_u64().and_then(|i| items.nth(i as usize));
                        item.unwrap_or(Lvalue::Ignore)
                    }
                    index => Lvalue::Element(items.collect(), index.clone()),
                }
            }
            Lvalue::Element(items, outer) => {
                let items = items.iter().map(|l| l.element(index)).collect();
                Lvalue::Element(items, outer.clone())
            }
            _ => Lvalue::Ignore,
        }
    }
}

/// Returns whether an array with elements of type `element` is a header stack, which has a next index:
/// whether the elements are headers or header unions.
pub(super) fn is_header(element: &Ty) -> bool {
    matches!(element, Ty::Header(_) | Ty::Union(_))
}

/// Returns the header that is stored at `place`; `None` if it stores something else.
pub(crate) fn header_of(place: &Place) -> Option<HeaderId> {
    match place {
        Place::Header(id, _) => Some(*id),
        _ => None,
    }
}

/// Builds the condition that all of `parts` hold, as a balanced tree; true if `parts` is empty.
pub(crate) fn conjunction(parts: &[Expr], slots: &[ir::Slot]) -> Expr {
    match parts {
        [] => build::boolean(true),
        [only] => only.clone(),
        _ => {
            let (a, b) = parts.split_at(parts.len() / 2);
            build::binary(
                BinaryOp::And,
                conjunction(a, slots),
                conjunction(b, slots),
                slots,
            )
        }
    }
}
