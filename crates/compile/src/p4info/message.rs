//! P4Info as a protobuf message: its bytes, and its text format for people.

use std::fmt::Write as _;

use super::*;
use prost::encoding::{WireType, encode_key, encode_varint};

/// Name and number.
type Field<'a> = (&'a str, u32);

/// Writes messages in both formats at once.
#[derive(Default)]
struct Writer {
    text: String,
    depth: usize,
    data: Vec<u8>,
}

impl Writer {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{:1$}{text}", "", self.depth * 2);
    }

    fn data(&mut self, number: u32, contents: &[u8]) {
        encode_key(number, WireType::LengthDelimited, &mut self.data);
        encode_varint(contents.len() as u64, &mut self.data);
        self.data.extend_from_slice(contents);
    }

    fn message(&mut self, (name, number): Field, f: impl FnOnce(&mut Writer)) {
        self.line(format_args!("{name} {{"));
        self.depth += 1;
        let before = std::mem::take(&mut self.data);
        f(self);
        let contents = std::mem::replace(&mut self.data, before);
        self.data(number, &contents);
        self.depth -= 1;
        self.line(format_args!("}}"));
    }

    /// A message for each item.
    fn each<'i, T: 'i>(
        &mut self,
        field: Field,
        items: impl IntoIterator<Item = &'i T>,
        f: impl Fn(&T, &mut Writer),
    ) {
        for item in items {
            self.message(field, |w| f(item, w));
        }
    }

    /// A message with a name in it.
    fn named(&mut self, message: Field, name: &str) {
        self.message(message, |w| w.string(("name", 1), name));
    }

    fn number(&mut self, field: Field, value: impl Into<u64>) {
        let value = value.into();
        if value != 0 {
            self.word(field, &value.to_string(), value);
        }
    }

    fn string(&mut self, field: Field, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    fn bytes(&mut self, (name, number): Field, value: &[u8]) {
        let mut text = String::new();
        for byte in value {
            match byte {
                b'"' => text.push_str("\\\""),
                b'\\' => text.push_str("\\\\"),
                b'\n' => text.push_str("\\n"),
                b'\r' => text.push_str("\\r"),
                b'\t' => text.push_str("\\t"),
                b' '..=b'~' => text.push(*byte as char),
                _ => {
                    let _ = write!(text, "\\{byte:03o}");
                }
            }
        }
        self.line(format_args!("{name}: \"{text}\""));
        self.data(number, value);
    }

    /// A value by its word in the text format, and by its number.
    fn word(&mut self, (name, number): Field, word: &str, value: u64) {
        self.line(format_args!("{name}: {word}"));
        encode_key(number, WireType::Varint, &mut self.data);
        encode_varint(value, &mut self.data);
    }

    fn one_of(&mut self, field: Field, (word, value): (&str, u64)) {
        self.word(field, word, value);
    }

    fn annotations(&mut self, annotations: &Annotations, number: u32, structured: u32) {
        for text in &annotations.unstructured {
            self.string(("annotations", number), text);
        }
        let structured = ("structured_annotations", structured);
        self.each(
            structured,
            &annotations.structured,
            StructuredAnnotation::write,
        );
    }

    /// The documentation among annotations.
    fn doc(&mut self, annotations: &Annotations, number: u32) {
        if annotations.brief.is_none() && annotations.description.is_none() {
            return;
        }
        self.message(("doc", number), |w| {
            for (field, text) in [
                (("brief", 1), &annotations.brief),
                (("description", 2), &annotations.description),
            ] {
                if let Some(text) = text {
                    w.string(field, text);
                }
            }
        });
    }

    fn preamble(&mut self, preamble: &Preamble) {
        self.message(("preamble", 1), |w| {
            w.number(("id", 1), preamble.id);
            w.string(("name", 2), &preamble.name);
            w.string(("alias", 3), &preamble.alias);
            w.annotations(&preamble.annotations, 4, 6);
            w.doc(&preamble.annotations, 5);
        });
    }

    /// The unit of a counter or meter.
    fn unit(&mut self, unit: ir::CounterUnit) {
        let unit = match unit {
            ir::CounterUnit::Bytes => ("BYTES", 1),
            ir::CounterUnit::Packets => ("PACKETS", 2),
            ir::CounterUnit::Both => ("BOTH", 3),
        };
        self.message(("spec", 2), |w| w.one_of(("unit", 1), unit));
    }

    /// Nothing if it is false.
    fn flag(&mut self, field: Field, value: bool) {
        if value {
            self.word(field, "true", 1);
        }
    }

    fn type_name(&mut self, field: Field, name: &Option<String>) {
        if let Some(name) = name {
            self.named(field, name);
        }
    }
}

impl P4Info {
    /// Protobuf text format.
    pub fn to_text(&self) -> String {
        self.write().text
    }

    /// A serialized `p4.config.v1.P4Info`.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.write().data
    }

    fn write(&self) -> Writer {
        let mut w = Writer::default();
        w.message(("pkg_info", 1), |w| {
            let fields = |w: &mut Writer, keys: &[Field]| {
                for key in keys {
                    if let Some(value) = self.pkg_info.fields.get(key.0) {
                        w.string(*key, value);
                    }
                }
            };
            fields(w, &[("name", 1), ("version", 2)]);
            w.annotations(&self.pkg_info.annotations, 4, 9);
            w.doc(&self.pkg_info.annotations, 3);
            w.string(("arch", 5), &self.pkg_info.arch);
            fields(w, &[("organization", 6), ("contact", 7), ("url", 8)]);
            if !self.pkg_info.platform_properties.is_empty() {
                w.message(("platform_properties", 11), |w| {
                    for (name, value) in &self.pkg_info.platform_properties {
                        let number = match name.as_str() {
                            "multicast_group_table_size" => 1,
                            "multicast_group_table_total_replicas" => 2,
                            _ => 3,
                        };
                        w.number((name, number), *value);
                    }
                });
            }
        });
        w.each(("tables", 2), &self.tables, Table::write);
        w.each(("actions", 3), &self.actions, |action, w| {
            w.preamble(&action.preamble);
            w.each(("params", 2), &action.params, |param, w| {
                param.write(w, 7, 6);
                w.doc(&param.annotations, 5);
            });
        });
        w.each(
            ("action_profiles", 4),
            &self.action_profiles,
            ActionProfile::write,
        );
        w.each(("counters", 5), &self.counters, Indexed::write);
        w.each(("direct_counters", 6), &self.direct_counters, Direct::write);
        w.each(("meters", 7), &self.meters, Indexed::write);
        w.each(("direct_meters", 8), &self.direct_meters, Direct::write);
        let packets = &self.controller_packet_metadata;
        w.each(("controller_packet_metadata", 9), packets, |header, w| {
            w.preamble(&header.preamble);
            w.each(("metadata", 2), &header.metadata, |p, w| p.write(w, 6, 5));
        });
        w.each(("value_sets", 10), &self.value_sets, |set, w| {
            w.preamble(&set.preamble);
            w.each(("match", 2), &set.fields, MatchField::write);
            w.number(("size", 3), set.size);
        });
        w.each(("registers", 11), &self.registers, |register, w| {
            w.preamble(&register.preamble);
            w.message(("type_spec", 2), |w| register.type_spec.write(w));
            w.number(("size", 3), register.size);
            w.type_name(("index_type_name", 4), &register.index_type_name);
        });
        w.each(("digests", 12), &self.digests, |digest, w| {
            w.preamble(&digest.preamble);
            w.message(("type_spec", 2), |w| digest.type_spec.write(w));
        });
        if self.type_info != TypeInfo::default() {
            w.message(("type_info", 200), |w| self.type_info.write(w));
        }
        w
    }
}

impl Indexed {
    fn write(&self, w: &mut Writer) {
        w.preamble(&self.preamble);
        w.unit(self.unit);
        w.number(("size", 3), self.size);
        w.type_name(("index_type_name", 4), &self.index_type_name);
    }
}

impl Direct {
    fn write(&self, w: &mut Writer) {
        w.preamble(&self.preamble);
        w.unit(self.unit);
        w.number(("direct_table_id", 3), self.direct_table_id);
    }
}

impl StructuredAnnotation {
    fn write(&self, w: &mut Writer) {
        let value = |value: &AnnotationValue, w: &mut Writer| match value {
            AnnotationValue::Text(text) => w.string(("string_value", 1), text),
            AnnotationValue::Number(number) => {
                w.word(("int64_value", 2), &number.to_string(), *number as u64)
            }
            AnnotationValue::Truth(truth) => {
                w.word(("bool_value", 3), &truth.to_string(), u64::from(*truth))
            }
        };
        w.string(("name", 1), &self.name);
        match &self.body {
            AnnotationBody::List(items) => w.message(("expression_list", 2), |w| {
                w.each(("expressions", 1), items, value);
            }),
            AnnotationBody::Pairs(pairs) => w.message(("kv_pair_list", 3), |w| {
                for (key, v) in pairs {
                    w.message(("kv_pairs", 1), |w| {
                        w.string(("key", 1), key);
                        w.message(("value", 2), |w| value(v, w));
                    });
                }
            }),
        }
    }
}

impl Table {
    fn write(&self, w: &mut Writer) {
        w.preamble(&self.preamble);
        w.each(("match_fields", 2), &self.match_fields, MatchField::write);
        w.each(("action_refs", 3), &self.action_refs, |action, w| {
            w.number(("id", 1), action.id);
            w.annotations(&action.annotations, 2, 4);
            match action.scope {
                ir::ActionScope::Both => {}
                ir::ActionScope::TableOnly => w.word(("scope", 3), "TABLE_ONLY", 1),
                ir::ActionScope::DefaultOnly => w.word(("scope", 3), "DEFAULT_ONLY", 2),
            }
        });
        w.number(("const_default_action_id", 4), self.const_default_action_id);
        if let Some(call) = &self.initial_default_action {
            w.message(("initial_default_action", 5), |w| {
                w.number(("action_id", 1), call.action_id);
                for (param, value) in &call.arguments {
                    w.message(("arguments", 4), |w| {
                        w.number(("param_id", 2), *param);
                        w.bytes(("value", 3), value);
                    });
                }
            });
        }
        w.number(("implementation_id", 6), self.implementation_id);
        self.direct_resource_ids
            .iter()
            .for_each(|id| w.number(("direct_resource_ids", 7), *id));
        w.number(("size", 8), self.size);
        if self.idle_timeout {
            w.word(("idle_timeout_behavior", 9), "NOTIFY_CONTROL", 1);
        }
        w.flag(("is_const_table", 10), self.is_const_table);
        w.flag(("has_initial_entries", 11), self.has_initial_entries);
    }
}

impl MatchField {
    fn write(&self, w: &mut Writer) {
        w.number(("id", 1), self.id);
        if !self.name.is_empty() {
            w.string(("name", 2), &self.name);
        }
        w.annotations(&self.annotations, 3, 9);
        w.doc(&self.annotations, 6);
        w.number(("bitwidth", 4), self.bitwidth);
        let kind = match self.kind {
            ir::MatchKind::Exact => ("EXACT", 2),
            ir::MatchKind::Lpm => ("LPM", 3),
            ir::MatchKind::Ternary => ("TERNARY", 4),
            ir::MatchKind::Range => ("RANGE", 5),
            ir::MatchKind::Optional => ("OPTIONAL", 6),
            ir::MatchKind::Selector => ("UNSPECIFIED", 0),
        };
        w.one_of(("match_type", 5), kind);
        w.type_name(("type_name", 8), &self.type_name);
    }
}

impl Param {
    /// With the numbers of the structured annotations and of the type, which differ by message.
    fn write(&self, w: &mut Writer, structured: u32, type_name: u32) {
        w.number(("id", 1), self.id);
        w.string(("name", 2), &self.name);
        w.annotations(&self.annotations, 3, structured);
        w.number(("bitwidth", 4), self.bitwidth);
        w.type_name(("type_name", type_name), &self.type_name);
    }
}

impl ActionProfile {
    fn write(&self, w: &mut Writer) {
        w.preamble(&self.preamble);
        self.table_ids
            .iter()
            .for_each(|id| w.number(("table_ids", 2), *id));
        w.flag(("with_selector", 3), self.with_selector);
        w.number(("size", 4), self.size);
        w.number(("max_group_size", 5), self.max_group_size);
        match self.size_semantics {
            Some(SizeSemantics::SumOfWeights) => w.message(("sum_of_weights", 6), |_| {}),
            Some(SizeSemantics::SumOfMembers(weight)) => w.message(("sum_of_members", 7), |w| {
                w.number(("max_member_weight", 1), weight);
            }),
            None => {}
        }
    }
}

impl TypeSpec {
    fn write(&self, w: &mut Writer) {
        let stack = |w: &mut Writer, kind: Field, of: Field, name: &str, size: u32| {
            w.message(kind, |w| {
                w.named(of, name);
                w.number(("size", 2), size);
            });
        };
        match self {
            TypeSpec::Bit(_) | TypeSpec::Int(_) | TypeSpec::Varbit(_) => {
                w.message(("bitstring", 1), |w| self.write_bits(w));
            }
            TypeSpec::Bool => w.message(("bool", 2), |_| {}),
            TypeSpec::Tuple(items) => w.message(("tuple", 3), |w| {
                w.each(("members", 1), items, TypeSpec::write);
            }),
            TypeSpec::Struct(name) => w.named(("struct", 4), name),
            TypeSpec::Header(name) => w.named(("header", 5), name),
            TypeSpec::HeaderUnion(name) => w.named(("header_union", 6), name),
            TypeSpec::HeaderStack(name, size) => {
                stack(w, ("header_stack", 7), ("header", 1), name, *size)
            }
            TypeSpec::HeaderUnionStack(name, size) => stack(
                w,
                ("header_union_stack", 8),
                ("header_union", 1),
                name,
                *size,
            ),
            TypeSpec::Enum(name) => w.named(("enum", 9), name),
            TypeSpec::SerializableEnum(name) => w.named(("serializable_enum", 11), name),
            TypeSpec::Error => w.message(("error", 10), |_| {}),
            TypeSpec::NewType(name) => w.named(("new_type", 12), name),
        }
    }

    /// The fields of P4BitstringLikeTypeSpec.
    fn write_bits(&self, w: &mut Writer) {
        match self {
            TypeSpec::Int(width) => w.message(("int", 2), |w| w.number(("bitwidth", 1), *width)),
            TypeSpec::Varbit(width) => {
                w.message(("varbit", 3), |w| w.number(("max_bitwidth", 1), *width))
            }
            TypeSpec::Bit(width) => w.message(("bit", 1), |w| w.number(("bitwidth", 1), *width)),
            _ => {}
        }
    }
}

impl TypeInfo {
    fn write(&self, w: &mut Writer) {
        let entry = |w: &mut Writer, map: Field, name: &str, f: &dyn Fn(&mut Writer)| {
            w.message(map, |w| {
                w.string(("key", 1), name);
                w.message(("value", 2), f);
            });
        };
        for (name, members) in &self.structs {
            entry(w, ("structs", 1), name, &|w| {
                w.each(("members", 1), members, |(name, ty), w| {
                    w.string(("name", 1), name);
                    w.message(("type_spec", 2), |w| ty.write(w));
                });
            });
        }
        for (name, members) in &self.headers {
            entry(w, ("headers", 2), name, &|w| {
                w.each(("members", 1), members, |(name, ty), w| {
                    w.string(("name", 1), name);
                    w.message(("type_spec", 2), |w| ty.write_bits(w));
                });
            });
        }
        for (name, members) in &self.header_unions {
            entry(w, ("header_unions", 3), name, &|w| {
                w.each(("members", 1), members, |(name, header), w| {
                    w.string(("name", 1), name);
                    w.named(("header", 2), header);
                });
            });
        }
        for (name, members) in &self.enums {
            entry(w, ("enums", 4), name, &|w| {
                w.each(("members", 1), members, |member, w| {
                    w.string(("name", 1), member)
                });
            });
        }
        if !self.errors.is_empty() {
            w.message(("error", 5), |w| {
                self.errors.iter().for_each(|e| w.string(("members", 1), e))
            });
        }
        for (name, SerializableEnum { bitwidth, members }) in &self.serializable_enums {
            entry(w, ("serializable_enums", 6), name, &|w| {
                w.message(("underlying_type", 1), |w| {
                    w.number(("bitwidth", 1), *bitwidth)
                });
                w.each(("members", 1), members, |(name, value), w| {
                    w.string(("name", 1), name);
                    w.bytes(("value", 2), value);
                });
            });
        }
        for (name, new_type) in &self.new_types {
            entry(w, ("new_types", 7), name, &|w| {
                match &new_type.representation {
                    NewTypeSpec::Original(ty) => w.message(("original_type", 1), |w| ty.write(w)),
                    NewTypeSpec::TranslatedBits(uri, width) => {
                        w.message(("translated_type", 2), |w| {
                            w.string(("uri", 1), uri);
                            w.number(("sdn_bitwidth", 2), *width);
                        })
                    }
                    NewTypeSpec::TranslatedString(uri) => w.message(("translated_type", 2), |w| {
                        w.string(("uri", 1), uri);
                        w.message(("sdn_string", 3), |_| {});
                    }),
                }
                w.annotations(&new_type.annotations, 3, 4);
            });
        }
    }
}
