//! scratch
use holdfast_documents::*;
#[test]
fn out() {
    let dir = std::path::PathBuf::from(std::env::var("SCRATCH").unwrap());
    let pdf = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/retail-installment-contract.pdf")).unwrap();
    let r = MarkRequest{kind:CopyKind::Authoritative, envelope_id:"env_01jt8s5gq2e6m9x4k7w3c5d8fa".into(), secured_party:Some("Crescent Auto Finance, LLC".into()), marked_at:"2026-05-04T15:04:05.000Z".into()};
    let a = mark(&pdf,&r).unwrap(); assert!(a.starts_with(&pdf));
    std::fs::write(dir.join("auth.pdf"), &a).unwrap();
    let b = mark(&pdf,&MarkRequest{kind:CopyKind::NonAuthoritative, ..r}).unwrap();
    std::fs::write(dir.join("copy.pdf"), &b).unwrap();
    let area=|page,x,y,w,h| Area{page,x,y,w,h};
    let f = fill(&pdf,&[
        FilledField{areas:vec![area(4,0.085,0.24,0.5,0.055)], value:FieldValue::Typed("Jordan A. Ellery".into())},
        FilledField{areas:vec![area(4,0.68,0.255,0.2,0.03)], value:FieldValue::Text("2026-05-04".into())},
        FilledField{areas:vec![area(4,0.085,0.31,0.5,0.03)], value:FieldValue::Text("Jordan Ängström Ёлкина 山田".into())},
        FilledField{areas:vec![area(4,0.083,0.57,0.0163,0.0126)], value:FieldValue::Checkbox(true)},
    ]).unwrap();
    std::fs::write(dir.join("filled.pdf"), &f).unwrap();
    let t=std::time::Instant::now();
    let i = page_image(&f,4,1000).unwrap(); eprintln!("{:?} {}x{}", t.elapsed(), i.width, i.height);
    std::fs::write(dir.join("p4.png"), &i.png).unwrap();
    let facts = CustodyFacts{ envelope_id:"env_01jt8s5gq2e6m9x4k7w3c5d8fa".into(), envelope_name:"Retail Installment Sale Contract RIC-2026-004187".into(), customer_id:"cus_01jt8s5gq2e6m9x4k7w3c5d8fb".into(), issuer:"Holdfast at vault.example.com".into(), recorded_at:"2026-05-04T15:04:05.000Z".into(), hash_algorithm:"SHA-256".into(), document_hash:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(), copy_hash:"60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752".into(), secured_party:Some("Crescent Auto Finance, LLC".into()), custodian:"vault@crescent.example".into(),
     parties: vec![Party{name:"Jordan A. Ellery".into(), email:"jordan.ellery@mail.example".into(), role:"Buyer".into(), signed_at:Some("2026-05-04T14:58:10Z".into())}, Party{name:"Morgan T. Ellery".into(), email:"morgan.t.ellery.with.a.long.name@subdomain.mail.example".into(), role:"Co-buyer".into(), signed_at:Some("2026-05-04T15:01:44Z".into())}],
     timeline: (0..14).map(|n| TimelineEntry{at:format!("2026-05-04T14:{:02}:10.000Z", 20+n), actor: if n%3==0 {"jordan.ellery@mail.example".into()} else {"system".into()}, action: ["envelope.created","envelope.sent","signer.viewed","signer.completed","vault.stored"][n%5].into(), detail:"Document hash 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 recorded, address 203.0.113.7".into()}).collect(),
     checks: [("Single authoritative copy","UCC 9-105(b)(1)"),("Secured party identified","UCC 9-105(b)(2)"),("Copy maintained by custodian","UCC 9-105(b)(3)"),("Changes need consent","UCC 9-105(b)(4)"),("Copies identifiable as copies","UCC 9-105(b)(5)"),("Revisions identifiable","UCC 9-105(b)(6)")].iter().enumerate().map(|(n,(r,c))| CheckResult{requirement:(*r).into(), reference:(*c).into(), satisfied: n!=9, detail:"Exactly one authoritative object exists and its hash equals the recorded one.".into()}).collect(),
     rules_component:"ucc-9-105 1.0.0 sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae".into(), certificate_json:"{\"score\":100}".into(), attributes: vec![("Envelope kind".into(),"esign".into()),("Identity verification".into(),"Passed for Jordan A. Ellery".into())]};
    std::fs::write(dir.join("custody.pdf"), custody_record(&facts).unwrap()).unwrap();
    std::fs::write(dir.join("merged.pdf"), merge(&[a,f]).unwrap()).unwrap();
}
