//! Rewrites a component so that one of its functions takes longer: a loop runs in front of it.

use wasmparser::{ExternalKind, Parser, Payload};

/// Returns the component with a loop in front of an exported function, such as
/// `holdfast:lifecycle/lifecycle@1.0.0#envelope`. Each round costs seven units of fuel.
pub fn with_work(component: &[u8], function: &str, rounds: u32) -> Vec<u8> {
    let mut all = component[..8].to_vec();
    let mut found = false;
    for (id, payload) in sections(component) {
        // Section 1 is a core module.
        let changed = match id {
            1 => in_module(payload, function, rounds),
            _ => None,
        };
        found |= changed.is_some();
        push_section(&mut all, id, changed.as_deref().unwrap_or(payload));
    }

    assert!(found, "no module exports {function}");
    all
}

fn in_module(module: &[u8], function: &str, rounds: u32) -> Option<Vec<u8>> {
    let (mut types, mut of_functions, mut imported, mut exported) = (vec![], vec![], 0, None);
    for payload in Parser::new(0).parse_all(module) {
        match payload.unwrap() {
            Payload::TypeSection(section) => {
                let each = section.into_iter_err_on_gc_types();
                types = each.map(|one| one.unwrap().params().len()).collect();
            }
            Payload::ImportSection(section) => {
                let imports = section.into_imports().map(Result::unwrap);
                imported = imports
                    .filter(|import| matches!(import.ty, wasmparser::TypeRef::Func(_)))
                    .count();
            }
            Payload::FunctionSection(section) => {
                of_functions = section.into_iter().map(Result::unwrap).collect();
            }
            Payload::ExportSection(section) => {
                let mut exports = section.into_iter().map(Result::unwrap);
                exported = exports
                    .find(|one| one.kind == ExternalKind::Func && one.name == function)
                    .map(|one| one.index as usize);
            }
            _ => {}
        }
    }

    let wanted = exported?.checked_sub(imported)?;
    let parameters = types[of_functions[wanted] as usize];
    let mut all = module[..8].to_vec();
    for (id, payload) in sections(module) {
        // Section 10 is the code.
        match id {
            10 => push_section(&mut all, id, &in_code(payload, wanted, parameters, rounds)),
            _ => push_section(&mut all, id, payload),
        }
    }

    Some(all)
}

fn in_code(code: &[u8], wanted: usize, parameters: usize, rounds: u32) -> Vec<u8> {
    let mut at = 0;
    let count = number(code, &mut at);
    let mut all = leb(count);
    for index in 0..count as usize {
        let size = number(code, &mut at) as usize;
        let body = &code[at..at + size];
        at += size;
        let changed = if index == wanted {
            in_body(body, parameters, rounds)
        } else {
            body.to_vec()
        };
        all.extend(leb(changed.len() as u64));

        all.extend(changed);
    }

    all
}

/// Adds a local variable to a function, and a loop that counts it down before the body.
fn in_body(body: &[u8], parameters: usize, rounds: u32) -> Vec<u8> {
    let mut at = 0;
    let groups = number(body, &mut at);
    let (begin, mut locals) = (at, 0);
    for _ in 0..groups {
        locals += number(body, &mut at);
        at += 1;
    }

    let counter = leb(parameters as u64 + locals);
    let mut all = leb(groups + 1);
    all.extend(&body[begin..at]);
    all.extend([0x01, 0x7f]);
    all.push(0x41);
    all.extend(signed(rounds));
    all.push(0x21);

    all.extend(&counter);
    all.extend([0x03, 0x40, 0x20]);
    all.extend(&counter);
    all.extend([0x41, 0x01, 0x6b, 0x22]);
    all.extend(&counter);
    all.extend([0x0d, 0x00, 0x0b]);
    all.extend(&body[at..]);

    all
}

/// Splits a module or component into its sections, each with id and content.
fn sections(bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let (mut at, mut all) = (8, Vec::new());
    while at < bytes.len() {
        let id = bytes[at];
        at += 1;
        let size = number(bytes, &mut at) as usize;
        all.push((id, &bytes[at..at + size]));
        at += size;
    }

    all
}

fn push_section(to: &mut Vec<u8>, id: u8, payload: &[u8]) {
    to.push(id);
    to.extend(leb(payload.len() as u64));
    to.extend(payload);
}

fn number(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;

        if byte & 0x80 == 0 {
            return value;
        }
    }
}

fn leb(mut value: u64) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            all.push(byte);
            return all;
        }

        all.push(byte | 0x80);
    }
}

/// Encodes a non-negative number as signed LEB128, where bit 6 of the last byte is the sign.
fn signed(value: u32) -> Vec<u8> {
    let mut all = leb(u64::from(value));
    if let Some(last) = all.last_mut()
        && *last & 0x40 != 0
    {
        *last |= 0x80;
        all.push(0);
    }
    all
}
