//! Types as P4Info tells them: `P4DataTypeSpec`, and the named types beside all objects (`P4TypeInfo`).

use num_bigint::BigInt;
use syntax::ast;
use syntax::source::Span;

use super::annotate::{find, local_name, translation};
use super::build::Builder;
use crate::errors;
use crate::fold;
use crate::types::{EnumId, FieldDef, NewTypeId, StructId, Ty};
use proto::p4info::p4_bitstring_like_type_spec::TypeSpec as Bits;
use proto::p4info::p4_data_type_spec::TypeSpec;
use proto::p4info::p4_new_type_spec::Representation;
use proto::p4info::p4_new_type_translation::SdnType;
use proto::p4info::{self as p4, p4_enum_type_spec, p4_serializable_enum_type_spec};
use proto::p4info::{p4_header_type_spec, p4_header_union_type_spec, p4_struct_type_spec};

fn named(name: String) -> p4::P4NamedType {
    p4::P4NamedType { name }
}

/// Encodes a value in big-endian order, in as many whole bytes as `width` bits need.
fn value_bytes(value: &BigInt, width: u32) -> Vec<u8> {
    fold::to_bits(value, width).to_be_bytes()
}

/// Returns the P4Info description of `ty` as a bit string; `None` if `ty` is neither `bit`, `int` nor
/// `varbit`.
fn bits(ty: &Ty) -> Option<p4::P4BitstringLikeTypeSpec> {
    let bitwidth = |width: &u32| *width as i32;
    let spec = match ty {
        Ty::Bit(width) => Bits::Bit(p4::P4BitTypeSpec {
            bitwidth: bitwidth(width),
        }),
        Ty::Signed(width) => Bits::Int(p4::P4IntTypeSpec {
            bitwidth: bitwidth(width),
        }),
        Ty::Varbit(width) => Bits::Varbit(p4::P4VarbitTypeSpec {
            max_bitwidth: bitwidth(width),
        }),
        _ => return None,
    };
    Some(p4::P4BitstringLikeTypeSpec {
        type_spec: Some(spec),
        ..p4::P4BitstringLikeTypeSpec::default()
    })
}

fn data(spec: TypeSpec) -> p4::P4DataTypeSpec {
    p4::P4DataTypeSpec {
        type_spec: Some(spec),
    }
}

impl Builder<'_> {
    fn type_info(&mut self) -> &mut p4::P4TypeInfo {
        self.info.type_info.get_or_insert_default()
    }

    /// Warns of a key field or parameter whose type is no bit string for the control plane (specification,
    /// "Known Limitations of Current P4Runtime Version"). `what` names the field or parameter in the
    /// message.
    pub fn check_bits(&mut self, ty: &Ty, what: &str, span: Span) {
        let why = match self.module.types.representation(ty) {
            Ty::Error => "values of type `error` have no bits in P4Runtime",
            Ty::Enum(id) if self.module.types.enumeration(id).underlying.is_none() => {
                "an enum without an underlying type has no bits in P4Runtime"
            }
            _ => return,
        };
        self.diagnostics.push(errors::not_served(span, what, why));
    }

    /// Warns of a register or digest with data of the type `ty`, if the P4Runtime server of this switch
    /// cannot represent it in its messages. `what` names the object in the message.
    pub fn check_data(&mut self, ty: &Ty, what: &str, span: Span) {
        if let Some(why) = self.unserved(ty) {
            self.diagnostics.push(errors::not_served(span, what, why));
        }
    }

    /// Returns the reason why the P4Runtime server of this switch cannot represent values of the type `ty` in
    /// its messages; `None` if it can.
    fn unserved(&self, ty: &Ty) -> Option<&'static str> {
        let types = &self.module.types;
        match ty {
            Ty::Header(_) => Some("values of type `header` are not supported"),
            Ty::Union(_) => Some("values of type `header_union` are not supported"),
            Ty::Varbit(_) => Some("values of type `varbit` are not supported"),
            Ty::Struct(id) => {
                let mut fields = types.structure(*id).fields.iter();
                fields.find_map(|f| self.unserved(&f.ty))
            }
            Ty::Tuple(items) => items.iter().find_map(|item| self.unserved(item)),
            Ty::Stack(element, _) => self.unserved(element),
            Ty::New(id) => match self.translated(*id) {
                Some(translated) => match translated.sdn_type {
                    Some(SdnType::SdnString(_)) => {
                        Some("values that are translated to strings are not supported")
                    }
                    _ => None,
                },
                None => self.unserved(&types.representation(ty)),
            },
            _ => None,
        }
    }

    /// Returns the contents of the annotation `@p4runtime_translation` of a type declared by `type`; `None`
    /// if the type has no such annotation.
    fn translated(&self, id: NewTypeId) -> Option<p4::P4NewTypeTranslation> {
        let def = self.module.types.new_type(id);
        match find(&def.annotations, "p4runtime_translation").map(|a| &a.body) {
            Some(ast::AnnotationBody::Tokens(tokens)) => translation(tokens),
            _ => None,
        }
    }

    /// Returns how the control plane sees a field or parameter of the type `ty`: the width in bits (0 for a
    /// string, or for a type that is no scalar), and the name of the type if it is a named type. Adds the
    /// type to the P4Info.
    pub fn exposed(&mut self, ty: &Ty) -> (i32, Option<p4::P4NamedType>) {
        let width = self.module.types.scalar_width(ty).unwrap_or(0) as i32;
        let _ = self.type_spec(ty);
        match ty {
            Ty::New(id) => {
                let def = self.module.types.new_type(*id);
                let name = local_name(&def.name, &def.annotations);
                let new_type = self.type_info().new_types.get(&name);
                let width = match new_type.and_then(|n| n.representation.as_ref()) {
                    Some(Representation::TranslatedType(translated)) => match translated.sdn_type {
                        Some(SdnType::SdnBitwidth(width)) => width,
                        _ => 0,
                    },
                    _ => width,
                };
                (width, Some(named(name)))
            }
            Ty::Enum(id) => {
                let def = self.module.types.enumeration(*id);
                match def.underlying {
                    Some(_) => (width, None),
                    None => (0, Some(named(local_name(&def.name, &def.annotations)))),
                }
            }
            Ty::Error => (0, None),
            _ => (width, None),
        }
    }

    /// Appends to `out` the fields of a header with their names. A field that is a struct is replaced by
    /// its own fields, whose names begin with the name of the struct and a dot.
    pub fn flatten(&self, fields: &[FieldDef], prefix: &str, out: &mut Vec<(String, FieldDef)>) {
        for field in fields {
            let name = format!("{prefix}{}", local_name(&field.name, &field.annotations));
            match &field.ty {
                Ty::Struct(id) => {
                    let inner = self.module.types.structure(*id).fields.clone();
                    self.flatten(&inner, &format!("{name}."), out);
                }
                _ => out.push((name, field.clone())),
            }
        }
    }

    fn struct_name(&self, id: StructId) -> String {
        let def = self.module.types.structure(id);
        let args: String = def
            .args
            .iter()
            .map(|t| format!("_{}", self.module.types.show(t)))
            .collect();
        local_name(&def.name, &def.annotations) + &args.replace(['<', '>'], "")
    }

    /// Returns the P4Info description of a type, and adds the named types in it to the P4Info.
    pub fn type_spec(&mut self, ty: &Ty) -> p4::P4DataTypeSpec {
        data(match ty {
            Ty::Bool => TypeSpec::Bool(p4::P4BoolType {}),
            Ty::Error => {
                let errors = self.module.types.errors.iter();
                let members = errors.map(|e| e.to_string()).collect();
                self.type_info().error = Some(p4::P4ErrorTypeSpec { members });
                TypeSpec::Error(p4::P4ErrorType {})
            }
            Ty::Tuple(items) => self.tuple(items),
            Ty::Struct(id) => TypeSpec::Struct(named(self.struct_spec(*id))),
            Ty::Header(id) => TypeSpec::Header(named(self.header_spec(*id))),
            Ty::Union(id) => TypeSpec::HeaderUnion(named(self.union_spec(*id))),
            Ty::Stack(element, size) => self.stack_spec(element, *size),
            Ty::Enum(id) => self.enum_spec(*id),
            Ty::New(id) => self.new_type_spec(*id),
            // Nothing but bit strings is left that can be stored.
            _ => match bits(ty) {
                Some(bits) => TypeSpec::Bitstring(bits),
                None => self.tuple(&[]),
            },
        })
    }

    fn tuple(&mut self, items: &[Ty]) -> TypeSpec {
        let members = items.iter().map(|item| self.type_spec(item)).collect();
        TypeSpec::Tuple(p4::P4TupleTypeSpec { members })
    }

    /// Records that the type `ty`, of the kind `kind` (such as struct or header), has the control-plane name
    /// `name`. Reports an error if another type of this kind has the name, since P4Info can hold only one of
    /// the two.
    fn claim(&mut self, kind: &'static str, name: &str, ty: Ty, span: Span) {
        let claimed = self.named_types.entry((kind, name.to_string()));
        let first = claimed.or_insert_with(|| ty.clone());
        if *first != ty {
            self.diagnostics
                .push(errors::control_name_twice(span, name, kind));
        }
    }

    /// Records the control-plane name of a type with fields. Reports an error if another type of this kind
    /// has the name, and for two fields of the type that have the same name.
    fn claim_structure(&mut self, kind: &'static str, name: &str, id: StructId, ty: Ty) {
        let fields = &self.module.types.structure(id).fields;
        let span = fields.first().map_or_else(Span::default, |f| f.span);
        self.claim(kind, name, ty, span);
        let names: Vec<String> = fields
            .iter()
            .map(|f| local_name(&f.name, &f.annotations))
            .collect();
        let members = names
            .iter()
            .map(String::as_str)
            .zip(fields.iter().map(|f| f.span));
        self.check_member_names(members, "fields of a type");
    }

    fn struct_spec(&mut self, id: StructId) -> String {
        let (module, name) = (self.module, self.struct_name(id));
        self.claim_structure("structs", &name, id, Ty::Struct(id));
        if !self.type_info().structs.contains_key(&name) {
            let fields = module.types.structure(id).fields.iter();
            let members = fields.map(|f| p4_struct_type_spec::Member {
                name: local_name(&f.name, &f.annotations),
                type_spec: Some(self.type_spec(&f.ty)),
            });
            let spec = p4::P4StructTypeSpec {
                members: members.collect(),
                ..p4::P4StructTypeSpec::default()
            };
            self.type_info().structs.insert(name.clone(), spec);
        }
        name
    }

    fn header_spec(&mut self, id: StructId) -> String {
        let (module, name) = (self.module, self.struct_name(id));
        self.claim_structure("headers", &name, id, Ty::Header(id));
        let mut fields = Vec::new();
        self.flatten(&module.types.structure(id).fields, "", &mut fields);
        let members = fields.into_iter().map(|(name, f)| {
            // The named types of fields are told too, though a header's members are bit strings.
            let _ = self.type_spec(&f.ty);
            let representation = module.types.representation(&f.ty);
            let width = module.types.scalar_width(&representation);
            p4_header_type_spec::Member {
                name,
                type_spec: bits(&representation).or_else(|| bits(&Ty::Bit(width?))),
            }
        });
        let spec = p4::P4HeaderTypeSpec {
            members: members.collect(),
            ..p4::P4HeaderTypeSpec::default()
        };
        self.type_info().headers.insert(name.clone(), spec);
        name
    }

    fn union_spec(&mut self, id: StructId) -> String {
        let (module, name) = (self.module, self.struct_name(id));
        self.claim_structure("header unions", &name, id, Ty::Union(id));
        let mut members = Vec::new();
        for field in &module.types.structure(id).fields {
            if let Ty::Header(header) = &field.ty {
                members.push(p4_header_union_type_spec::Member {
                    name: field.name.to_string(),
                    header: Some(named(self.header_spec(*header))),
                });
            }
        }
        let spec = p4::P4HeaderUnionTypeSpec {
            members,
            ..p4::P4HeaderUnionTypeSpec::default()
        };
        self.type_info().header_unions.insert(name.clone(), spec);
        name
    }

    fn stack_spec(&mut self, element: &Ty, length: u32) -> TypeSpec {
        let size = length as i32;
        match element {
            Ty::Union(id) => TypeSpec::HeaderUnionStack(p4::P4HeaderUnionStackTypeSpec {
                header_union: Some(named(self.union_spec(*id))),
                size,
            }),
            Ty::Header(id) => TypeSpec::HeaderStack(p4::P4HeaderStackTypeSpec {
                header: Some(named(self.header_spec(*id))),
                size,
            }),
            _ => self.tuple(&vec![element.clone(); length as usize]),
        }
    }

    fn enum_spec(&mut self, id: EnumId) -> TypeSpec {
        let def = self.module.types.enumeration(id);
        let name = local_name(&def.name, &def.annotations);
        let kind = match def.underlying {
            Some(_) => "serializable enums",
            None => "enums",
        };
        self.claim(kind, &name, Ty::Enum(id), def.span);
        let Some(underlying) = &def.underlying else {
            let members = def.members.iter().map(|(n, _)| p4_enum_type_spec::Member {
                name: n.to_string(),
                ..p4_enum_type_spec::Member::default()
            });
            let spec = p4::P4EnumTypeSpec {
                members: members.collect(),
                ..p4::P4EnumTypeSpec::default()
            };
            self.type_info().enums.insert(name.clone(), spec);
            return TypeSpec::Enum(named(name));
        };
        let width = self.module.types.scalar_width(underlying).unwrap_or(1);
        let members = def.members.iter().map(|(n, v)| {
            let value = v.clone().unwrap_or_default();
            p4_serializable_enum_type_spec::Member {
                name: n.to_string(),
                value: value_bytes(&value, width).into(),
                ..p4_serializable_enum_type_spec::Member::default()
            }
        });
        let spec = p4::P4SerializableEnumTypeSpec {
            underlying_type: Some(p4::P4BitTypeSpec {
                bitwidth: width as i32,
            }),
            members: members.collect(),
            ..p4::P4SerializableEnumTypeSpec::default()
        };
        let known = &mut self.type_info().serializable_enums;
        known.insert(name.clone(), spec);
        TypeSpec::SerializableEnum(named(name))
    }

    fn new_type_spec(&mut self, id: NewTypeId) -> TypeSpec {
        let def = self.module.types.new_type(id);
        let name = local_name(&def.name, &def.annotations);
        self.claim("new types", &name, Ty::New(id), def.span);
        let representation = match self.translated(id) {
            Some(translated) => Representation::TranslatedType(translated),
            None => {
                let representation = self.module.types.representation(&Ty::New(id));
                Representation::OriginalType(self.type_spec(&representation))
            }
        };
        let annotations = self.annotations(&def.annotations, &["p4runtime_translation"]);
        let spec = p4::P4NewTypeSpec {
            representation: Some(representation),
            annotations: annotations.unstructured,
            structured_annotations: annotations.structured,
            annotation_locations: Vec::new(),
        };
        self.type_info().new_types.insert(name.clone(), spec);
        TypeSpec::NewType(named(name))
    }
}
