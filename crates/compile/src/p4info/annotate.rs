//! Reads annotations: those with a meaning for the control plane, and those that are only passed on.

use num_bigint::BigInt;
use syntax::ast::{self, Annotation, AnnotationToken, AnnotationTokenKind, ExprKind};
use syntax::diagnostics::Diagnostic;
use syntax::source::SourceMap;

use super::{
    AnnotationBody, AnnotationValue, Annotations, NewTypeSpec, SizeSemantics, StructuredAnnotation,
};
use crate::errors;
use crate::fold;
use crate::types::Ty;

/// Annotations that P4Info tells in fields of their own.
const TOLD: [&str; 2] = ["name", "id"];

/// All annotations but those that are told otherwise.
pub(super) fn annotations(
    annotations: &[Annotation],
    without: &[&str],
    sources: &SourceMap,
    diagnostics: &mut Vec<Diagnostic>,
) -> Annotations {
    let mut out = Annotations::default();
    for annotation in annotations {
        let name = annotation.name.as_str();
        match (name, &annotation.body) {
            ("brief", _) => out.brief = annotation.string(),
            ("description", _) => out.description = annotation.string(),
            _ if TOLD.contains(&name) || without.contains(&name) => {}
            (_, ast::AnnotationBody::List(items)) => {
                let values = items.iter().filter_map(|e| value(e, diagnostics)).collect();
                let body = AnnotationBody::List(values);
                out.structured.push(StructuredAnnotation {
                    name: name.to_string(),
                    body,
                });
            }
            (_, ast::AnnotationBody::KeyValue(items)) => {
                let mut pairs = Vec::new();
                for item in items {
                    if let Some(value) = value(&item.value, diagnostics) {
                        pairs.push((item.name.to_string(), value));
                    }
                }
                let body = AnnotationBody::Pairs(pairs);
                out.structured.push(StructuredAnnotation {
                    name: name.to_string(),
                    body,
                });
            }
            _ => out.unstructured.push(text(annotation, sources)),
        }
    }
    out
}

/// A constant; anything else is reported.
fn value(expr: &ast::Expr, diagnostics: &mut Vec<Diagnostic>) -> Option<AnnotationValue> {
    let found = match constant(expr) {
        Some(Constant::Number(number)) => i64::try_from(number).ok().map(AnnotationValue::Number),
        Some(Constant::Text(text)) => Some(AnnotationValue::Text(text)),
        Some(Constant::Truth(truth)) => Some(AnnotationValue::Truth(truth)),
        None => None,
    };
    if found.is_none() {
        diagnostics.push(errors::annotation_value(expr.span));
    }
    found
}

/// What an expression without names comes to.
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

/// An unstructured annotation as written.
fn text(annotation: &Annotation, sources: &SourceMap) -> String {
    let name = annotation.name.as_str();
    let ast::AnnotationBody::Tokens(tokens) = &annotation.body else {
        return format!("@{name}");
    };
    let between = match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => sources.text(first.span.to(last.span)),
        _ => "",
    };
    match between {
        "" => format!(
            "@{name}({})",
            tokens.iter().map(token_text).collect::<Vec<_>>().join(" ")
        ),
        text => format!("@{name}({text})"),
    }
}

pub(super) fn find<'a>(annotations: &'a [Annotation], name: &str) -> Option<&'a Annotation> {
    annotations.iter().find(|a| a.name.as_str() == name)
}

/// The number in `@id(n)`.
pub(super) fn given_id(annotations: &[Annotation]) -> Option<u32> {
    let literal = find(annotations, "id")?.int()?;
    fold::to_u32(&fold::literal(literal))
}

/// The control-plane name of a type, field or parameter.
pub(super) fn local_name(name: &str, annotations: &[Annotation]) -> String {
    let given = find(annotations, "name").and_then(Annotation::string);
    let given = given.as_deref().unwrap_or(name);
    given.strip_prefix('.').unwrap_or(given).to_string()
}

/// The number in `@name(n)`, or 0.
pub(super) fn number(annotations: &[Annotation], name: &str) -> u32 {
    let literal = find(annotations, name).and_then(Annotation::int);
    literal
        .and_then(|l| fold::to_u32(&fold::literal(l)))
        .unwrap_or(0)
}

/// `@a[k = "v"]`, or the same in parentheses.
pub(super) fn strings(annotation: &Annotation) -> Vec<(String, String)> {
    let pairs = |name: &str, text: &str| (name.to_string(), text.to_string());
    match &annotation.body {
        ast::AnnotationBody::KeyValue(items) => items
            .iter()
            .filter_map(|i| match &i.value.kind {
                ExprKind::Str(text) => Some(pairs(i.name.as_str(), text)),
                _ => None,
            })
            .collect(),
        ast::AnnotationBody::Tokens(tokens) => tokens
            .windows(3)
            .filter_map(|w| match (&w[0].kind, &w[2].kind) {
                (AnnotationTokenKind::Word(name), AnnotationTokenKind::Str(text)) => {
                    Some(pairs(name, text))
                }
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// `@a[k = 1]`, or the same in parentheses.
pub(super) fn numbers(annotation: &Annotation) -> Vec<(String, u32)> {
    let number = |literal| fold::to_u32(&fold::literal(literal));
    match &annotation.body {
        ast::AnnotationBody::KeyValue(items) => items
            .iter()
            .filter_map(|i| match &i.value.kind {
                ExprKind::Int(literal) => Some((i.name.to_string(), number(literal)?)),
                _ => None,
            })
            .collect(),
        ast::AnnotationBody::Tokens(tokens) => tokens
            .windows(3)
            .filter_map(|w| match (&w[0].kind, &w[2].kind) {
                (AnnotationTokenKind::Word(name), AnnotationTokenKind::Int(literal)) => {
                    Some((name.to_string(), number(literal)?))
                }
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

pub(super) fn size_semantics(annotations: &[Annotation]) -> Option<SizeSemantics> {
    let text = find(annotations, "selector_size_semantics")?.string()?;
    match text.to_ascii_lowercase().as_str() {
        "sum_of_members" => Some(SizeSemantics::SumOfMembers(number(
            annotations,
            "max_member_weight",
        ))),
        _ => Some(SizeSemantics::SumOfWeights),
    }
}

/// `@p4runtime_translation("uri", 32)`, or `string` or `bit<32>` for the number.
pub(super) fn translation(tokens: &[AnnotationToken]) -> Option<NewTypeSpec> {
    let uri = tokens.iter().find_map(|t| match &t.kind {
        AnnotationTokenKind::Str(text) => Some(text.to_string()),
        _ => None,
    })?;
    let width = tokens.iter().find_map(|t| match &t.kind {
        AnnotationTokenKind::Int(literal) => fold::to_u32(&fold::literal(literal)),
        _ => None,
    });
    match width {
        Some(width) => Some(NewTypeSpec::TranslatedBits(uri, width)),
        None if tokens.iter().any(|t| token_text(t) == "string") => {
            Some(NewTypeSpec::TranslatedString(uri))
        }
        None => None,
    }
}

pub(super) fn token_text(token: &AnnotationToken) -> String {
    match &token.kind {
        AnnotationTokenKind::Word(text) | AnnotationTokenKind::Symbol(text) => text.to_string(),
        AnnotationTokenKind::Str(text) => format!("\"{text}\""),
        AnnotationTokenKind::Int(literal) => fold::literal(literal).to_string(),
    }
}
