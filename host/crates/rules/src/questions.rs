//! Generated questions for rules: variations of known facts in every field.
//!
//! A base is a known call, for example of a vector. An edit changes one field of it to another
//! value: another case, no value, a value that the field has in another base, a value beside a
//! boundary. Questions are the bases with one edit, with each pair of edits, and with many at once.
//! If the parameters of a function are enumerations only, all their combinations are questions.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wasmtime::component::Type;
use wasmtime::component::types::ComponentFunc;

/// Combinations of a function that can be asked all of them.
const MAX_COMBINATIONS: usize = 50_000;
/// Known calls that questions begin with.
const MAX_BASES: usize = 300;
/// Edits of one base.
const MAX_EDITS: usize = 1_000;
/// Values that a field gets from other bases.
const MAX_VALUES: usize = 12;
/// Items of a list that are varied.
const MAX_ITEMS: usize = 8;
/// Items of a list of which varied copies are made.
const MAX_COPIED: usize = 64;
/// Edits of a question with many.
const MAX_AT_ONCE: usize = 12;
/// Questions in a row that are known already, after which there are no more.
const MAX_REPEATED: usize = 100;

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
    /// Null removes an option. Shared by the bases that get the same value.
    pub to: Arc<Value>,
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
    /// Single changes that exist. More than `single` means that the number of questions did not suffice.
    pub all_single: usize,
    /// Bases with two fields changed.
    pub pairs: usize,
    /// Pairs of changes in different fields that exist.
    pub all_pairs: usize,
    /// Bases with many fields changed, at random.
    pub random: usize,
    /// Combinations of parameters that are enumerations only, without attributes.
    pub combinations: usize,
    /// Whether these are all combinations.
    pub exhaustive: bool,
}

impl QuestionCounts {
    /// Returns the number of all questions.
    pub fn all(&self) -> u64 {
        let all = self.bases + self.single + self.pairs + self.random + self.combinations;
        all as u64
    }
}

/// Questions for one function.
pub struct QuestionSet {
    pub bases: Vec<BaseQuestion>,
    pub questions: Vec<GeneratedQuestion>,
    pub counts: QuestionCounts,
}

/// Generates up to `most` variations of the bases, besides the bases themselves and all combinations. Equal
/// arguments give equal questions.
pub fn generate(
    signature: &ComponentFunc,
    mut bases: Vec<BaseQuestion>,
    most: usize,
    seed: u64,
) -> QuestionSet {
    // Each base multiplies the questions, so the limit comes before anything is generated.
    bases.truncate(MAX_BASES);
    // Values of other bases are plausible, so they reach branches that invented values miss.
    let mut words = FactWords::default();
    for base in &bases {
        for (name, ty) in signature.params() {
            let value = base.with.get(name).unwrap_or(&Value::Null);
            words.learn(&ty, value, &mut vec![name.to_owned()]);
        }
    }

    let mut random = fastrand::Rng::with_seed(seed);
    let edits: Vec<Vec<FactEdit>> = bases
        .iter()
        .map(|base| {
            let mut edits = edits(signature, base, &words);
            // In another order for each base, so that few questions are about many fields.
            random.shuffle(&mut edits);
            edits.truncate(MAX_EDITS);
            edits
        })
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
    // Half of the questions have one edit, because such an example explains itself.
    set.add_singles(&edits, most / 2);

    set.add_pairs(&edits, most / 4, &mut random);
    let varied = set.counts.single + set.counts.pairs;
    set.add_random(&edits, most.saturating_sub(varied), &mut random);

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
    /// Adds single edits, those of all bases in turn.
    fn add_singles(&mut self, edits: &[Vec<FactEdit>], most: usize) {
        self.counts.all_single = edits.iter().map(Vec::len).sum();
        let longest = edits.iter().map(Vec::len).max().unwrap_or_default();
        // All bases take turns, so the limit cuts the last edits of each and not the last bases.
        let singles = (0..longest).flat_map(|at| {
            let with = edits.iter().enumerate();
            with.filter_map(move |(base, edits)| Some((base, edits.get(at)?)))
        });
        let before = self.questions.len();

        let singles = singles.take(most).map(|(base, edit)| GeneratedQuestion {
            base,
            edits: vec![edit.clone()],
        });
        self.questions.extend(singles);

        self.counts.single = self.questions.len() - before;
    }

    /// Adds pairs of edits in different fields: all, or by chance as many as fit, of all bases in turn.
    fn add_pairs(&mut self, edits: &[Vec<FactEdit>], most: usize, random: &mut fastrand::Rng) {
        self.counts.all_pairs = edits.iter().map(|edits| pairs_of(edits)).sum();
        let before = self.questions.len();
        // Chance would repeat some pairs and miss others, so it is used only when not all of them fit.
        if self.counts.all_pairs <= most {
            for (base, edits) in edits.iter().enumerate() {
                for one in 0..edits.len() {
                    for other in one + 1..edits.len() {
                        self.add_chosen(base, edits, &[one, other]);
                    }
                }
            }
        } else {
            let number = |_: &mut fastrand::Rng| 2;
            self.add_by_chance(edits, most, number, random);
        }

        self.counts.pairs = self.questions.len() - before;
    }

    fn add_random(&mut self, edits: &[Vec<FactEdit>], most: usize, random: &mut fastrand::Rng) {
        let before = self.questions.len();
        let number = |random: &mut fastrand::Rng| random.usize(3..=MAX_AT_ONCE);
        self.add_by_chance(edits, most, number, random);
        self.counts.random = self.questions.len() - before;
    }

    /// Adds questions with a number of edits by chance, of all bases in turn.
    fn add_by_chance(
        &mut self,
        edits: &[Vec<FactEdit>],
        most: usize,
        number: impl Fn(&mut fastrand::Rng) -> usize,
        random: &mut fastrand::Rng,
    ) {
        let usable = (0..edits.len()).filter(|base| !edits[*base].is_empty());
        let (before, mut known, mut repeated) = (self.questions.len(), HashSet::new(), 0);
        for base in usable.collect::<Vec<_>>().into_iter().cycle() {
            // When few new combinations are left, chance only finds known ones. This ends the search.
            if self.questions.len() - before >= most || repeated >= MAX_REPEATED {
                return;
            }

            let number = number(random);
            let chosen = (0..number).map(|_| random.usize(..edits[base].len()));
            // The order of edits makes no other question.
            let mut chosen: Vec<usize> = chosen.collect();
            chosen.sort_unstable();
            chosen.dedup();

            let is_new = chosen.len() == number && known.insert((base, chosen.clone()));
            if is_new && self.add_chosen(base, &edits[base], &chosen) {
                repeated = 0
            } else {
                repeated += 1
            }
        }
    }

    /// Adds a question, unless two of its edits are about the same field.
    fn add_chosen(&mut self, base: usize, edits: &[FactEdit], chosen: &[usize]) -> bool {
        let path = |at: usize| &edits[chosen[at]].path;
        // A second edit of a field would replace the first, and the question would seem larger than it is.
        let mut pairs = (0..chosen.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        if pairs.any(|(one, other)| overlap(path(one), path(other))) {
            return false;
        }

        let edits = chosen.iter().map(|one| edits[*one].clone());
        self.questions.push(GeneratedQuestion {
            base,
            edits: edits.collect(),
        });

        true
    }

    /// Returns the parameters of a question.
    pub fn parameters(&self, question: &GeneratedQuestion) -> Map<String, Value> {
        let mut with = Value::Object(self.bases[question.base].with.clone());
        for edit in &question.edits {
            if let Some(value) = at(&mut with, &edit.path) {
                *value = Value::clone(&edit.to);
            }
        }

        match with {
            Value::Object(with) => with,
            _ => Map::new(),
        }
    }

    /// Returns a question that still differs, and of which no edit can be taken back.
    pub fn shrunk(
        &self,
        question: &GeneratedQuestion,
        differs: impl Fn(&GeneratedQuestion) -> bool,
    ) -> GeneratedQuestion {
        let mut smallest = question.clone();
        let without = |question: &GeneratedQuestion, position: usize| {
            let mut smaller = question.clone();
            smaller.edits.remove(position);
            smaller
        };

        // After each removal anew: an edit that was needed may not be any more.
        while let Some(smaller) = (0..smallest.edits.len())
            .map(|position| without(&smallest, position))
            .find(&differs)
        {
            smallest = smaller;
        }

        smallest
    }
}

/// Returns the number of pairs of edits in different fields.
fn pairs_of(edits: &[FactEdit]) -> usize {
    let mut of_field: BTreeMap<&[String], usize> = BTreeMap::new();
    for edit in edits {
        *of_field.entry(&edit.path).or_default() += 1;
    }
    // Pairs in one field are not counted, because they never become questions.
    let pairs = |number: usize| number * number.saturating_sub(1) / 2;
    let same: usize = of_field.values().map(|number| pairs(*number)).sum();
    pairs(edits.len()) - same
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
    by_field: BTreeMap<String, Vec<Arc<Value>>>,
    addresses: BTreeSet<String>,
}

impl FactWords {
    fn learn(&mut self, ty: &Type, value: &Value, path: &mut Vec<String>) {
        // Checks compare addresses of persons, so each address is also tried in the fields of the others.
        if let Value::String(text) = value
            && text.contains('@')
        {
            self.addresses.insert(text.clone());
        }

        let known = self.by_field.entry(field(path)).or_default();
        let is_known = |value: &Value| known.iter().any(|known| **known == *value);
        if known.len() < MAX_VALUES && !value.is_null() && !is_known(value) {
            known.push(Arc::new(value.clone()));
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

    fn of_field(&self, path: &[String]) -> impl Iterator<Item = &Arc<Value>> {
        self.by_field.get(&field(path)).into_iter().flatten()
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
            // Items of a list are alike, so the first ones are enough.
            (0..items.min(MAX_ITEMS))
                .map(|at| (at.to_string(), list.ty()))
                .collect()
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
    let others = others(ty, value, words).into_iter().map(Arc::new);
    // Records are edited member by member, and all cases of the others are tried anyway.
    let takes_known = !matches!(
        ty,
        Type::Record(_) | Type::Tuple(_) | Type::Enum(_) | Type::Bool
    );
    let known = words.of_field(path).filter(|_| takes_known).cloned();

    let first = edits.len();
    for to in others.chain(known) {
        if *to != *value && !edits[first..].iter().any(|edit| edit.to == to) {
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
        Type::Option(option) => {
            if value.is_null() {
                plain(&option.ty()).into_iter().collect()
            } else {
                vec![Value::Null]
            }
        }
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
                // Rules compare with thresholds, so mistakes lie beside a known value and at zero.
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
    // Each of these finds another mistake: no trimming, letter case, or a comparison of prefixes.
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
        near.extend(words.addresses.iter().take(MAX_VALUES).cloned());
    }

    near.into_iter().map(Value::String).collect()
}

/// Returns lists near a list: empty, without each item, with an item twice, the other way round. Of enumerations
/// also each single case.
fn lists(item: &Type, value: &Value) -> Vec<Value> {
    let items = value.as_array().cloned().unwrap_or_default();
    let mut near = vec![json!([])];

    // Copies of long lists would fill the memory.
    let varied = if items.len() > MAX_COPIED {
        1
    } else {
        items.len().min(MAX_ITEMS)
    };
    for at in 0..varied {
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
        // Checked before the product is built, which could fill the memory.
        if all.len() * values.len() > MAX_COMBINATIONS {
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
                if all.len() * values.len() > MAX_COMBINATIONS {
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
