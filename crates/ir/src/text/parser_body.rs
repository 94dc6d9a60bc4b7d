//! Text to program: parser states, statements and expressions. The grammar is in [`super`].

use super::lexer::Token;
use super::parser::{Parsed, Parser};
use super::{BINARY, HASHES, UNARY, value_of};
use crate::verify::{MAX_EXPR_DEPTH, MAX_NESTING};
use crate::*;

impl Parser<'_> {
    fn loc(&mut self) -> Parsed<Loc> {
        if !self.eat_mark('@')? {
            return Ok(Loc::default());
        }
        let file = self.number()?;
        self.mark(':')?;
        let line = self.number()?;
        Ok(Loc { file, line })
    }

    pub(super) fn state(&mut self) -> Parsed<State> {
        let name = self.string()?;
        let loc = self.loc()?;
        self.mark('{')?;
        let mut body = Vec::new();
        self.nesting += 1;
        let transition = loop {
            if self.eat_word("goto")? {
                break Transition::Goto(self.target()?);
            }
            if self.eat_word("select")? {
                break self.select()?;
            }
            body.push(self.stmt()?);
        };
        self.nesting -= 1;
        self.mark('}')?;
        Ok(State {
            name,
            body,
            transition,
            loc,
        })
    }

    fn target(&mut self) -> Parsed<Target> {
        if self.eat_word("accept")? {
            return Ok(Target::Accept);
        }
        if self.eat_word("reject")? {
            return Ok(Target::Reject);
        }
        Ok(Target::State(StateId(self.id('s', "a state")?)))
    }

    fn select(&mut self) -> Parsed<Transition> {
        let keys = self.list('(', ')', Self::expr)?;
        self.mark('{')?;
        let mut cases = Vec::new();
        while self.eat_word("case")? {
            let matches = self.list('(', ')', Self::key_set)?;
            let target = self.target()?;
            cases.push(SelectCase { matches, target });
        }
        self.mark('}')?;
        Ok(Transition::Select { keys, cases })
    }

    fn key_set(&mut self) -> Parsed<KeySet> {
        if self.eat_word("_")? {
            self.spend_limbs(1)?;
            return Ok(KeySet::Any);
        }
        if let Token::Word(_) = self.token {
            self.spend_limbs(1)?;
            return Ok(KeySet::ValueSet(ValueSetId(self.id('v', "a value set")?)));
        }
        let first = self.bits()?;
        if self.eat_mark('&')? {
            let mask = self.bits()?;
            return Ok(KeySet::Mask { value: first, mask });
        }
        self.dots()?;
        let high = self.bits()?;
        Ok(KeySet::Range { low: first, high })
    }

    pub(super) fn body(&mut self) -> Parsed<Vec<Stmt>> {
        self.mark('{')?;
        self.nesting += 1;
        let mut body = Vec::new();
        while !self.eat_mark('}')? {
            body.push(self.stmt()?);
        }
        self.nesting -= 1;
        Ok(body)
    }

    fn stmt(&mut self) -> Parsed<Stmt> {
        if self.nesting > MAX_NESTING {
            return self.fail(format!("statements nest more than {MAX_NESTING} deep"));
        }
        self.spend_statement()?;
        let Token::Word(keyword) = self.token else {
            return self.expected("a statement");
        };
        match keyword {
            "if" => self.if_stmt(),
            "switch" => self.switch(),
            "block" | "loop" => self.labelled(keyword == "loop"),
            _ => {
                let kind = self.simple(keyword)?;
                let loc = self.loc()?;
                Ok(Stmt { kind, loc })
            }
        }
    }

    fn if_stmt(&mut self) -> Parsed<Stmt> {
        self.word("if")?;
        let cond = self.expr()?;
        let loc = self.loc()?;
        let then = self.body()?;
        let otherwise = self.optional("else", Self::body)?.unwrap_or_default();
        Ok(Stmt {
            kind: StmtKind::If {
                cond,
                then,
                otherwise,
            },
            loc,
        })
    }

    fn switch(&mut self) -> Parsed<Stmt> {
        self.word("switch")?;
        let value = self.expr()?;
        let loc = self.loc()?;
        self.mark('{')?;
        let mut cases = Vec::new();
        while self.eat_word("case")? {
            let mut values = vec![self.bits()?];
            while self.eat_mark(',')? {
                values.push(self.bits()?);
            }
            cases.push((values, self.body()?));
        }
        let default = self.optional("default", Self::body)?.unwrap_or_default();
        self.mark('}')?;
        Ok(Stmt {
            kind: StmtKind::Switch {
                value,
                cases,
                default,
            },
            loc,
        })
    }

    fn labelled(&mut self, is_loop: bool) -> Parsed<Stmt> {
        self.word(if is_loop { "loop" } else { "block" })?;
        let label = LabelId(self.id('b', "a label")?);
        let loc = self.loc()?;
        let body = self.body()?;
        let kind = if is_loop {
            StmtKind::Loop { label, body }
        } else {
            StmtKind::Block { label, body }
        };
        Ok(Stmt { kind, loc })
    }

    /// Reads a statement that contains no other statements and begins with `keyword`, which is the next
    /// token.
    fn simple(&mut self, keyword: &str) -> Parsed<StmtKind> {
        match keyword {
            "assign" | "register_read" | "meter_execute" | "direct_meter_read" | "hash"
            | "random" => {
                self.word(keyword)?;
                let dst = self.slot()?;
                self.mark('=')?;
                self.with_destination(keyword, dst)
            }
            "set_valid" | "set_invalid" | "emit" | "extract" => {
                self.word(keyword)?;
                let header = HeaderId(self.id('h', "a header")?);
                self.with_header(keyword, header)
            }
            "truncate" | "assert" | "advance" | "reject" => {
                self.word(keyword)?;
                let value = self.expr()?;
                Ok(match keyword {
                    "truncate" => StmtKind::Truncate { length: value },
                    "assert" => StmtKind::Assert { cond: value },
                    "advance" => StmtKind::Advance { bits: value },
                    _ => StmtKind::Reject { error: value },
                })
            }
            _ => self.extern_call(keyword),
        }
    }

    fn with_destination(&mut self, keyword: &str, dst: SlotId) -> Parsed<StmtKind> {
        Ok(match keyword {
            "assign" => StmtKind::Assign {
                dst,
                value: self.expr()?,
            },
            "register_read" => {
                let register = RegisterId(self.id('r', "a register")?);
                StmtKind::RegisterRead {
                    dst,
                    register,
                    index: self.index()?,
                }
            }
            "meter_execute" => {
                let meter = MeterId(self.id('m', "a meter")?);
                StmtKind::MeterExecute {
                    meter,
                    index: self.index()?,
                    dst,
                }
            }
            "direct_meter_read" => {
                let meter = MeterId(self.id('m', "a meter")?);
                StmtKind::DirectMeterRead { meter, dst }
            }
            "hash" => {
                let algorithm = self.choice(HASHES, "a hash algorithm")?;
                let data = self.list('(', ')', Self::expr)?;
                let payload = self.eat_word("payload")?;
                StmtKind::Hash {
                    dst,
                    algorithm,
                    data,
                    payload,
                }
            }
            _ => {
                self.mark('(')?;
                let low = self.expr()?;
                self.mark(',')?;
                let high = self.expr()?;
                self.mark(')')?;
                StmtKind::Random { dst, low, high }
            }
        })
    }

    fn with_header(&mut self, keyword: &str, header: HeaderId) -> Parsed<StmtKind> {
        Ok(match keyword {
            "set_valid" => StmtKind::SetValid(header),
            "set_invalid" => StmtKind::SetInvalid(header),
            "emit" => StmtKind::Emit(header),
            _ => StmtKind::Extract {
                header,
                varbit_length: self.optional("length", Self::expr)?,
            },
        })
    }

    /// Reads a statement of one of the kinds that [`Parser::simple`] does not read itself, which begins with
    /// `keyword`.
    fn extern_call(&mut self, keyword: &str) -> Parsed<StmtKind> {
        let at = self.at;
        self.word(keyword)?;
        Ok(match keyword {
            "break" => StmtKind::Break(LabelId(self.id('b', "a label")?)),
            "exit" => StmtKind::Exit,
            "apply" => StmtKind::Apply {
                table: TableId(self.id('t', "a table")?),
                keys: self.list('(', ')', Self::expr)?,
                hit: self.optional("hit", Self::slot)?,
                action_run: self.optional("action_run", Self::slot)?,
            },
            "register_write" => {
                let register = RegisterId(self.id('r', "a register")?);
                let index = self.index()?;
                self.mark('=')?;
                StmtKind::RegisterWrite {
                    register,
                    index,
                    value: self.expr()?,
                }
            }
            "count" => {
                let counter = CounterId(self.id('c', "a counter")?);
                StmtKind::Count {
                    counter,
                    index: self.index()?,
                }
            }
            "clone" => StmtKind::Clone {
                kind: self.choice(
                    &[
                        ("i2e", CloneKind::IngressToEgress),
                        ("e2e", CloneKind::EgressToEgress),
                    ],
                    "i2e or e2e",
                )?,
                session: self.expr()?,
                preserve: self.preserve()?,
            },
            "resubmit" => StmtKind::Resubmit {
                preserve: self.preserve()?,
            },
            "recirculate" => StmtKind::Recirculate {
                preserve: self.preserve()?,
            },
            "digest" => StmtKind::Digest {
                digest: DigestId(self.id('d', "a digest")?),
                values: self.list('(', ')', Self::expr)?,
            },
            "log" => StmtKind::Log {
                format: self.string()?,
                values: self.list('(', ')', Self::expr)?,
            },
            "lookahead" => {
                let dst = self.slot()?;
                self.word("at")?;
                StmtKind::Lookahead {
                    dst,
                    offset: self.number()?,
                }
            }
            _ => {
                let shown: String = keyword.chars().take(40).collect();
                return Err((at, format!("expected a statement, found {shown}")));
            }
        })
    }

    fn index(&mut self) -> Parsed<Expr> {
        self.mark('[')?;
        let index = self.expr()?;
        self.mark(']')?;
        Ok(index)
    }

    fn preserve(&mut self) -> Parsed<Option<FieldListId>> {
        self.optional("preserve", |p| Ok(FieldListId(p.id('l', "a field list")?)))
    }

    fn expr(&mut self) -> Parsed<Expr> {
        if self.depth >= MAX_EXPR_DEPTH {
            return self.fail(format!(
                "an expression nests more than {MAX_EXPR_DEPTH} deep"
            ));
        }
        match self.token {
            Token::Number(_) => return Ok(Expr::Const(self.bits()?)),
            Token::Mark('%') => {
                self.spend_limbs(1)?;
                return Ok(Expr::Slot(self.slot()?));
            }
            _ => {}
        }
        let Token::Word(operator) = self.token else {
            return self.expected("an expression");
        };
        self.spend_limbs(1)?;
        self.word(operator)?;
        if operator == "packet_length" {
            return Ok(Expr::PacketLength);
        }
        if !self.is_mark('(') {
            return self.expected("the operands of an operator");
        }
        self.mark('(')?;
        self.depth += 1;
        let expr = self.operator(operator)?;
        self.depth -= 1;
        self.mark(')')?;
        Ok(expr)
    }

    fn operand(&mut self) -> Parsed<Box<Expr>> {
        self.expr().map(Box::new)
    }

    /// Reads a comma and the operand after it.
    fn next_operand(&mut self) -> Parsed<Box<Expr>> {
        self.mark(',')?;
        self.operand()
    }

    fn next_number(&mut self) -> Parsed<u32> {
        self.mark(',')?;
        self.number()
    }

    fn operator(&mut self, operator: &str) -> Parsed<Expr> {
        let at = self.at;
        let a = self.operand()?;
        if let Some(op) = value_of(BINARY, operator) {
            let b = self.next_operand()?;
            return Ok(Expr::Binary { op, a, b });
        }
        if let Some(op) = value_of(UNARY, operator) {
            return Ok(Expr::Unary { op, a });
        }
        Ok(match operator {
            "slice" => Expr::Slice {
                a,
                high: self.next_number()?,
                low: self.next_number()?,
            },
            "concat" => Expr::Concat {
                a,
                b: self.next_operand()?,
            },
            "zext" => Expr::ZeroExtend {
                a,
                width: self.next_number()?,
            },
            "sext" => Expr::SignExtend {
                a,
                width: self.next_number()?,
            },
            "mux" => Expr::Mux {
                cond: a,
                then: self.next_operand()?,
                otherwise: self.next_operand()?,
            },
            _ => {
                let shown: String = operator.chars().take(40).collect();
                return Err((at, format!("there is no operator {shown}")));
            }
        })
    }
}
