"""Looks for contradictions between a record's ledger and what was printed about the record.

Knows nothing of the product: the custody ledger is the only source of facts. The arguments are
folders, one for each record. A folder has

  ledger.json                     the custody ledger: {org_id, entries: [{at, action, details, hash}]}

and any of these outputs:

  certificate.json, compliance.json, envelope.json, signers.json, events.json (a list),
  control.json (a party's view of the record), tape.json (rows of a transfer, read after it),
  verify-report.json, verify-report.txt, bundle.json ({name of a file: its SHA-256}),
  custody-record.pdf, completion-certificate.pdf, verify.html,
  finished-<signer_id>.html (the page after the signer's part), mails.json (a list of texts).

Prints one JSON value: [{record, output, sentence, contradicts}, ...], empty if there is none.
`contradicts` names the ledger entry or the fact that the entries amount to.
"""

import base64
import email
import email.policy
import html
import json
import re
import subprocess
import sys
from pathlib import Path

ISO = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
PRINTED = re.compile(r"\b(\d{1,2}) ([A-Z][a-z]+) (\d{4}), (\d\d:\d\d:\d\d)")
DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
MONTHS = (
    "January February March April May June July August September October November December"
).split()
# Members that state when the output itself was made, or when a row of the database changed.
MADE = {"evaluated_at", "generated_at", "updated_at", "created_at", "occurred_at", "expires_at"}
# Files that a download entry can name.
RETRIEVALS = ("authoritative", "archive", "paper_original")
# Acts by which control comes to another party.
STEPS = ("control.accepted", "control.transfer.confirmed")
# Words of a custody record about the form of the parties' copy.
COPY_FORMS = {
    "new_file": "a file of its own",
    "update_of_signed": "an update of the signed document",
    "update_of_unwritable": "which could not be written anew",
}


def walk(value, path=()):
    """Yields (path, text or number) of each leaf."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from walk(member, (*path, name))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from walk(member, (*path, index))
    else:
        yield path, value


def second(iso):
    return iso[:19]


def printed_seconds(text):
    """Returns the moments in a printed text, as ISO seconds."""
    return [
        f"{year}-{MONTHS.index(month) + 1:02}-{int(day):02}T{time}"
        for day, month, year, time in PRINTED.findall(text)
        if month in MONTHS
    ]


def same_address(one, two):
    return one.lower() == two.lower()


class Facts:
    """What the entries of a ledger amount to."""

    def __init__(self, ledger):
        self.entries = ledger["entries"]
        self.text = json.dumps(ledger)
        self.times = set(ISO.findall(self.text))
        self.seconds = {second(time) for time in self.times}
        self.is_test = ledger.get("org_id", "").startswith("org_test_")
        self.digests = set(DIGEST.findall(self.text))
        for encoded in re.findall(r"[A-Za-z0-9+/]{43}=", self.text):
            self.digests.add(base64.b64decode(encoded).hex())

        created = self.of("envelope.created")[0]["details"]
        self.is_paper = created.get("envelope_kind") == "paper"
        self.people = {}
        self.names = set()
        self.addresses = set()
        self.person_times = {}
        self.completed = {}
        for entry in self.entries:
            self._read(entry)

        stored = self.of("vault.stored")
        self.stored = stored[-1] if stored else None
        released = self.of("vault.released")
        self.released = released[0] if released else None
        evaluated = self.of("compliance.evaluated") + self.of("compliance.certified")
        evaluated.sort(key=lambda entry: entry["sequence"])
        self.scores = [entry["details"]["score"] for entry in evaluated if "score" in entry["details"]]
        stated = self.of("paper_original.stated")
        self.paper_original = stated[-1]["details"].get("paper_original") if stated else None
        self.has_sandbox = "provenance.sandbox" in self.text or any(
            value is True and path[-1] == "sandbox" or path[-1] == "provider" and value == "sandbox"
            for entry in self.entries
            for path, value in walk(entry["details"])
        )
        acts = [entry for entry in self.entries if entry["action"].startswith("control.") and "stage" in entry["details"]]
        self.control = acts[-1]["details"] if acts else None
        # (name of the party, since when) from the originator on; empty without another party.
        steps = [(entry["details"]["controller"]["name"], entry["at"]) for entry in acts if entry["action"] in STEPS]
        self.originator = acts[0]["details"]["originator"]["name"] if acts else None
        self.chain = [(self.originator, self.stored["at"]), *steps] if steps else []
        self.head = next((
            value for entry in self.of("compliance.evaluated")
            for name, value in entry["details"]["facts"]["attributes"] if name == "ledger_checkpoint"
        ), None)
        self.has_other_rules = any(entry["details"].get("evaluations") for entry in evaluated)

        self.retrievals = {name: 0 for name in RETRIEVALS}
        for entry in self.of("authoritative.downloaded") + self.of("paper_original.downloaded"):
            name = entry["details"].get("file")
            self.retrievals[name if name in RETRIEVALS else "authoritative"] += 1
        self.retrievals["bundle"] = len(self.of("bundle.exported"))

    def of(self, action):
        return [entry for entry in self.entries if entry["action"] == action]

    def _read(self, entry):
        details = entry["details"]
        for path, value in walk(details):
            if isinstance(value, str) and "@" in value:
                self.addresses.add(value.lower())
            if path[-1] in ("name", "recipient_name", "authorized_signature"):
                self.names.add(value)

        signers = details.get("signers")
        for signer in signers if isinstance(signers, list) else []:
            if isinstance(signer, dict) and "signer_id" in signer:
                self.people[signer["signer_id"]] = signer
                self.person_times.setdefault(signer["signer_id"], set())
        signer = details.get("signer")
        if not isinstance(signer, dict) or "signer_id" not in signer:
            return
        key = signer["signer_id"]
        self.people.setdefault(key, signer)
        if entry["action"] == "signer.changed":
            # Another person takes the place: nothing that the one before did is theirs.
            before = details.get("previous", {}).get("signer_id")
            if before != key:
                self.people.pop(before, None)
                self.person_times.pop(before, None)
            self.people[key] = {**self.people[key], **signer}
        times = self.person_times.setdefault(key, set())
        times |= set(ISO.findall(json.dumps(details))) | {entry["at"]}
        if entry["action"] == "signer.completed":
            self.completed[key] = entry

    def signature(self, key):
        """Returns `executed`, another word of the ledger, or None before the person is done."""
        entry = self.completed.get(key)
        return entry and entry["details"].get("signature", "executed")

    def seconds_of(self, key):
        return {second(time) for time in self.person_times.get(key, ())}

    def person(self, name, address):
        """Returns the id of the person with this name and address."""
        for key, known in self.people.items():
            if known["name"] == name and same_address(known["email"], address):
                return key
        return None


class Findings:
    def __init__(self, record):
        self.record = record
        self.found = []

    def add(self, output, sentence, contradicts):
        self.found.append({
            "record": self.record, "output": output,
            "sentence": re.sub(r"\s+", " ", str(sentence)).strip()[:300], "contradicts": contradicts,
        })


# PDFs: words with their places, so that the lines are those of the page.


def words_of(path):
    """Returns the words of a PDF with their places, as `pdftotext -bbox` writes them: from a file beside
    the document if there is one."""
    beside = path.with_suffix(".bbox")
    if beside.exists():
        return beside.read_text()
    return subprocess.run(
        ["pdftotext", "-bbox", str(path), "-"], capture_output=True, text=True, check=True
    ).stdout


def lines_of(path):
    """Returns the lines of a PDF as lists of (x, word), page after page."""
    lines = []
    for page in words_of(path).split("<page ")[1:]:
        words = [
            (round(float(y1), 1), float(x0), html.unescape(word))
            for x0, y1, word in re.findall(
                r'<word xMin="([\d.-]+)" yMin="[\d.-]+" xMax="[\d.-]+" yMax="([\d.-]+)">(.*?)</word>', page
            )
        ]
        words.sort()
        line, at = [], None
        for y, x, word in words:
            if at is not None and y - at > 2.5:
                lines.append(sorted(line))
                line = []
            line.append((x, word))
            at = y
        if line:
            lines.append(sorted(line))
    # The header and the footer of a page interrupt tables.
    return [line for line in lines if not is_running(line)]


def is_running(line):
    text = words(line)
    return bool(re.search(r"\b\d+/\d+$", text)) or text.startswith("Custody record env_")


def words(line):
    return " ".join(word for _, word in line)


def section(text, start, *ends):
    """Returns the part of a text from a title to the first of the titles that may follow."""
    begin = text.find(start)
    if begin < 0:
        return ""
    text = text[begin + len(start):]
    stops = [at for at in (text.find(end) for end in ends) if at >= 0]
    return text[: min(stops)] if stops else text


def check_person_rows(facts, found, output, text):
    """Checks the part of a text about each person: it begins with the address or the name."""
    places = []
    for key, person in facts.people.items():
        for match in re.finditer(re.escape(person["email"]), text):
            if re.search(r"(signer:|\w)$", text[: match.start()]):
                continue
            before = text[max(0, match.start() - 160): match.start()]
            if person["name"] in before:
                places.append((match.start(), before.rfind(person["name"]), key))
    # Two persons may share an address; the nearest name before it decides.
    nearest = {}
    for at, name_at, key in places:
        if at not in nearest or nearest[at][0] < name_at:
            nearest[at] = (name_at, key)
    starts = sorted((at, key) for at, (_, key) in nearest.items())
    for key in facts.people:
        if key not in [one for _, one in starts]:
            found.add(output, "no row", f"{facts.people[key]['name']} takes part in the record")
    for (at, key), end in zip(starts, [at for at, _ in starts[1:]] + [len(text)]):
        person, row = facts.people[key], text[at:end]
        for moment in printed_seconds(row):
            if moment not in facts.seconds_of(key):
                found.add(output, f"{person['name']}: {moment}", f"times of {key}: {sorted(facts.seconds_of(key))}")
        executed = facts.signature(key) == "executed"
        says_signed = re.search(r"(?<!not )\b[Ss]igned\b", row) and not re.search(r"not signed", row)
        says_form = re.search(r"[Cc]ompleted the form|Form completed|no signature was asked", row)
        if says_form and executed:
            found.add(output, f"{person['name']}: {row}", f"signature of {key}: executed")
        if says_signed and not executed and facts.signature(key) == "not_asked":
            found.add(output, f"{person['name']}: {row}", f"signature of {key}: {facts.signature(key)}")
        if not says_form and facts.signature(key) == "not_asked":
            found.add(output, f"{person['name']}: {row}", f"signature of {key}: not_asked")


def check_moments(facts, found, output, text):
    """Each printed moment is one of the ledger, or states when the output was made."""
    made = set()
    for match in re.finditer(r"(?:Issued by \S+ at \S+(?: \(TEST\))? on|Recorded) (" + PRINTED.pattern + ")", text):
        made |= set(printed_seconds(match[1]))
    for moment in printed_seconds(text):
        if moment not in facts.seconds and moment not in made:
            found.add(output, moment, "no entry of the ledger has this time")


def check_digests(facts, found, output, text, more=()):
    for digest in set(DIGEST.findall(text)):
        if digest not in facts.digests and digest not in more:
            found.add(output, digest, "no entry of the ledger has this digest")


def check_state(facts, found, output, text):
    """Sentences about the whole record, wherever they stand."""
    if facts.released and re.search(r"[Ii]n the vault since|copy is in the vault|is stored in the vault now", text):
        found.add(output, "in the vault", f"vault.released at {facts.released['at']}")
    if facts.stored and re.search(r"[Nn]ot yet stored|[Nn]ot (?:yet )?in the vault yet|[Nn]ot yet signed by", text):
        found.add(output, "not yet", f"vault.stored at {facts.stored['at']}")
    for match in re.finditer(r"[^.]*\b(?:[Ss]ole|[Tt]he only|no other)\b[^.]*\b(?:original|copy)\b[^.]*", text):
        if not re.search(r"not the sole|knows nothing", match[0]):
            found.add(output, match[0], f"retrievals: {facts.retrievals}")
    if facts.is_test and "TEST" not in text:
        found.add(output, "no mark TEST", f"envelope.created in {facts.entries[0]['details'].get('org_id')}")
    if not facts.is_test and re.search(r"\bTEST\b", text):
        found.add(output, "TEST", "the record is none of test data")
    for key, person in facts.people.items():
        if facts.signature(key) == "not_asked" and re.search(rf"{re.escape(person['name'])} (?:has )?signed\b", text):
            found.add(output, f"{person['name']} signed", f"signature of {key}: not_asked")


# One function for each output.


def custody_record(facts, found, path, digests):
    output = path.name
    lines = lines_of(path)
    text = " ".join(words(line) for line in lines)
    check_moments(facts, found, output, text)
    check_state(facts, found, output, text)
    # The digests of the timeline are wrapped, and the other columns stand between their parts.
    for entry in facts.entries:
        name = f"{entry['action']}, SHA-256"
        if entry["sequence"] < (facts.stored or entry)["sequence"] and entry["action"] not in text:
            found.add(output, f"no row {name}", f"entry {entry['sequence']}: {entry['action']}")
    check_digests(facts, found, output, text, digests)

    parties = section(text, " Parties ", "Consent to electronic records", "Control checks")
    # The foot of a page that ends within the table.
    parties = re.sub(r"Recorded " + PRINTED.pattern, "", parties)
    if facts.people:
        check_person_rows(facts, found, output, parties)
    consents = section(text, "Consent to electronic records", "Control checks")
    consents = re.sub(r"Recorded " + PRINTED.pattern, "", consents)
    for moment in printed_seconds(consents):
        if moment not in set().union(*(facts.seconds_of(key) for key in facts.people), set()):
            found.add(output, f"consent: {moment}", "no person has this time")

    verdict = re.search(r"(\d+) of (\d+) checks", text)
    checks = section(text, "Control checks", "Chain of custody")
    if verdict and checks:
        passed = len(re.findall(r"(?<!Not )\bSatisfied\.", checks))
        failed = len(re.findall(r"\bNot satisfied\.", checks))
        if (int(verdict[1]), int(verdict[2])) != (passed, passed + failed):
            found.add(output, verdict[0], f"{passed} of {passed + failed} are satisfied in the same record")
        score = int(int(verdict[1]) * 100 / int(verdict[2]) + 0.5)
        if facts.scores and score not in facts.scores:
            found.add(output, verdict[0], f"scores of the ledger: {facts.scores}")

    custodians = len(re.findall(r"\bCustodian\b", section(text, "Envelope", "Documents")))
    if custodians > 1:
        found.add(output, f"{custodians} custodians", "one custodian at a time")
    if facts.released:
        form = facts.released["details"]["form"]
        if form["recipient_organization"] not in text or "Final record" not in text:
            found.add(output, "no release", f"vault.released to {form['recipient_organization']}")
        final = printed_seconds(section(text, "Final record", "Handed over", "Purpose"))
        if final and second(facts.released["at"]) not in final:
            found.add(output, f"released {final}", f"vault.released at {facts.released['at']}")
        if "Custodian" in text and not re.search(r"Custodian .{0,200}until", text):
            found.add(output, "Custodian without an end", f"vault.released at {facts.released['at']}")
        periods = re.findall(rf"Custodian (\S+), from ({PRINTED.pattern})\D* until ({PRINTED.pattern})", text)
        period = [(one[0], *printed_seconds(one[1]), *printed_seconds(one[6])) for one in periods]
        custody = (facts.stored["details"]["custodian"], second(facts.stored["at"]), second(facts.released["at"]))
        if period != [custody]:
            found.add(output, f"custodian: {period}", f"vault.stored, vault.released: {custody}")
        for name, _ in facts.chain[1:]:
            if f"{name} took control" not in text:
                found.add(output, "no row of the history", f"{name} took control")
    elif "Final record" in text:
        found.add(output, "Final record", "no vault.released")
    vaulting_lines(facts, found, output, text)
    if facts.has_sandbox and "Sandbox" not in text:
        found.add(output, "no mark of the sandbox", "an identity check or a payment was simulated")
    if facts.is_paper and "not checked by this service" not in text:
        found.add(output, "no word on the upload", "the record was signed elsewhere")
    stored = facts.stored and facts.stored["details"]
    if stored and bool(stored.get("rewritten")) != ("Rewritten" in text):
        found.add(output, "Rewritten" if "Rewritten" in text else "no Rewritten", f"rewritten: {stored.get('rewritten')}")
    for name in ("document_hash", "copy_hash"):
        if stored and stored[name] not in text:
            found.add(output, f"no {name}", f"vault.stored {name}: {stored[name]}")


def vaulting_lines(facts, found, output, text):
    """Checks the lines about the files of the record: seal, copy, time, log and second evaluation."""
    stored = facts.stored["details"]
    seal = stored["seal_certificate_hash"]
    if (f"certificate {seal} (SHA-256)" in text) != bool(seal) or ("not sealed" in text) == bool(seal):
        found.add(output, "seal", f"vault.stored seal_certificate_hash: {seal}")
    for kind, said in COPY_FORMS.items():
        if (said in text) != (kind == stored["copy_kind"]):
            found.add(output, said, f"vault.stored copy_kind: {stored['copy_kind']}")

    time = stored["trusted_time"]
    if ("no time stamping authority was asked" in text) != (time is None):
        found.add(output, "no time stamping authority was asked", f"vault.stored trusted_time: {time}")
    if time and time["status"] == "stamped":
        line = section(text, "Trusted time ", "Log of all ledgers")
        if time["authority"] not in line or second(time["at"]) not in printed_seconds(line):
            found.add(output, f"trusted time: {line}", f"vault.stored trusted_time: {time}")
        if ("not checked" in line) == bool(time["checked"]):
            found.add(output, f"trusted time: {line}", f"checked: {time['checked']}")
    elif time and time["reason"] not in text:
        found.add(output, "no reason", f"vault.stored trusted_time: {time}")

    if facts.head:
        origin, size, root = facts.head.splitlines()[:3]
        line = f"{origin}: {size} entries before, root {root}"
        if line.replace(" ", "") not in text.replace(" ", ""):
            found.add(output, f"no line {line}", "ledger_checkpoint of compliance.evaluated")
    if ("Second evaluation" in text) != facts.has_other_rules:
        found.add(output, "Second evaluation", f"other rules decided: {facts.has_other_rules}")


def completion(facts, found, path, digests):
    output = path.name
    if facts.is_paper:
        found.add(output, "a certificate of completion", "the record was signed elsewhere")
    lines = lines_of(path)
    text = " ".join(words(line) for line in lines)
    check_moments(facts, found, output, text)
    check_digests(facts, found, output, text, digests)
    check_state(facts, found, output, text)
    check_person_rows(facts, found, output, text)
    sent = facts.of("envelope.sent")
    if sent and second(sent[-1]["at"]) not in printed_seconds(section(text, "Sent ", "Completed ")):
        found.add(output, "Sent", f"envelope.sent at {sent[-1]['at']}")
    for name in ("document_hash", "copy_hash"):
        if facts.stored["details"][name] not in text:
            found.add(output, f"no {name}", f"vault.stored {name}: {facts.stored['details'][name]}")
    if facts.has_sandbox and facts.of("kba.verified") and not re.search(r"sandbox|simulated", text, re.I):
        found.add(output, "no mark of the sandbox", "an identity check was simulated")


def times_of_json(facts, found, output, value):
    for path, leaf in walk(value):
        if not isinstance(leaf, str) or MADE & set(map(str, path)):
            continue
        for time in ISO.findall(leaf):
            if time not in facts.times:
                found.add(output, f"{'.'.join(map(str, path))}: {leaf}", "no entry of the ledger has this time")


def timeline(facts, found, output, rows):
    """Checks rows of people: {signer_id, name, email, role, signed_at, completed_at}."""
    listed = [row.get("signer_id") for row in rows]
    if sorted(map(str, listed)) != sorted(facts.people):
        found.add(output, f"people: {listed}", f"people of the ledger: {sorted(facts.people)}")
    for row in rows:
        key = row.get("signer_id")
        if key not in facts.people:
            continue
        for name in ("name", "email", "role"):
            if name in row and row[name] != facts.people[key][name]:
                found.add(output, f"{name}: {row[name]}", f"{name} of {key}: {facts.people[key][name]}")
        for name in ("signed_at", "completed_at"):
            if row.get(name) and row[name] not in facts.person_times[key]:
                found.add(output, f"{name}: {row[name]}", f"times of {key}: {sorted(facts.person_times[key])}")
        is_executed = facts.signature(key) == "executed"
        if "signed_at" in row and row.get("kind", "signer") in ("signer", "witness"):
            if bool(row["signed_at"]) != is_executed:
                found.add(output, f"signed_at: {row['signed_at']}", f"signature of {key}: {facts.signature(key)}")
        if "signature" in row and row["signature"] and row["signature"] != facts.signature(key):
            found.add(output, f"signature: {row['signature']}", f"signature of {key}: {facts.signature(key)}")


def certificate(facts, found, output, value, digests):
    times_of_json(facts, found, output, value)
    text = json.dumps(value, ensure_ascii=False)
    check_digests(facts, found, output, text, digests)
    if not facts.released:
        check_state(facts, found, output, text)
    timeline(facts, found, output, value["signer_timeline"])
    result = value["ucc_9105_compliance"]
    passed = [check["satisfied"] for check in result["checks"]]
    if result["score"] not in facts.scores:
        found.add(output, f"score: {result['score']}", f"scores of the ledger: {facts.scores}")
    if result["compliant"] != all(passed) or (result["score"] == 100) != all(passed):
        found.add(output, f"compliant: {result['compliant']}, score {result['score']}", f"checks: {passed}")
    if value["document_integrity"]["document_hash"] != facts.stored["details"]["document_hash"]:
        found.add(output, value["document_integrity"]["document_hash"], "vault.stored document_hash")
    if facts.is_paper and value["esign_act_compliance"]["compliant"] is not None:
        found.add(output, f"E-SIGN: {value['esign_act_compliance']['compliant']}", "the record was signed elsewhere")
    unsigned = [key for key in facts.people if facts.signature(key) == "not_asked"
                and facts.people[key].get("kind", "signer") == "signer"]
    check = next((c for c in result["checks"] if "ignator" in c["requirement"]), None)
    if unsigned and check and check["satisfied"]:
        found.add(output, check["detail"], f"signature of {unsigned}: not_asked")
    for row in value.get("consumer_consent", []):
        key = row.get("signer_id")
        for name in ("shown_at", "consented_at"):
            if row.get(name) and row[name] not in facts.person_times.get(key, ()):
                found.add(output, f"{name}: {row[name]}", f"times of {key}")
    if facts.paper_original and value.get("paper_original") != facts.paper_original:
        found.add(output, f"paper_original: {value.get('paper_original')}", f"stated: {facts.paper_original}")
    chain = [(step["name"], step["since"]) for step in value.get("control_chain") or []]
    if chain != facts.chain:
        found.add(output, f"control_chain: {chain}", f"acts of control: {facts.chain}")
    rewritten = facts.stored["details"].get("rewritten")
    if value["provenance"].get("rewritten") != rewritten:
        found.add(output, f"rewritten: {value['provenance'].get('rewritten')}", f"vault.stored: {rewritten}")


def compliance(facts, found, output, value):
    times_of_json(facts, found, output, value)
    result = value["compliance"]
    passed = [check["satisfied"] for check in result["checks"]]
    if result["score"] != int(100 * sum(passed) / len(passed) + 0.5):
        found.add(output, f"score: {result['score']}", f"{sum(passed)} of {len(passed)} checks")
    if facts.released:
        if result["checks"][0]["satisfied"]:
            found.add(output, result["checks"][0]["detail"], f"vault.released at {facts.released['at']}")
    elif facts.stored and result["score"] != facts.scores[-1]:
        found.add(output, f"score: {result['score']}", f"score of the ledger: {facts.scores[-1]}")
    check_state(facts, found, output, " ".join(c["detail"] for c in result["checks"]) + (" TEST" if facts.is_test else ""))
    asked = [key for key in facts.people if facts.people[key].get("kind", "signer") in ("signer", "witness")]
    for match in re.finditer(r"\((\d+) of (\d+)\)", result["checks"][3]["detail"]):
        executed = sum(facts.signature(key) == "executed" for key in asked)
        if (int(match[1]), int(match[2])) != (executed, len(asked)):
            found.add(output, result["checks"][3]["detail"], f"{executed} of {len(asked)} executed a signature")


def envelope(facts, found, output, value):
    is_vaulted = bool(facts.stored) and not facts.released
    if value["vaulted"] != is_vaulted:
        found.add(output, f"vaulted: {value['vaulted']}", f"vault.stored, vault.released: {is_vaulted}")
    status = "vaulted_out" if facts.released else "vaulted"
    if facts.stored and value["status"] != status:
        found.add(output, f"status: {value['status']}", f"the entries amount to {status}")
    if value.get("compliance_score") is not None and value["compliance_score"] not in facts.scores:
        found.add(output, f"compliance_score: {value['compliance_score']}", f"scores of the ledger: {facts.scores}")


def events(facts, found, output, value):
    for event in value:
        signer = event.get("data", {}).get("signer")
        if not isinstance(signer, dict) or "signer_id" not in signer:
            continue
        if signer["signer_id"] not in facts.text:
            found.add(output, f"{event['event_type']}: {signer}", "no such person in the ledger")
        elif signer.get("name") and signer["name"] not in facts.names:
            found.add(output, f"{event['event_type']}: {signer['name']}", "no such name in the ledger")
        if event["event_type"] == "signer.completed":
            word = signer.get("signature") or event["data"].get("signature")
            if word and word != facts.signature(signer["signer_id"]):
                found.add(output, f"signature: {word}", f"signature of {signer['signer_id']}")
    types = [event["event_type"] for event in value]
    for action in ("vault.stored", "vault.released", "envelope.completed"):
        if types.count(action) != min(1, len(facts.of(action))):
            found.add(output, f"{types.count(action)} × {action}", f"{len(facts.of(action))} entries")


def report(facts, found, value, text):
    output = "verify-report.json"
    if value["retrievals"]:
        for name, count in facts.retrievals.items():
            if value["retrievals"].get(name, 0) != count:
                found.add(output, f"{name}: {value['retrievals'].get(name)}", f"{count} entries of the ledger")
    controller = facts.chain[-1][0] if facts.chain else facts.originator
    if value["controlled_by"] != controller:
        found.add(output, f"controlled_by: {value['controlled_by']}", f"acts of control: {facts.chain}")
    if value["rules_result"]["score"] not in facts.scores:
        found.add(output, f"score: {value['rules_result']['score']}", f"scores of the ledger: {facts.scores}")
    for check in value["checks"]:
        if check["ok"] is False:
            found.add(output, f"{check['check']}: {check['detail']}", "nobody changed the evidence")
    if text is not None:
        line = text.splitlines()[0]
        score = re.search(r"rules result (\d+) of 100", line)
        if not score or int(score[1]) not in facts.scores:
            found.add("verify-report.txt", line, f"scores of the ledger: {facts.scores}")


def control(facts, found, output, view):
    for part in ("originator", "controller", "designee", "buyer", "pledgee"):
        named, known = view.get(part), (facts.control or view).get(part)
        if (named and named["name"]) != (known and known["name"]):
            found.add(output, f"{part}: {named}", f"newest act of control: {known}")
    if facts.control and not facts.released and (view["stage"], view["epoch"]) != (facts.control["stage"], facts.control["epoch"]):
        found.add(output, f"stage: {view['stage']}", f"newest act of control: {facts.control['stage']}")


def tape(facts, found, output, rows):
    times_of_json(facts, found, output, rows)
    expected = {
        "name": facts.of("envelope.created")[0]["details"].get("name"),
        "originator": facts.chain[0][0], "controller": facts.chain[-1][0], "controlled_since": facts.chain[-1][1],
        "stage": facts.control["stage"], "document_hash": facts.stored["details"]["document_hash"],
        "compliance_score": facts.scores[-1], "exceptions": [],
    }
    for row in rows:
        for name, known in expected.items():
            if known is not None and row.get(name) != known:
                found.add(output, f"{name}: {row.get(name)}", f"{name}: {known}")


def visible(page):
    page = re.sub(r"(?s)<(script|style|template)\b.*?</\1>", " ", page)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def finished(facts, found, path):
    key, text = path.stem.removeprefix("finished-"), visible(path.read_text())
    if facts.signature(key) == "not_asked" and "You have signed" in text:
        found.add(path.name, "You have signed", f"signature of {key}: not_asked")
    if facts.signature(key) == "executed" and "No signature was asked of you" in text:
        found.add(path.name, "No signature was asked of you", f"signature of {key}: executed")
    waiting = section(text, "Still to sign:", "You will get", "You can close")
    for other, person in facts.people.items():
        if person["name"] in waiting and facts.signature(other) == "not_asked":
            found.add(path.name, f"Still to sign: {person['name']}", f"signature of {other}: not_asked")


def verify_page(facts, found, path, digests):
    text = visible(path.read_text())
    check_moments(facts, found, path.name, text)
    check_digests(facts, found, path.name, text, digests)
    check_state(facts, found, path.name, text)
    if facts.released and "released" not in text and "paper original" not in text:
        found.add(path.name, "no release", f"vault.released at {facts.released['at']}")
    if not facts.released and re.search(r"was released|has replaced", text):
        found.add(path.name, "released", "no vault.released")
    for person in facts.people.values():
        if person["name"] not in text:
            found.add(path.name, "no such name", f"{person['name']} takes part in the record")


def mails(facts, found, output, value):
    for mail in value:
        message = email.message_from_string(mail, policy=email.policy.default)
        body = message.get_body(("plain",))
        text = body.get_content() if body else ""
        recipients = [address.addr_spec for address in message["To"].addresses]
        for address in recipients:
            # People of an organization are no part of the record's ledger.
            is_known = address.lower() in facts.addresses
            if not is_known and re.search(r"asks you to sign|Thank you|is completed", text):
                found.add(output, f"{address}: {message['Subject']}", "no such address in the ledger")
        if "is completed" in text and not facts.of("envelope.completed"):
            found.add(output, message["Subject"], "no envelope.completed")
        for key, person in facts.people.items():
            if facts.signature(key) == "not_asked" and re.search(
                rf"all (?:parties|signers) have signed|{re.escape(person['name'])} has signed", text
            ):
                found.add(output, message["Subject"], f"signature of {key}: not_asked")


def check(folder):
    """Returns the findings about one record."""
    folder = Path(folder)
    found = Findings(folder.name)

    def read(name):
        path = folder / name
        return json.loads(path.read_text()) if path.exists() else None

    facts = Facts(read("ledger.json"))
    bundle = read("bundle.json") or {}
    # The files of the bundle, and the entries' own texts, have digests that the ledger need not name.
    digests = set(bundle.values()) | {digest for name in bundle for digest in DIGEST.findall(name)}
    certified = folder / "certificate.json"
    if certified.exists():
        digests |= set(DIGEST.findall(json.dumps(read("certificate.json")["provenance"])))

    value = read("certificate.json")
    if value:
        certificate(facts, found, "certificate.json", value, digests)
    for name, one in (("compliance", compliance), ("envelope", envelope), ("events", events),
                      ("mails", mails), ("control", control), ("tape", tape)):
        value = read(f"{name}.json")
        if value is not None:
            one(facts, found, f"{name}.json", value)
    value = read("signers.json")
    if value:
        timeline(facts, found, "signers.json", value["signers"])
    value = read("verify-report.json")
    if value:
        text = folder / "verify-report.txt"
        report(facts, found, value, text.read_text() if text.exists() else None)
    if bundle:
        stored = facts.stored["details"]
        for name, member in (
            ("authoritative.pdf", "document_hash"), ("certified-vaulted-copy.pdf", "copy_hash"),
        ):
            if name in bundle and bundle[name] != stored[member]:
                found.add("bundle.json", f"{name}: {bundle[name]}", f"vault.stored {member}: {stored[member]}")
    for name, one in (
        ("custody-record.pdf", custody_record), ("completion-certificate.pdf", completion), ("verify.html", verify_page),
    ):
        if (folder / name).exists():
            one(facts, found, folder / name, digests)
    for page in sorted(folder.glob("finished-*.html")):
        finished(facts, found, page)
    return found.found


if __name__ == "__main__":
    print(json.dumps([finding for folder in sys.argv[1:] for finding in check(folder)], ensure_ascii=False))
