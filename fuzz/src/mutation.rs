//! Mutates inputs: bytes of histories, and tokens, lines and blocks of text, so that many mutants are still programs.
//!
//! It knows no grammar, only words, numbers and signs, and that braces and brackets come in pairs.

use ir::arbitrary::Rng;
use std::ops::Range;

/// Words that languages under test are made of, for what the seeds do not have where it is wanted.
const WORDS: [&str; 56] = [
    "bit<8>",
    "bit<1>",
    "bit<9>",
    "bit<128>",
    "bit<257>",
    "int<8>",
    "int<2>",
    "varbit<64>",
    "bool",
    "error",
    "string",
    "header",
    "struct",
    "enum",
    "parser",
    "control",
    "table",
    "action",
    "apply",
    "state",
    "transition",
    "select",
    "default",
    "if",
    "else",
    "switch",
    "return",
    "exit",
    "for",
    "break",
    "continue",
    "const",
    "in",
    "out",
    "inout",
    "&&&",
    "..",
    "++",
    "|+|",
    "|-|",
    "<<",
    ">>",
    "_",
    "{#}",
    "...",
    "0",
    "1",
    "8w255",
    "-1",
    "4294967296",
    "true",
    "this",
    "#define X",
    "#if 1",
    "#endif",
    "\\\n",
];

/// Numbers at the edges of what fields, shifts and sizes may be.
const NUMBERS: [&str; 18] = [
    "0",
    "1",
    "2",
    "7",
    "8",
    "9",
    "31",
    "32",
    "63",
    "64",
    "65",
    "127",
    "255",
    "256",
    "2048",
    "65535",
    "4294967295",
    "0xffffffffffffffffffff",
];

/// The form of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text, such as programs.
    Text,
    /// Bytes, each of which stands for decisions.
    Bytes,
}

/// Makes a mutant of some input of the corpus, or of `start` if there is one.
pub fn mutate(corpus: &[Vec<u8>], start: Option<Vec<u8>>, form: Form, rng: &mut Rng) -> Vec<u8> {
    let pick = |rng: &mut Rng| corpus[rng.below(corpus.len() as u32) as usize].clone();
    let mut input = match start {
        Some(start) => start,
        None => pick(rng),
    };
    // One change in most cases: the more of them the fewer mutants are programs.
    let changes = match rng.below(8) {
        0..=4 => 1,
        5 | 6 => 2,
        _ => 3 + rng.below(6),
    };
    for _ in 0..changes {
        let other = pick(rng);
        match (form, rng.below(12)) {
            (Form::Text, 0) | (Form::Bytes, _) => change_bytes(&mut input, &other, rng),
            (Form::Text, 1..=3) => change_lines(&mut input, &other, rng),
            (Form::Text, 4) => change_block(&mut input, &other, rng),
            (Form::Text, _) => change_tokens(&mut input, &other, rng),
        }
    }
    input.truncate(crate::MAX_INPUT);
    input
}

fn below(rng: &mut Rng, limit: usize) -> usize {
    rng.below(limit.clamp(1, u32::MAX as usize) as u32) as usize
}

fn change_bytes(input: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let at = below(rng, input.len() + 1);
    let length = below(rng, 24).min(input.len() - at);
    match rng.below(6) {
        0 => drop(input.drain(at..at + length)),
        1 => {
            let piece = input[at..at + length].to_vec();
            let to = below(rng, input.len() + 1);
            input.splice(to..to, piece);
        }
        2 => {
            let from = below(rng, other.len() + 1);
            let end = (from + below(rng, 200)).min(other.len());
            input.splice(at..at + length, other[from..end].iter().copied());
        }
        3 => input.insert(at, rng.below(256) as u8),
        4 => input[at..at + length].fill(0),
        _ => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
    }
}

/// Returns where the lines are, with their ends.
fn lines(text: &[u8]) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive(|b| *b == b'\n') {
        lines.push(start..start + line.len());
        start += line.len();
    }
    lines
}

/// Leaves out, repeats or moves a line, or takes one from elsewhere: in our programs a line is mostly a statement.
fn change_lines(input: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let own = lines(input);
    if own.is_empty() {
        return;
    }
    let line = own[below(rng, own.len())].clone();
    let to = own[below(rng, own.len())].start;
    match rng.below(5) {
        0 => drop(input.drain(line)),
        1 => {
            let text = input[line].to_vec();
            input.splice(to..to, text);
        }
        2 => {
            let text = input[line.clone()].to_vec();
            drop(input.drain(line.clone()));
            let to = if to > line.start { to - text.len() } else { to };
            input.splice(to..to, text);
        }
        _ => {
            let theirs = lines(other);
            if !theirs.is_empty() {
                let text = other[theirs[below(rng, theirs.len())].clone()].to_vec();
                input.splice(to..to, text);
            }
        }
    }
}

/// Returns the range from a random brace to the one that closes it, if there is one.
fn block(text: &[u8], rng: &mut Rng) -> Option<Range<usize>> {
    let opening: Vec<usize> = (0..text.len()).filter(|i| text[*i] == b'{').collect();
    if opening.is_empty() {
        return None;
    }
    let start = opening[below(rng, opening.len())];
    let mut depth = 0usize;
    for (i, byte) in text.iter().enumerate().skip(start) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(start..i + 1);
        }
    }
    None
}

/// Puts another block in the place of one.
fn change_block(input: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let from_here = rng.below(2) == 0;
    let source = if from_here {
        input.clone()
    } else {
        other.to_vec()
    };
    if let (Some(place), Some(taken)) = (block(input, rng), block(&source, rng)) {
        input.splice(place, source[taken].iter().copied());
    }
}

/// The kinds of token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Number,
    Sign,
}

/// Returns where the words, numbers and signs are.
fn tokens(text: &[u8]) -> Vec<(Range<usize>, Kind)> {
    const SIGNS: [&[u8]; 14] = [
        b"&&&", b"|+|", b"|-|", b"...", b"..", b"++", b"<<", b">>", b"==", b"!=", b"<=", b">=",
        b"&&", b"||",
    ];
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text.get(at) {
        let rest = &text[at..];
        let (length, kind) = if is_word(first) {
            let length = rest.iter().position(|b| !is_word(b)).unwrap_or(rest.len());
            match first.is_ascii_digit() {
                true => (length, Kind::Number),
                false => (length, Kind::Word),
            }
        } else {
            let sign = SIGNS.iter().find(|s| rest.starts_with(s));
            (sign.map_or(1, |s| s.len()), Kind::Sign)
        };
        if !first.is_ascii_whitespace() {
            tokens.push((at..at + length, kind));
        }
        at += length;
    }
    tokens
}

/// Puts another token of the same kind in the place of one, or adds or removes one.
fn change_tokens(input: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let own = tokens(input);
    if own.is_empty() {
        return;
    }
    let (place, kind) = own[below(rng, own.len())].clone();
    let alike = |text: &[u8], list: Vec<(Range<usize>, Kind)>, rng: &mut Rng| {
        let mut alike = list;
        alike.retain(|(_, k)| *k == kind);
        if alike.is_empty() {
            return Vec::new();
        }
        text[alike[below(rng, alike.len())].0.clone()].to_vec()
    };
    match rng.below(12) {
        0 => drop(input.drain(place)),
        1 => {
            let mut word = WORDS[below(rng, WORDS.len())].as_bytes().to_vec();
            word.push(b' ');
            input.splice(place.start..place.start, word);
        }
        2 => {
            let word = WORDS[below(rng, WORDS.len())];
            input.splice(place, word.bytes());
        }
        3 => {
            let text = alike(other, tokens(other), rng);
            input.splice(place, text);
        }
        4 => {
            // A short run of tokens once more.
            let from = below(rng, own.len());
            let to = (from + 1 + below(rng, 6)).min(own.len()) - 1;
            let text = input[own[from].0.start..own[to].0.end].to_vec();
            input.splice(place.start..place.start, text);
        }
        5 | 6 => {
            // A number where there is one; after a width, only the value changes.
            let numbers: Vec<_> = own.iter().filter(|(_, k)| *k == Kind::Number).collect();
            if !numbers.is_empty() {
                let place = numbers[below(rng, numbers.len())].0.clone();
                let number = NUMBERS[below(rng, NUMBERS.len())];
                input.splice(place, number.bytes());
            }
        }
        _ => {
            // A name for another one of the same program keeps most programs whole.
            let text = alike(input, own, rng);
            input.splice(place, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "control C(inout bit<8> x) {\n    apply { x = x + 8w1; }\n}\n";

    #[test]
    fn tokens_are_words_numbers_and_signs() {
        let found: Vec<_> = tokens(b"a_1 |+| 8w0x1 &&& { _ }")
            .into_iter()
            .map(|(range, kind)| (range.len(), kind == Kind::Sign))
            .collect();
        let expected = [
            (3, false),
            (3, true),
            (5, false),
            (3, true),
            (1, true),
            (1, false),
            (1, true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn blocks_end_where_their_brace_does() {
        let mut rng = Rng::new(1);
        for _ in 0..20 {
            let range = block(TEXT.as_bytes(), &mut rng).expect("there are two");
            let text = &TEXT[range];
            assert!(text.starts_with('{') && text.ends_with('}'), "{text}");
            assert_eq!(text.matches('{').count(), text.matches('}').count());
        }
        assert_eq!(block(b"{ {", &mut rng), None);
    }

    #[test]
    fn mutants_differ_and_the_same_seed_gives_the_same() {
        let corpus = [
            TEXT.as_bytes().to_vec(),
            b"header h { bit<4> a; }\n".to_vec(),
        ];
        for form in [Form::Text, Form::Bytes] {
            let (mut rng, mut again) = (Rng::new(3), Rng::new(3));
            let mutants: Vec<_> = (0..2000)
                .map(|_| mutate(&corpus, None, form, &mut rng))
                .collect();
            assert!(mutants.iter().filter(|m| !corpus.contains(m)).count() > 1500);
            assert_eq!(mutants[0], mutate(&corpus, None, form, &mut again));
        }
        // Nothing to change is no reason to fail.
        let empty = [Vec::new()];
        let mut rng = Rng::new(4);
        (0..500).for_each(|_| drop(mutate(&empty, None, Form::Text, &mut rng)));
    }
}
