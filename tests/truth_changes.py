"""Tests tests/truth.py: changes one fact in one output of a record, and expects a finding for each change.

The argument is a folder as tests/truth.py reads it, of a record that was signed by some, completed without
a signature by one, and released; or of a record that another party controls. Prints {"before": findings on the unchanged folder, "changes": n,
"unnoticed": [change, ...]}.
"""

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

import truth

OTHER_DIGEST = "ab" * 32


def json_change(name, change):
    """Returns a change of one JSON file. `change` returns whether it found what it changes."""

    def apply(folder):
        path = folder / name
        value = json.loads(path.read_text())
        assert change(value) is not False, name
        path.write_text(json.dumps(value))

    return apply


def text_change(name, old, new):
    def apply(folder):
        path = folder / name
        text = path.read_text()
        changed = re.sub(old, new, text)
        assert changed != text, f"{name} has no {old}"
        path.write_text(changed)

    return apply


def printed_change(name, old, new):
    """Returns a change of the words of a PDF: `old` and `new` are texts of as many words."""

    def apply(folder):
        path = folder / name
        page = truth.words_of(path)
        pattern = r"</word>\s*".join(rf"(<word [^>]*>){re.escape(word)}" for word in old.split())
        match = re.search(pattern, page)
        assert match, f"{name} has no {old}"
        others = iter(new.split())
        changed = re.sub(r"(<word [^>]*>)[^<]+", lambda word: word[1] + next(others), match[0])
        path.with_suffix(".bbox").write_text(page[: match.start()] + changed + page[match.end():])

    return apply


def set_member(value, *path_and_new):
    *path, last, new = path_and_new
    for member in path:
        value = value[member]
    assert value[last] != new
    value[last] = new


def changes(folder):
    """Returns (what is changed, function that changes a copy of the folder)."""
    facts = truth.Facts(json.loads((folder / "ledger.json").read_text()))
    signed = [key for key in facts.people if facts.signature(key) == "executed"]
    [unsigned] = [key for key in facts.people if facts.signature(key) == "not_asked"]
    first, second = (facts.people[key] for key in signed)
    times = [facts.completed[key]["details"]["at"] for key in signed]
    clock = [time[11:19] for time in times]
    stored = facts.stored["details"]
    rows = json.loads((folder / "certificate.json").read_text())["signer_timeline"]
    at = {row["signer_id"]: index for index, row in enumerate(rows)}
    unsigned_name = facts.people[unsigned]["name"]

    def swap_times(value):
        one, two = (value["signer_timeline"][at[key]] for key in signed)
        for member in ("signed_at", "completed_at"):
            one[member], two[member] = two[member], one[member]

    def swap_consents(value):
        one, two = (next(r for r in value["consumer_consent"] if r["signer_id"] == key) for key in signed)
        one["consented_at"], two["consented_at"] = two["consented_at"], one["consented_at"]

    def sign(value):
        set_member(value, "signer_timeline", at[unsigned], "signed_at", rows[at[unsigned]]["completed_at"])

    def satisfy(value):
        value["ucc_9105_compliance"]["checks"][3].update(satisfied=True)

    certificate = lambda change: json_change("certificate.json", change)
    record, done = "custody-record.pdf", "completion-certificate.pdf"
    yield "times of two people", certificate(swap_times)
    yield "consents of two people", certificate(swap_consents)
    yield "a signature of one who gave none", certificate(sign)
    yield "a signature less", certificate(lambda v: set_member(v, "signer_timeline", at[signed[0]], "signed_at", None))
    yield "a name", certificate(lambda v: set_member(v, "signer_timeline", 0, "name", "Zoe Ash"))
    yield "a person less", certificate(lambda v: v["signer_timeline"].pop())
    yield "a score", certificate(lambda v: set_member(v, "ucc_9105_compliance", "score", 100))
    yield "a check", certificate(satisfy)
    yield "a digest", certificate(lambda v: set_member(v, "document_integrity", "document_hash", OTHER_DIGEST))
    yield "a time that nobody recorded", certificate(lambda v: set_member(v, "issued_at", "2026-01-01T00:00:00.000Z"))
    yield "the score of the present", json_change("compliance.json", lambda v: set_member(v, "compliance", "score", 100))
    yield "the copy in the vault", json_change("compliance.json", lambda v: set_member(v, "compliance", "checks", 0, "satisfied", True))
    yield "in the vault", json_change("envelope.json", lambda v: set_member(v, "vaulted", True))
    yield "the status", json_change("envelope.json", lambda v: set_member(v, "status", "vaulted"))
    yield "the envelope's score", json_change("envelope.json", lambda v: set_member(v, "compliance_score", 100))
    yield "an address", json_change("signers.json", lambda v: set_member(v, "signers", 0, "email", "zoe@example.com"))
    yield "a person of an event", json_change(
        "events.json", lambda v: next(e for e in v if e["event_type"] == "signer.completed")["data"]["signer"].update(name="Zoe Ash")
    )
    yield "an event less", json_change("events.json", lambda v: v.remove(next(e for e in v if e["event_type"] == "vault.released")))
    yield "retrievals", json_change("verify-report.json", lambda v: set_member(v, "retrievals", "archive", 0))
    yield "exports", json_change("verify-report.json", lambda v: set_member(v, "retrievals", "bundle", 7))
    yield "the verifier's score", json_change("verify-report.json", lambda v: set_member(v, "rules_result", "score", 100))
    yield "the verifier's first line", text_change("verify-report.txt", r"result \d+ of", "result 100 of")
    yield "a file of the bundle", json_change("bundle.json", lambda v: set_member(v, "authoritative.pdf", OTHER_DIGEST))
    yield "a page's thanks", text_change(f"finished-{unsigned}.html", r"Your part of", "You have signed")
    yield "the state on the page", text_change("verify.html", r"was released to another custodian", "is in the vault")
    yield "a name on the page", text_change("verify.html", unsigned_name, "Zoe Ash")
    yield "a moment on the page", text_change("verify.html", r"\d\d:\d\d:\d\d", "23:59:58")
    yield "a mail's address", json_change(
        "mails.json", lambda v: v.__setitem__(0, re.sub(r"(?m)^To: .*$", "To: <zoe@example.com>", v[0]))
    )
    for name in (record, done):
        yield f"times of two people in {name}", printed_change(name, clock[0], clock[1])
        yield f"a digest in {name}", printed_change(name, stored["copy_hash"], OTHER_DIGEST)
        yield f"a name in {name}", printed_change(name, first["name"], "Zoe Ash")
        yield f"an address in {name}", printed_change(name, second["email"], "zoe@example.com")
    yield "form completed", printed_change(done, "Form completed", "At Signed")
    yield "no signature was asked", printed_change(record, "Completed the form", "At last Signed")
    yield "a count", printed_change(record, "7 of 8", "8 of 8")
    yield "a finding", printed_change(record, "Not satisfied.", "And Satisfied.")
    yield "the recipient", printed_change(record, "Final record", "First record")
    yield "two custodians", printed_change(record, "Secured party", "Custodian party")
    yield "the vault since", printed_change(done, "Put into the vault", "In the vault since")
    yield "not yet", printed_change(record, "Everybody has completed", "Not yet stored")
    yield "the seal", printed_change(record, stored["seal_certificate_hash"], OTHER_DIGEST)
    yield "the form of the copy", printed_change(record, "a file of its own,", "an update of the signed")
    yield "the source of times", printed_change(record, "no time stamping authority", "a time stamping authority")
    size = facts.head.splitlines()[1]
    yield "the head of the log", printed_change(record, f"{size} entries before,", f"{size}0 entries before,")
    yield "a second evaluation", printed_change(record, "Trusted time", "Second evaluation")
    yield "the custodian", printed_change(record, f"{stored['custodian']},", "zoe@example.com,")
    yield "the end of custody", printed_change(record, "until", "from")

    test = json.loads((folder / "ledger.json").read_text())
    test["org_id"] = "org_test_" + test["org_id"].removeprefix("org_")
    yield "the mark TEST", lambda copy: (copy / "ledger.json").write_text(json.dumps(test))


def changes_of_control(folder):
    """Returns the changes of a record that another party controls."""
    certificate = lambda change: json_change("certificate.json", change)
    view = lambda change: json_change("control.json", change)
    yield "a name in the chain", certificate(lambda v: set_member(v, "control_chain", 1, "name", "Zoe Bank"))
    yield "the originator in the chain", certificate(lambda v: set_member(v, "control_chain", 0, "name", "Zoe Bank"))
    yield "a time in the chain", certificate(lambda v: set_member(v, "control_chain", 1, "since", v["control_chain"][0]["since"]))
    yield "a step less", certificate(lambda v: v["control_chain"].pop())
    yield "the controller", json_change("verify-report.json", lambda v: set_member(v, "controlled_by", "Zoe Bank"))
    yield "no controller", json_change("verify-report.json", lambda v: set_member(v, "controlled_by", None))
    yield "the party's name", view(lambda v: set_member(v, "controller", "name", "Zoe Bank"))
    yield "the stage", view(lambda v: set_member(v, "stage", "originated"))
    yield "the pledge", view(lambda v: set_member(v, "pledgee", None))


def main(folder):
    unnoticed, count = [], 0
    before = truth.check(folder)
    is_controlled = (folder / "control.json").exists() and truth.Facts(json.loads((folder / "ledger.json").read_text())).chain
    for what, change in (changes_of_control if is_controlled else changes)(folder):
        count += 1
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place) / folder.name
            shutil.copytree(folder, copy)
            change(copy)
            known = [(one["output"], one["sentence"]) for one in before]
            new = [one for one in truth.check(copy) if (one["output"], one["sentence"]) not in known]
            if not new:
                unnoticed.append(what)
    print(json.dumps({"before": before, "changes": count, "unnoticed": unnoticed}, ensure_ascii=False))


main(Path(sys.argv[1]))
