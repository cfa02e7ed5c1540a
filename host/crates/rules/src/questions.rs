//! Generated questions for rules: variations of known facts in every field.
//!
//! A base is a known call, for example of a vector. An edit changes one field of it to another
//! value: another case, no value, a value that the field has in another base, a value beside a
//! boundary. Questions are the bases with one edit, with each pair of edits, and with many at once.
//! Functions whose parameters are enumerations only are asked everything.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value, json};
use wasmtime::component::Type;
use wasmtime::component::types::ComponentFunc;

/// Most combinations of a function that is asked everything.
const EVERYTHING: usize = 50_000;
/// Most values that a field gets from other bases.
const SEEN: usize = 12;
/// Most edits of a question with many.
const MANY: usize = 12;

/// Random questions in a row that are known already, after which there are no more.
const REPEATED: usize = 100;

/// Known call.
#[derive(Clone, Debug)]
pub struct BaseQuestion {
    pub name: String,
    /// Parameters by name.
    pub with: Map<String, Value>,
}

/// Change of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FactEdit {
    /// Names and positions, from the parameter on.
    pub path: Vec<String>,
    /// Null removes an option.
    pub to: Value,
}

/// Question about a base with edits.
#[derive(Clone, Debug)]
pub struct GeneratedQuestion {
    /// Position of the base.
    pub base: usize,
    pub edits: Vec<FactEdit>,
}

impl GeneratedQuestion {
    /// Returns a measure of how much is changed: a whole record or list counts more than one value.
    pub fn size(&self) -> usize {
        let edits = self.edits.iter();
        edits
            .map(|edit| {
                if edit.to.is_object() || edit.to.is_array() {
                    3
                } else {
                    2
                }
            })
            .sum()
    }
}

/// How many questions of each kind were generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct QuestionCounts {
    /// Known calls, unchanged.
    pub bases: usize,
    /// Bases with one field changed.
    pub single: usize,
    /// Bases with two fields changed.
    pub pairs: usize,
    /// Pairs that exist. More than `pairs` means that the number of questions did not suffice.
    pub all_pairs: usize,
    /// Bases with many fields changed, at random.
    pub random: usize,
    /// Combinations of parameters that are enumerations only.
    pub combinations: usize,
    /// Whether these are all combinations.
    pub exhaustive: bool,
}

/// Questions for one function.
pub struct QuestionSet {
    pub bases: Vec<BaseQuestion>,
    pub questions: Vec<GeneratedQuestion>,
    pub counts: QuestionCounts,
}

/// Generates up to `most` questions. Equal arguments give equal questions.
pub fn generate(
    signature: &ComponentFunc,
    bases: Vec<BaseQuestion>,
    most: usize,
    seed: u64,
) -> QuestionSet {
    let mut words = FactWords::default();
    for base in &bases {
        for (name, ty) in signature.params() {
            words.learn(&ty, &base.with[name], &mut vec![name.to_owned()]);
        }
    }
    let edits: Vec<Vec<FactEdit>> = bases
        .iter()
        .map(|base| edits(signature, base, &words))
        .collect();
    let mut set = QuestionSet {
        questions: (0..bases.len()).map(unchanged).collect(),
        bases,
        counts: QuestionCounts::default(),
    };
    set.counts.bases = set.questions.len();
    let combinations = everything(signature);
    set.counts.exhaustive = combinations.is_some();
    // A function that is asked everything needs fewer variations: those of the attributes.
    let most = if set.counts.exhaustive {
        most / 4
    } else {
        most
    };
    set.add_singles(&edits, most / 2);
    set.add_pairs(&edits, most / 4 * 3);
    set.add_random(&edits, most, seed);
    for base in combinations.into_iter().flatten() {
        set.questions.push(unchanged(set.bases.len()));
        set.bases.push(base);
    }
    set.counts.combinations = set.bases.len() - set.counts.bases;
    set
}

fn unchanged(base: usize) -> GeneratedQuestion {
    GeneratedQuestion {
        base,
        edits: Vec::new(),
    }
}

impl QuestionSet {
    fn add_singles(&mut self, edits: &[Vec<FactEdit>], most: usize) {
        let singles = edits.iter().enumerate().flat_map(|(base, edits)| {
            let edits = edits.iter().cloned();
            edits.map(move |edit| GeneratedQuestion {
                base,
                edits: vec![edit],
            })
        });
        let room = most.saturating_sub(self.questions.len());
        let before = self.questions.len();
        self.questions.extend(singles.take(room));
        self.counts.single = self.questions.len() - before;
    }

    /// Adds pairs of edits in different fields, those of all bases in turn.
    fn add_pairs(&mut self, edits: &[Vec<FactEdit>], most: usize) {
        let mut left: Vec<_> = edits
            .iter()
            .map(|edits| {
                let pairs = (0..edits.len())
                    .flat_map(|one| (one + 1..edits.len()).map(move |other| (one, other)));
                pairs.filter(|(one, other)| !overlap(&edits[*one].path, &edits[*other].path))
            })
            .collect();
        let before = self.questions.len();
        let room = most.saturating_sub(before);
        loop {
            let mut any = false;
            for (base, pairs) in left.iter_mut().enumerate() {
                let Some((one, other)) = pairs.next() else {
                    continue;
                };
                any = true;
                self.counts.all_pairs += 1;
                if self.questions.len() - before < room {
                    let pair = [&edits[base][one], &edits[base][other]];
                    self.questions.push(GeneratedQuestion {
                        base,
                        edits: pair.map(FactEdit::clone).to_vec(),
                    });
                }
            }
            if !any {
                break;
            }
        }
        self.counts.pairs = self.questions.len() - before;
    }

    fn add_random(&mut self, edits: &[Vec<FactEdit>], most: usize, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let usable: Vec<usize> = (0..edits.len())
            .filter(|base| !edits[*base].is_empty())
            .collect();
        if usable.is_empty() {
            return;
        }
        let before = self.questions.len();
        let (mut known, mut repeated) = (HashSet::new(), 0);
        while self.questions.len() < most && repeated < REPEATED {
            let base = usable[random.usize(..usable.len())];
            let mut chosen: Vec<usize> = Vec::new();
            for _ in 0..random.usize(3..=MANY) {
                let one = random.usize(..edits[base].len());
                let path = &edits[base][one].path;
                let mut others = chosen.iter().map(|other| &edits[base][*other].path);
                if !others.any(|other| overlap(other, path)) {
                    chosen.push(one);
                }
            }
            chosen.sort_unstable();
            if chosen.len() < 3 || !known.insert((base, chosen.clone())) {
                repeated += 1;
                continue;
            }
            repeated = 0;
            let edits = chosen.iter().map(|one| edits[base][*one].clone());
            self.questions.push(GeneratedQuestion {
                base,
                edits: edits.collect(),
            });
        }
        self.counts.random = self.questions.len() - before;
    }

    /// Returns the parameters of a question.
    pub fn parameters(&self, question: &GeneratedQuestion) -> Map<String, Value> {
        let mut with = Value::Object(self.bases[question.base].with.clone());
        for edit in &question.edits {
            if let Some(value) = at(&mut with, &edit.path) {
                *value = edit.to.clone();
            }
        }
        match with {
            Value::Object(with) => with,
            _ => Map::new(),
        }
    }

    /// Returns the smallest question that still differs: edits are taken back one by one, while
    /// `differs` holds.
    pub fn shrunk(
        &self,
        question: &GeneratedQuestion,
        differs: impl Fn(&GeneratedQuestion) -> bool,
    ) -> GeneratedQuestion {
        let mut smallest = question.clone();
        let mut position = 0;
        while position < smallest.edits.len() {
            let mut smaller = smallest.clone();
            smaller.edits.remove(position);
            match differs(&smaller) {
                true => smallest = smaller,
                false => position += 1,
            }
        }
        smallest
    }
}

/// Whether one of two fields contains the other.
fn overlap(one: &[String], other: &[String]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns a field; an absent member of an object is created.
fn at<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    let Some((first, rest)) = path.split_first() else {
        return Some(value);
    };
    let next = match value {
        Value::Object(members) => members.entry(first.as_str()).or_insert(Value::Null),
        Value::Array(items) => items.get_mut(first.parse::<usize>().ok()?)?,
        _ => return None,
    };
    at(next, rest)
}

/// Values that fields have in the bases. Items of a list share one field.
#[derive(Default)]
struct FactWords {
    by_field: BTreeMap<String, Vec<Value>>,
    addresses: BTreeSet<String>,
}

impl FactWords {
    fn learn(&mut self, ty: &Type, value: &Value, path: &mut Vec<String>) {
        if let Value::String(text) = value
            && text.contains('@')
        {
            self.addresses.insert(text.clone());
        }
        let known = self.by_field.entry(field(path)).or_default();
        if !value.is_null() && !known.contains(value) {
            known.push(value.clone());
        }
        for (name, ty) in parts(ty, value) {
            let part = match value {
                Value::Array(items) => name.parse().ok().and_then(|at: usize| items.get(at)),
                value => value.get(&name),
            };
            // An option is its value.
            let (part, below) = (part.unwrap_or(&Value::Null), !name.is_empty());
            let part = if below { part } else { value };
            path.extend(below.then_some(name));
            self.learn(&ty, part, path);
            if below {
                path.pop();
            }
        }
    }

    fn seen(&self, path: &[String]) -> impl Iterator<Item = &Value> {
        let known = self.by_field.get(&field(path));
        known.into_iter().flatten().take(SEEN)
    }
}

/// Returns a path without positions in lists.
fn field(path: &[String]) -> String {
    let names = path.iter();
    let names = names.map(|name| match name.parse::<usize>() {
        Ok(_) => "*",
        Err(_) => name.as_str(),
    });
    names.collect::<Vec<_>>().join("/")
}

/// Returns names and types of a value's parts. The part of an option has no name.
fn parts(ty: &Type, value: &Value) -> Vec<(String, Type)> {
    match ty {
        Type::Record(record) => {
            let fields = record.fields();
            fields
                .map(|field| (field.name.to_owned(), field.ty))
                .collect()
        }
        Type::Tuple(tuple) => {
            let types = tuple.types().enumerate();
            types.map(|(at, ty)| (at.to_string(), ty)).collect()
        }
        Type::Option(option) if !value.is_null() => vec![(String::new(), option.ty())],
        Type::List(list) if list.ty() != Type::U8 => {
            let items = value.as_array().map_or(0, Vec::len);
            (0..items).map(|at| (at.to_string(), list.ty())).collect()
        }
        Type::Variant(variant) => {
            let case = value.as_object().and_then(|case| case.keys().next());
            let cases = variant.cases();
            let payload = cases.filter(|known| case.is_some_and(|case| case == known.name));
            payload
                .filter_map(|case| Some((case.name.to_owned(), case.ty?)))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the edits of a base.
fn edits(signature: &ComponentFunc, base: &BaseQuestion, words: &FactWords) -> Vec<FactEdit> {
    let mut edits = Vec::new();
    for (name, ty) in signature.params() {
        let value = base.with.get(name).unwrap_or(&Value::Null);
        edits_of(&ty, value, &mut vec![name.to_owned()], words, &mut edits);
    }
    edits
}

fn edits_of(
    ty: &Type,
    value: &Value,
    path: &mut Vec<String>,
    words: &FactWords,
    edits: &mut Vec<FactEdit>,
) {
    let mut others: Vec<Value> = others(ty, value, words);
    let takes_seen = !matches!(
        ty,
        Type::Record(_) | Type::Tuple(_) | Type::Enum(_) | Type::Bool
    );
    if takes_seen {
        others.extend(words.seen(path).cloned());
    }
    let mut known: Vec<Value> = vec![value.clone()];
    for to in others {
        if !known.contains(&to) {
            known.push(to.clone());
            edits.push(FactEdit {
                path: path.clone(),
                to,
            });
        }
    }
    for (name, ty) in parts(ty, value) {
        if name.is_empty() {
            edits_of(&ty, value, path, words, edits);
            continue;
        }
        let part = match value {
            Value::Array(items) => name.parse().ok().and_then(|at: usize| items.get(at)),
            value => value.get(&name),
        };
        path.push(name);
        edits_of(&ty, part.unwrap_or(&Value::Null), path, words, edits);
        path.pop();
    }
}

/// Returns other values of a type: other cases, neighbours and boundaries.
fn others(ty: &Type, value: &Value, words: &FactWords) -> Vec<Value> {
    match ty {
        Type::Bool => vec![json!(true), json!(false)],
        Type::Enum(names) => names.names().map(|name| json!(name)).collect(),
        Type::Option(option) => match value.is_null() {
            true => plain(&option.ty()).into_iter().collect(),
            false => vec![Value::Null],
        },
        Type::String => texts(value.as_str().unwrap_or_default(), words),
        Type::List(list) if list.ty() != Type::U8 => lists(&list.ty(), value),
        Type::Variant(variant) => {
            let cases = variant.cases();
            let cases = cases.filter_map(|case| match case.ty {
                None => Some(json!(case.name)),
                Some(ty) => Some(json!({ case.name: plain(&ty)? })),
            });
            cases.collect()
        }
        _ => match (value.as_u64(), value.as_f64()) {
            (Some(number), _) => {
                let near = [0, 1, number + 1, number.saturating_sub(1), number * 2];
                near.map(|near| json!(near)).to_vec()
            }
            (None, Some(number)) => {
                let near = [0.0, -1.0, number + 1.0, number - 1.0, number / 2.0];
                near.map(|near| json!(near)).to_vec()
            }
            _ => Vec::new(),
        },
    }
}

/// Returns texts near a text: empty, blank, longer, shorter, in another case, with another letter, and for an
/// address the others.
fn texts(text: &str, words: &FactWords) -> Vec<Value> {
    let mut shorter = text.to_owned();
    shorter.pop();
    let mut near = vec![
        String::new(),
        " ".to_owned(),
        format!("{text} "),
        format!(" {text}"),
        format!("{text}0"),
        format!("{text}é"),
        format!("{shorter}!"),
        text.to_uppercase(),
        text.to_lowercase(),
        "other".to_owned(),
    ];
    near.push(shorter);
    if let Some((prefix, rest)) = text.split_once(':') {
        near.push(format!("other:{rest}"));
        near.push(format!("{prefix}:"));
    }
    if text.contains('@') {
        near.extend(words.addresses.iter().take(SEEN).cloned());
    }
    near.into_iter().map(Value::String).collect()
}

/// Returns lists near a list: empty, without each item, with an item twice, the other way round. Of enumerations
/// also each single case.
fn lists(item: &Type, value: &Value) -> Vec<Value> {
    let items = value.as_array().cloned().unwrap_or_default();
    let mut near = vec![json!([])];
    for at in 0..items.len() {
        let mut fewer = items.clone();
        fewer.remove(at);
        near.push(Value::Array(fewer));
        let mut more = items.clone();
        more.push(items[at].clone());
        near.push(Value::Array(more));
    }
    let mut reversed = items.clone();
    reversed.reverse();
    near.push(Value::Array(reversed));
    if let Type::Enum(names) = item {
        for name in names.names() {
            near.push(json!([name]));
            if !items.contains(&json!(name)) {
                let mut more = items.clone();
                more.push(json!(name));
                near.push(Value::Array(more));
            }
        }
    } else if items.is_empty() {
        near.extend(plain(item).map(|item| json!([item])));
    }
    near
}

/// Returns a plain value of a type; `None` for types without one.
fn plain(ty: &Type) -> Option<Value> {
    Some(match ty {
        Type::Bool => json!(false),
        Type::String => json!("text"),
        Type::Enum(names) => json!(names.names().next()?),
        Type::Option(_) => Value::Null,
        Type::List(_) => json!([]),
        Type::Record(record) => {
            let mut members = Map::new();
            for field in record.fields() {
                members.insert(field.name.to_owned(), plain(&field.ty)?);
            }
            Value::Object(members)
        }
        Type::Tuple(tuple) => {
            let items = tuple.types();
            Value::Array(items.map(|ty| plain(&ty)).collect::<Option<_>>()?)
        }
        Type::Variant(variant) => {
            let case = variant.cases().next()?;
            match case.ty {
                None => json!(case.name),
                Some(ty) => json!({ case.name: plain(&ty)? }),
            }
        }
        Type::Float64 => json!(1.0),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::S64 => json!(1),
        _ => return None,
    })
}

/// Returns every combination of parameters that are enumerations only; lists are empty. `None` if there are
/// others, or too many combinations.
fn everything(signature: &ComponentFunc) -> Option<Vec<BaseQuestion>> {
    let mut all = vec![Map::new()];
    for (name, ty) in signature.params() {
        let values = values(&ty)?;
        if all.len() * values.len() > EVERYTHING {
            return None;
        }
        let with = |known: &Map<String, Value>, value: &Value| {
            let mut known = known.clone();
            known.insert(name.to_owned(), value.clone());
            known
        };
        all = all
            .iter()
            .flat_map(|known| values.iter().map(move |value| with(known, value)))
            .collect();
    }
    let named = |with| BaseQuestion {
        name: "every combination".into(),
        with,
    };
    Some(all.into_iter().map(named).collect())
}

/// Returns all values of a type.
fn values(ty: &Type) -> Option<Vec<Value>> {
    Some(match ty {
        Type::Bool => vec![json!(false), json!(true)],
        Type::Enum(names) => names.names().map(|name| json!(name)).collect(),
        Type::Option(option) => {
            let mut all = values(&option.ty())?;
            all.insert(0, Value::Null);
            all
        }
        Type::List(list) => match list.ty() {
            // Attributes are for later facts: rules of today get none.
            Type::Tuple(_) => vec![json!([])],
            _ => return None,
        },
        Type::Record(record) => {
            let mut all = vec![Map::new()];
            for field in record.fields() {
                let values = values(&field.ty)?;
                if all.len() * values.len() > EVERYTHING {
                    return None;
                }
                let with = |known: &Map<String, Value>, value: &Value| {
                    let mut known = known.clone();
                    known.insert(field.name.to_owned(), value.clone());
                    known
                };
                all = all
                    .iter()
                    .flat_map(|known| values.iter().map(move |value| with(known, value)))
                    .collect();
            }
            all.into_iter().map(Value::Object).collect()
        }
        _ => return None,
    })
}
