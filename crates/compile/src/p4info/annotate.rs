//! Reads annotations: those with a meaning for the control plane, and those that are only passed on.

use num_bigint::BigInt;
use syntax::Sink;
use syntax::ast::{self, Annotation, AnnotationToken, AnnotationTokenKind, ExprKind};
use syntax::source::Span;

use crate::errors;
use crate::fold;
use crate::types::Ty;
use proto::p4info::action_profile::{SelectorSizeSemantics, SumOfMembers, SumOfWeights};
use proto::p4info::expression::Value;
use proto::p4info::p4_new_type_translation::{SdnString, SdnType};
use proto::p4info::{self as p4, structured_annotation::Body};

/// The annotations of an object that do not change its meaning.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Annotations {
    /// Unstructured annotations, as written.
    pub unstructured: Vec<String>,
    /// Structured annotations.
    pub structured: Vec<p4::StructuredAnnotation>,
    /// From `@brief` and `@description`.
    pub doc: Option<p4::Documentation>,
}

impl Annotations {
    /// Makes the preamble of an object, the message with the fields that all objects of P4Info have in common.
    pub fn preamble(self, id: u32, name: String, alias: String) -> p4::Preamble {
        p4::Preamble {
            id,
            name,
            alias,
            annotations: self.unstructured,
            structured_annotations: self.structured,
            doc: self.doc,
            annotation_locations: Vec::new(),
        }
    }

    /// Makes the P4Info message of a key field, still without its match type. `bitwidth` (in bits) and
    /// `type_name` are those that the control plane sees.
    pub fn match_field(
        self,
        id: u32,
        name: String,
        (bitwidth, type_name): (i32, Option<p4::P4NamedType>),
    ) -> p4::MatchField {
        p4::MatchField {
            id,
            name,
            bitwidth,
            type_name,
            annotations: self.unstructured,
            structured_annotations: self.structured,
            doc: self.doc,
            annotation_locations: Vec::new(),
            r#match: None,
        }
    }

    fn structure(&mut self, name: &str, body: Body) {
        self.structured.push(p4::StructuredAnnotation {
            name: name.to_string(),
            source_location: None,
            body: Some(body),
        });
    }
}

/// Annotations that P4Info does not repeat as text, since it has fields of their own for what they say.
const TOLD: [&str; 2] = ["name", "id"];

/// Collects annotations for P4Info, `@brief` and `@description` as documentation, except `@name`, `@id` and those named in `without`.
/// Reports each value in a structured annotation that is no constant string, truth value or number of at most 64 bits.
pub(super) fn annotations(
    annotations: &[Annotation],
    without: &[&str],
    diagnostics: &mut Sink,
) -> Annotations {
    let mut out = Annotations::default();
    for annotation in annotations {
        let name = annotation.name.as_str();
        match (name, &annotation.body) {
            // The server reads whose an object is from one string.
            ("p4runtime_role", ast::AnnotationBody::Tokens(_)) => {
                let role = annotation.string().unwrap_or_default();
                out.unstructured.push(format!("@{name}(\"{role}\")"));
            }
            ("brief", _) => {
                let doc = out.doc.get_or_insert_default();
                doc.brief = annotation.string().unwrap_or_default();
            }
            ("description", _) => {
                let doc = out.doc.get_or_insert_default();
                doc.description = annotation.string().unwrap_or_default();
            }
            _ if TOLD.contains(&name) || without.contains(&name) => {}
            (_, ast::AnnotationBody::List(items)) => {
                let values = items.iter().filter_map(|e| value(e, diagnostics));
                let expressions = values.map(|v| p4::Expression { value: Some(v) }).collect();
                out.structure(
                    name,
                    Body::ExpressionList(p4::ExpressionList { expressions }),
                );
            }
            (_, ast::AnnotationBody::KeyValue(items)) => {
                let mut kv_pairs = Vec::new();
                for item in items {
                    if let Some(value) = value(&item.value, diagnostics) {
                        kv_pairs.push(p4::KeyValuePair {
                            key: item.name.to_string(),
                            value: Some(p4::Expression { value: Some(value) }),
                        });
                    }
                }
                out.structure(name, Body::KvPairList(p4::KeyValuePairList { kv_pairs }));
            }
            _ => out.unstructured.push(text(annotation)),
        }
    }
    out
}

/// Returns the value of a constant as P4Info represents it; `None` if the expression is not constant or its
/// number does not fit into 64 bits.
fn annotation_value(expr: &ast::Expr) -> Option<Value> {
    match constant(expr)? {
        Constant::Number(number) => i64::try_from(number).ok().map(Value::Int64Value),
        Constant::Text(text) => Some(Value::StringValue(text)),
        Constant::Truth(truth) => Some(Value::BoolValue(truth)),
    }
}

/// Returns the value of a constant as P4Info represents it. Reports an error and returns `None` for an
/// expression that is not constant, or whose number does not fit into 64 bits.
fn value(expr: &ast::Expr, diagnostics: &mut Sink) -> Option<Value> {
    let found = annotation_value(expr);
    if found.is_none() {
        diagnostics.push(errors::annotation_value(expr.span));
    }
    found
}

/// The value of an expression without names.
enum Constant {
    Number(BigInt),
    Text(String),
    Truth(bool),
}

fn constant(expr: &ast::Expr) -> Option<Constant> {
    match &expr.kind {
        ExprKind::Str(text) => Some(Constant::Text(text.to_string())),
        ExprKind::Bool(truth) => Some(Constant::Truth(*truth)),
        ExprKind::Int(literal) => Some(Constant::Number(fold::literal(literal))),
        ExprKind::Unary { op, operand } => match (op, constant(operand)?) {
            (ast::UnaryOp::Neg, Constant::Number(n)) => Some(Constant::Number(-n)),
            (ast::UnaryOp::Plus, Constant::Number(n)) => Some(Constant::Number(n)),
            (ast::UnaryOp::Not, Constant::Truth(b)) => Some(Constant::Truth(!b)),
            _ => None,
        },
        ExprKind::Binary {
            op, left, right, ..
        } => match (constant(left)?, constant(right)?) {
            (Constant::Number(a), Constant::Number(b)) => match fold::compare(*op, &a, &b) {
                Some(truth) => Some(Constant::Truth(truth)),
                None => fold::arithmetic(*op, &a, &b, &Ty::Int)
                    .ok()
                    .map(Constant::Number),
            },
            (Constant::Text(a), Constant::Text(b)) if *op == ast::BinaryOp::Concat => {
                Some(Constant::Text(a + &b))
            }
            (Constant::Truth(a), Constant::Truth(b)) => match op {
                ast::BinaryOp::And => Some(Constant::Truth(a && b)),
                ast::BinaryOp::Or => Some(Constant::Truth(a || b)),
                ast::BinaryOp::Eq => Some(Constant::Truth(a == b)),
                ast::BinaryOp::Ne => Some(Constant::Truth(a != b)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Returns the text of an unstructured annotation as the source writes it, but with macros expanded, and with
/// one blank for each sequence of blanks and comments.
fn text(annotation: &Annotation) -> String {
    let name = annotation.name.as_str();
    let ast::AnnotationBody::Tokens(tokens) = &annotation.body else {
        return format!("@{name}");
    };
    let mut text = format!("@{name}(");
    for (i, token) in tokens.iter().enumerate() {
        if i > 0 && token.space_before {
            text.push(' ');
        }
        text.push_str(&token.text);
    }
    text.push(')');
    text
}

pub(super) fn find<'a>(annotations: &'a [Annotation], name: &str) -> Option<&'a Annotation> {
    annotations.iter().find(|a| a.name.as_str() == name)
}

/// Returns the number `n` of the annotation `@id(n)`; `None` if there is no such annotation or `n` exceeds 32 bits.
pub(super) fn given_id(annotations: &[Annotation]) -> Option<u32> {
    let literal = find(annotations, "id")?.int()?;
    fold::to_u32(&fold::literal(literal))
}

/// Returns the control-plane name of a type, field or parameter: the name in its `@name`, without a leading
/// dot, else `name`.
pub(super) fn local_name(name: &str, annotations: &[Annotation]) -> String {
    let given = find(annotations, "name").and_then(Annotation::string);
    let given = given.as_deref().unwrap_or(name);
    given.strip_prefix('.').unwrap_or(given).to_string()
}

/// Returns the number in the annotation with the name `name`, as in `@name(7)`; 0 if there is no such
/// annotation or the number exceeds 32 bits.
pub(super) fn number(annotations: &[Annotation], name: &str) -> u32 {
    let literal = find(annotations, name).and_then(Annotation::int);
    literal
        .and_then(|l| fold::to_u32(&fold::literal(l)))
        .unwrap_or(0)
}

/// A key and its value.
pub(super) struct Pair {
    /// The key.
    pub key: String,
    /// The value; `None` if it is no constant that P4Info can represent.
    pub value: Option<Value>,
    /// Their place in the source.
    pub span: Span,
}

/// Returns the pairs of an annotation of the form `@a[k = v, ...]` or `@a(k = v, ...)`; `None` for any other form.
pub(super) fn pairs(annotation: &Annotation) -> Option<Vec<Pair>> {
    match &annotation.body {
        ast::AnnotationBody::KeyValue(items) => Some(
            items
                .iter()
                .map(|item| Pair {
                    key: item.name.to_string(),
                    value: annotation_value(&item.value),
                    span: item.name.span.to(item.value.span),
                })
                .collect(),
        ),
        ast::AnnotationBody::Tokens(tokens) => {
            let is_comma = |t: &AnnotationToken| is_symbol(t, ",");
            tokens.split(is_comma).map(pair).collect()
        }
        _ => None,
    }
}

/// Parses the tokens of a pair `k = v`; `None` if `tokens` are anything else.
fn pair(tokens: &[AnnotationToken]) -> Option<Pair> {
    let [key, equals, value @ ..] = tokens else {
        return None;
    };
    let AnnotationTokenKind::Word(name) = &key.kind else {
        return None;
    };
    if !is_symbol(equals, "=") {
        return None;
    }
    let last = value.last()?;
    Some(Pair {
        key: name.to_string(),
        value: token_value(value),
        span: key.span.to(last.span),
    })
}

/// Returns the value of tokens that form a string (in one or more parts), a number or a truth value; `None`
/// for any other tokens.
fn token_value(tokens: &[AnnotationToken]) -> Option<Value> {
    let number = |value: BigInt| i64::try_from(value).ok().map(Value::Int64Value);
    let kinds: Vec<&AnnotationTokenKind> = tokens.iter().map(|t| &t.kind).collect();
    match kinds.as_slice() {
        [AnnotationTokenKind::Int(literal)] => number(fold::literal(literal)),
        [
            AnnotationTokenKind::Symbol(minus),
            AnnotationTokenKind::Int(literal),
        ] if &**minus == "-" => number(-fold::literal(literal)),
        [AnnotationTokenKind::Word(word)] if &**word == "true" => Some(Value::BoolValue(true)),
        [AnnotationTokenKind::Word(word)] if &**word == "false" => Some(Value::BoolValue(false)),
        _ => ast::string_of_tokens(tokens).map(Value::StringValue),
    }
}

fn is_symbol(token: &AnnotationToken, symbol: &str) -> bool {
    matches!(&token.kind, AnnotationTokenKind::Symbol(s) if &**s == symbol)
}

/// Returns what the sizes of an action selector's groups count, by the argument of
/// `@selector_size_semantics`; `None` if the argument is neither `sum_of_members` nor `sum_of_weights`.
/// Another annotation gives the largest weight of a member.
pub(crate) fn size_semantics(annotation: &Annotation) -> Option<SelectorSizeSemantics> {
    match annotation.string()?.to_ascii_lowercase().as_str() {
        "sum_of_members" => Some(SelectorSizeSemantics::SumOfMembers(SumOfMembers::default())),
        "sum_of_weights" => Some(SelectorSizeSemantics::SumOfWeights(SumOfWeights {})),
        _ => None,
    }
}

/// Returns the P4Info message for the arguments of `@p4runtime_translation("uri", 32)`: the URI, and the type
/// in the control plane, which is a number of bits, `bit<32>` or `string`. `None` if the URI or the type is
/// missing.
pub(super) fn translation(tokens: &[AnnotationToken]) -> Option<p4::P4NewTypeTranslation> {
    let uri = tokens.iter().find_map(|t| match &t.kind {
        AnnotationTokenKind::Str(text) => Some(text.to_string()),
        _ => None,
    })?;
    let width = tokens.iter().find_map(|t| match &t.kind {
        AnnotationTokenKind::Int(literal) => fold::to_u32(&fold::literal(literal)),
        _ => None,
    });
    let sdn_type = match width {
        Some(width) => SdnType::SdnBitwidth(width as i32),
        None if tokens.iter().any(|t| &*t.text == "string") => SdnType::SdnString(SdnString {}),
        None => return None,
    };
    Some(p4::P4NewTypeTranslation {
        uri,
        sdn_type: Some(sdn_type),
    })
}
