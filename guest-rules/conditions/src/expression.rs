//! Expressions as data. They are parsed when a component is built: the parser takes longer than all
//! checks together.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue,
    MapEntryExpr, MapExpr, SelectExpr,
};
use serde::{Deserialize, Serialize};

/// Parsed expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expression {
    /// No value.
    Null,
    /// Literal.
    Bool(bool),
    /// Literal.
    Int(i64),
    /// Literal.
    UInt(u64),
    /// Literal.
    Double(f64),
    /// Literal.
    Text(String),
    /// Fact, or item of a list.
    Name(String),
    /// Member of a value.
    Member {
        /// The value.
        of: Box<Self>,
        /// Name of the member.
        name: String,
        /// Asks whether the member exists.
        exists: bool,
    },
    /// Function or operator.
    Call {
        /// Name of the function.
        function: String,
        /// Value on which the function is called.
        on: Option<Box<Self>>,
        /// Arguments.
        with: Vec<Self>,
    },
    /// Items.
    List(Vec<Self>),
    /// Keys with values.
    Map(Vec<(Self, Self)>),
    /// Loop of `all`, `exists`, `map` or `filter`.
    Fold(Box<Fold>),
}

/// Walk through a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fold {
    /// The list.
    pub over: Expression,
    /// Name of the item.
    pub item: String,
    /// Name of the second item, for maps.
    pub second: Option<String>,
    /// Name of the result so far.
    pub result: String,
    /// First result.
    pub start: Expression,
    /// Condition for the next item.
    pub continues: Expression,
    /// Result after an item.
    pub step: Expression,
    /// The value of the walk.
    pub end: Expression,
}

/// Part of a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SentencePart {
    /// As it is.
    Text(String),
    /// A value of the facts.
    Value(Expression),
}

impl Expression {
    /// Converts a parsed expression.
    ///
    /// # Errors
    /// The expression has a part that facts do not have, as bytes.
    pub fn of(parsed: &IdedExpr) -> Result<Self, String> {
        let all = |list: &[IdedExpr]| list.iter().map(Self::of).collect::<Result<Vec<_>, _>>();
        // Facts are JSON. Parts that no JSON value has are refused
        // when the component is built, not when it runs.
        Ok(match &parsed.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Null => Self::Null,
                LiteralValue::Boolean(value) => Self::Bool(*value.inner()),
                LiteralValue::Int(value) => Self::Int(*value.inner()),
                LiteralValue::UInt(value) => Self::UInt(*value.inner()),
                LiteralValue::Double(value) => Self::Double(*value.inner()),
                LiteralValue::String(value) => Self::Text(value.inner().to_owned()),
                LiteralValue::Bytes(_) => return Err("facts have no bytes".into()),
            },
            Expr::Ident(name) => Self::Name(name.clone()),
            Expr::Select(select) => Self::Member {
                of: Box::new(Self::of(&select.operand)?),
                name: select.field.clone(),
                exists: select.test,
            },
            Expr::Call(call) => Self::Call {
                function: call.func_name.clone(),
                on: match &call.target {
                    Some(target) => Some(Box::new(Self::of(target)?)),
                    None => None,
                },
                with: all(&call.args)?,
            },
            Expr::List(list) if list.optional_indices.is_empty() => {
                Self::List(all(&list.elements)?)
            }
            Expr::Map(map) => {
                let entries = map.entries.iter().map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) if !entry.optional => {
                        Ok((Self::of(&entry.key)?, Self::of(&entry.value)?))
                    }
                    _ => Err("optional entries are not supported".to_owned()),
                });
                Self::Map(entries.collect::<Result<_, _>>()?)
            }
            Expr::Comprehension(fold) => Self::Fold(Box::new(Fold {
                over: Self::of(&fold.iter_range)?,
                item: fold.iter_var.clone(),
                second: fold.iter_var2.clone(),
                result: fold.accu_var.clone(),
                start: Self::of(&fold.accu_init)?,
                continues: Self::of(&fold.loop_cond)?,
                step: Self::of(&fold.loop_step)?,
                end: Self::of(&fold.result)?,
            })),
            _ => return Err("structures are not supported".into()),
        })
    }

    /// Converts to the type that the interpreter takes.
    pub fn parsed(&self) -> IdedExpr {
        let literal = Expr::Literal;
        let all = |list: &[Self]| list.iter().map(Self::parsed).collect::<Vec<_>>();
        let expr = match self {
            Self::Null => literal(LiteralValue::Null),
            Self::Bool(value) => literal(LiteralValue::Boolean((*value).into())),
            Self::Int(value) => literal(LiteralValue::Int((*value).into())),
            Self::UInt(value) => literal(LiteralValue::UInt((*value).into())),
            Self::Double(value) => literal(LiteralValue::Double((*value).into())),
            Self::Text(value) => literal(LiteralValue::String(value.clone().into())),
            Self::Name(name) => Expr::Ident(name.clone()),
            Self::Member { of, name, exists } => Expr::Select(SelectExpr {
                operand: Box::new(of.parsed()),
                field: name.clone(),
                test: *exists,
            }),
            Self::Call { function, on, with } => Expr::Call(CallExpr {
                func_name: function.clone(),
                target: on.as_ref().map(|on| Box::new(on.parsed())),
                args: all(with),
            }),
            Self::List(items) => Expr::List(ListExpr::new(all(items))),
            Self::Map(entries) => Expr::Map(MapExpr {
                entries: entries
                    .iter()
                    .map(|(key, value)| IdedEntryExpr {
                        id: 0,
                        expr: EntryExpr::MapEntry(MapEntryExpr {
                            key: key.parsed(),
                            value: value.parsed(),
                            optional: false,
                        }),
                    })
                    .collect(),
            }),
            Self::Fold(fold) => Expr::Comprehension(Box::new(ComprehensionExpr {
                iter_range: fold.over.parsed(),
                iter_var: fold.item.clone(),
                iter_var2: fold.second.clone(),
                accu_var: fold.result.clone(),
                accu_init: fold.start.parsed(),
                loop_cond: fold.continues.parsed(),
                loop_step: fold.step.parsed(),
                result: fold.end.parsed(),
            })),
        };

        // An id leads to a place in the text of the expression, which the component does not have.
        IdedExpr { id: 0, expr }
    }

    /// Whether this expression or a part of it is one of those.
    pub fn any(&self, is_one: &impl Fn(&Self) -> bool) -> bool {
        let mut parts: Vec<&Self> = Vec::new();
        match self {
            Self::Member { of, .. } => parts.push(of),
            Self::Call { on, with, .. } => {
                parts.extend(on.iter().map(AsRef::as_ref));
                parts.extend(with);
            }
            Self::List(items) => parts.extend(items),
            Self::Map(entries) => {
                parts.extend(entries.iter().flat_map(|(key, value)| [key, value]))
            }
            Self::Fold(fold) => parts.extend([
                &fold.over,
                &fold.start,
                &fold.continues,
                &fold.step,
                &fold.end,
            ]),
            _ => {}
        }

        is_one(self) || parts.into_iter().any(|part| part.any(is_one))
    }

    /// Collects the names that are used and not bound inside, and the functions.
    pub fn uses<'a>(
        &'a self,
        bound: &mut Vec<&'a str>,
        names: &mut Vec<&'a str>,
        functions: &mut Vec<&'a str>,
    ) {
        match self {
            Self::Name(name) if !bound.contains(&name.as_str()) => names.push(name),
            Self::Member { of, .. } => of.uses(bound, names, functions),
            Self::Call { function, on, with } => {
                functions.push(function);
                for part in on.iter().map(AsRef::as_ref).chain(with) {
                    part.uses(bound, names, functions);
                }
            }
            Self::List(items) => items
                .iter()
                .for_each(|item| item.uses(bound, names, functions)),
            Self::Map(entries) => {
                for part in entries.iter().flat_map(|(key, value)| [key, value]) {
                    part.uses(bound, names, functions);
                }
            }
            // The list and the first result are computed outside of the
            // walk, where the names of its items mean facts.
            Self::Fold(fold) => {
                fold.over.uses(bound, names, functions);
                fold.start.uses(bound, names, functions);
                let outside = bound.len();
                bound.extend([fold.item.as_str(), fold.result.as_str()]);
                bound.extend(fold.second.as_deref());
                for part in [&fold.continues, &fold.step, &fold.end] {
                    part.uses(bound, names, functions);
                }

                bound.truncate(outside);
            }
            _ => {}
        }
    }
}
