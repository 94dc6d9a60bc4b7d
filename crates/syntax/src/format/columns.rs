//! Columns: where the author has aligned names, values, targets or comments of neighbouring lines, they stay aligned.
//!
//! A run is a row of lines of the same depth without an empty line between them that have the column. It is aligned if one
//! of them has more than one blank before the column.

use super::layout::Placed;
use super::lines::{Line, Piece};
use super::width;
use crate::token::TokenKind as T;

/// Sets the blanks before the columns that are aligned, and one blank (two before comments, if written) before others.
pub(super) fn align(lines: &mut [Line], placed: &[Placed]) {
    for find in [name_of, value_of, target_of, annotation_of] {
        align_cells(lines, placed, find, false);
    }
    align_cells(lines, placed, comment_of, true);
}

/// Aligns the cells that `find` finds. Lines without one end a run unless `over_others` is true.
fn align_cells(
    lines: &mut [Line],
    placed: &[Placed],
    find: fn(&[Piece]) -> Option<usize>,
    over_others: bool,
) {
    let mut run: Vec<(usize, usize)> = Vec::new();
    // The depth, and whether annotations stand in front.
    let mut row = (0, false);
    for at in 0..=lines.len() {
        let pieces = match lines.get(at) {
            Some(Line::Directive(_)) => continue,
            Some(Line::Code(pieces)) if is_between(pieces) => continue,
            Some(Line::Code(pieces)) if placed[at].starts_statement => &pieces[..],
            Some(Line::Code(_) | Line::Blank) | None => &[],
        };
        let cell = find(pieces);
        let annotated = !over_others && pieces.first().is_some_and(|p| p.kind == Some(T::At));
        let here = (placed.get(at).map_or(0, |p| p.indent), annotated);
        let ends = cell.is_none() && (!over_others || pieces.is_empty());
        if ends || here != row {
            straighten(lines, &run);
            run.clear();
        }
        row = here;
        run.extend(cell.map(|cell| (at, cell)));
    }
}

/// Returns whether a line may stand between the lines of a run: one with nothing but comments, or an annotation.
fn is_between(pieces: &[Piece]) -> bool {
    let mut kinds = pieces.iter().filter_map(|p| p.kind);
    match (kinds.next(), kinds.next_back()) {
        (None, _) => true,
        (Some(T::At), last) => !matches!(last, Some(T::Semi | T::LBrace | T::RBrace)),
        _ => false,
    }
}

/// Aligns the pieces of a run, given by their lines and their positions there, if one of them is set off.
fn straighten(lines: &mut [Line], run: &[(usize, usize)]) {
    let cells = run.iter().filter_map(|(line, cell)| match &lines[*line] {
        Line::Code(pieces) => Some((&pieces[..*cell], &pieces[*cell])),
        _ => None,
    });
    let cells: Vec<(&[Piece], &Piece)> = cells.collect();
    let set_off = cells.iter().any(|(_, cell)| cell.written > 1);
    let comments = cells.iter().all(|(_, cell)| cell.kind.is_none());
    let least = match comments {
        true => cells
            .iter()
            .map(|(_, cell)| cell.written)
            .min()
            .unwrap_or(1)
            .clamp(1, 2),
        false => 1,
    };
    let before: Vec<usize> = cells.iter().map(|(pieces, _)| length(pieces)).collect();
    let widest = before.iter().max().copied().unwrap_or(0);
    for ((line, cell), before) in run.iter().zip(before) {
        if let Line::Code(pieces) = &mut lines[*line] {
            let piece = &mut pieces[*cell];
            piece.gap = match set_off && run.len() > 1 {
                true => widest - before + least,
                false if comments => piece.written.clamp(1, 2),
                false => piece.gap,
            };
        }
    }
}

fn length(pieces: &[Piece]) -> usize {
    let gaps = pieces.iter().skip(1).map(|p| p.gap).sum::<usize>();
    gaps + pieces.iter().map(|p| width(&p.text)).sum::<usize>()
}

/// Returns the tokens of a line that are in no brackets, with their positions.
fn outer(pieces: &[Piece]) -> Vec<(usize, T)> {
    let mut depth = 0usize;
    let mut found = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let Some(kind) = piece.kind else { continue };
        match kind {
            T::LParen | T::LBracket | T::LBrace => depth += 1,
            T::RParen | T::RBracket | T::RBrace => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    found.push((at, kind));
                }
            }
            _ if depth == 0 => found.push((at, kind)),
            _ => {}
        }
    }
    found
}

/// Returns the position of the name that a line declares behind a type.
fn name_of(pieces: &[Piece]) -> Option<usize> {
    let tokens = outer(pieces);
    if matches!(
        tokens.first()?.1,
        T::Transition | T::Return | T::Else | T::If
    ) {
        return None;
    }
    let found = tokens.windows(3).find(|three| {
        let [(_, before), (_, name), (_, after)] = three else {
            return false;
        };
        let after_type = before.is_word() || matches!(before, T::Gt | T::RParen | T::RBracket);
        after_type && name.is_name() && matches!(after, T::Semi | T::Assign)
    });
    found.map(|three| three[1].0)
}

/// Returns the position of the `=` of a line.
fn value_of(pieces: &[Piece]) -> Option<usize> {
    let tokens = outer(pieces);
    let found = tokens.iter().find(|(_, kind)| *kind == T::Assign);
    found.map(|(at, _)| *at)
}

/// Returns the position of what a line has behind a `:`, such as the target of a case.
fn target_of(pieces: &[Piece]) -> Option<usize> {
    let tokens = outer(pieces);
    let colon = tokens.iter().position(|(_, kind)| *kind == T::Colon)?;
    let conditional = tokens.iter().any(|(_, kind)| *kind == T::Question);
    let (at, _) = tokens[colon];
    let next = pieces.get(at + 1)?;
    (!conditional && next.kind.is_some()).then_some(at + 1)
}

/// Returns the position of the first annotation behind other tokens of a line.
fn annotation_of(pieces: &[Piece]) -> Option<usize> {
    let tokens = outer(pieces);
    let found = tokens.iter().find(|(_, kind)| *kind == T::At);
    found.map(|(at, _)| *at).filter(|at| *at > 0)
}

/// Returns the position of the comment behind the code of a line.
fn comment_of(pieces: &[Piece]) -> Option<usize> {
    let last = pieces.len().checked_sub(1)?;
    (last > 0 && pieces[last].kind.is_none() && pieces[last].text.starts_with("//")).then_some(last)
}
