use crate::support::{assert_clean, contract, extracted, facts};

#[test]
fn each_anchor_occurs_once_in_the_contract_fixture() {
    let contract = contract();
    assert_clean(&contract);
    assert!(facts(&contract, &[]).contains("Pages:           4"));

    let text: String = (1..=4)
        .map(|page| extracted(&contract, page).to_lowercase())
        .collect();

    // Anchors match without regard to case, and inside longer words.
    for anchor in [
        "buyer signature:",
        "buyer printed name:",
        "co-buyer's signature:",
        "seller signature:",
        "date:",
    ] {
        assert_eq!(text.matches(anchor).count(), 1, "{anchor}");
    }
}
