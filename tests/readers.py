"""Inspects PDFs with MuPDF, PDFium and pyHanko, for the tests.

Reads one JSON request a line, writes one JSON answer a line. Requests:

  {"do": "compare", "before": path, "after": path, "first": n,
   "mask": path or null, "ignore": [[page, x0, y0, x1, y1], ...]}
      -> {"problems": [text, ...]}
      Both readers draw each page p of `before` and page first + p of
      `after`. The pages have to be equal except where `mask` (a document with
      the same pages in grey) has ink and in the `ignore` rectangles (fractions).

  {"do": "survives", "before": path, "field": [x0, y0, x1, y1] or null,
   "after": [[name, path, mask or null], ...]}
      -> {"verdict": text, "problems": [text, ...]}
      Whether every document of `after` has the characters and pixels of
      `before`, outside of the field on its first page and of the masks, and
      shows something new there. Verdicts: "equal", "different"; "one" if the
      readers disagree about `before` and one of them sees no difference;
      "unread" if neither reads `before`; "undecided" instead of these two if
      they disagree about `after`.

  {"do": "blank", "like": path, "write": path}
      -> {"pages": n}, or {"error": text}
      Writes a document of grey upright pages with the displayed sizes of the
      pages of `like`.

  {"do": "seal", "path": path, "authorities": path of PEM certificates,
   "times": the same for time stamps, or left out}
      -> {"intact", "valid", "trusted", "whole": bool, "level": text}
      pyHanko's report on the last signature. With `times` also
      {"time": {"trusted": bool, "at": text}}, or null without a time stamp.

  {"do": "long_term", "path": path, "roots": [paths of PEM certificates],
   "lists": [paths of lists of revoked certificates],
   "distrusted": [name of a digest algorithm, year] or null}
      -> {"verdict": text, "best_time": text, "permitted": bool}
      pyHanko's validation of the first signature with the long-term data of
      the document (ETSI EN 319 102-1, 5.6.3), by the clock of this process and
      without a network. `lists` are those about the newest time stamp.
"""

import collections
import functools
import json
import os
import sys

import numpy
import pymupdf
import pypdfium2
import pypdfium2.raw as pdfium_c

pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)

# Tolerance: writers round numbers, which changes the anti-aliasing of edges a little.
LEVELS = 24
# The same for squares drawn by different readers. Sound documents stay below 23, a missing typeface is above 30.
BLOCK_LEVELS = 26
# Number of pages to compare in each document.
PAGES = int(os.environ.get("HOLDFAST_PAGES", "4"))
# On grey, both white and black ink are visible.
GREY = (0.5, 0.5, 0.5)


class MuPdf:
    def __init__(self, path):
        self.document = pymupdf.open(path)
        self.pages = len(self.document)

    def draw(self, number):
        picture = self.document[number].get_pixmap(alpha=False)
        pixels = numpy.frombuffer(picture.samples, numpy.uint8)
        return pixels.reshape(picture.height, picture.width, 3).astype(numpy.int16)

    def characters(self, number):
        page = self.document[number].get_text("rawdict", flags=pymupdf.TEXT_PRESERVE_WHITESPACE)
        return [
            (character["c"], *character["origin"])
            for block in page["blocks"] for line in block.get("lines", ())
            for span in line["spans"] for character in span["chars"]
        ]


class Pdfium:
    def __init__(self, path):
        self.document = pypdfium2.PdfDocument(path)
        # PDFium draws form fields only after this call.
        self.document.init_forms()
        self.pages = len(self.document)

    def draw(self, number):
        return self.document[number].render(scale=1).to_numpy()[:, :, :3].astype(numpy.int16)

    def characters(self, number):
        text = self.document[number].get_textpage()
        found = []
        for index in range(text.count_chars()):
            left, bottom, _, _ = text.get_charbox(index, loose=True)
            found.append((chr(pdfium_c.FPDFText_GetUnicode(text, index)), left, bottom))
        return found


READERS = {"MuPDF": MuPdf, "PDFium": Pdfium}


def widgets(path):
    """Returns the areas of form fields, which PDFium draws without using their appearances."""
    found = []
    for page in pymupdf.open(path):
        for widget in page.widgets():
            box = widget.rect * page.rotation_matrix
            width, height = page.rect.width, page.rect.height
            found.append([
                page.number + 1,
                box.x0 / width, box.y0 / height, box.x1 / width, box.y1 / height,
            ])
    return found


@functools.cache
def entries_of_viewers(path):
    """Returns the characters of form entries, for each page, if the form asks viewers to draw them anew.

    Each viewer then has letters of its own (ISO 32000-1, table 218), while the signer was shown those of the file.
    """
    try:
        document = pymupdf.open(path)
        asked = document.xref_get_key(document.pdf_catalog(), "AcroForm/NeedAppearances")
        if asked != ("bool", "true"):
            return {}
        return {
            page.number + 1: collections.Counter(
                character for widget in page.widgets() for character in str(widget.field_value or "")
            )
            for page in document
        }
    except Exception:
        return {}


def near(ink):
    """Returns the ink and the pixels around it."""
    grown = ink.copy()
    for axis in (0, 1):
        for step in (-2, -1, 1, 2):
            grown |= numpy.roll(ink, step, axis)
    return grown


def inside(box, shape):
    """Returns the pixels of a box of fractions, and those beside its edges."""
    (height, width), (x0, y0, x1, y1) = shape, box
    rows = slice(max(0, int(y0 * height) - 2), int(y1 * height) + 3)
    columns = slice(max(0, int(x0 * width) - 2), int(x1 * width) + 3)
    return rows, columns


def compare(request):
    problems = []
    for name, reader in READERS.items():
        try:
            before = reader(request["before"])
        except Exception:
            continue  # What it cannot read before it need not read after.
        try:
            after = reader(request["after"])
            mask = reader(request["mask"]) if request["mask"] else None
            ignored = list(request["ignore"])
            if reader is Pdfium:
                ignored += widgets(request["before"])
            if after.pages < request["first"] + before.pages:
                problems.append(f"{name}: {after.pages} pages")
                continue
            for page in range(min(before.pages, PAGES)):
                one = before.draw(page)
                two = after.draw(request["first"] + page)
                if one.shape != two.shape:
                    problems.append(f"{name}: page {page + 1}: {one.shape} became {two.shape}")
                    continue
                changed = (abs(one - two) > LEVELS).any(axis=2)
                if mask:
                    drawn = mask.draw(page)
                    ink = (drawn != numpy.median(drawn, axis=(0, 1))).any(axis=2)
                    changed &= ~near(ink)
                height, width = changed.shape
                for number, *box in ignored:
                    if number == page + 1:
                        changed[inside(box, changed.shape)] = False
                if changed.any():
                    rows, columns = numpy.nonzero(changed)
                    place = [
                        float(round(edge, 3)) for edge in (
                            columns.min() / width, rows.min() / height,
                            (columns.max() + 1) / width, (rows.max() + 1) / height,
                        )
                    ]
                    problems.append(
                        f"{name}: page {page + 1}: {int(changed.sum())} pixels differ within {place}"
                    )
        except Exception as error:
            problems.append(f"{name}: {error}")
    return {"problems": problems}


Page = collections.namedtuple("Page", "pixels characters")


def view(reader, path):
    """Returns the pages that a reader shows, with None for one it cannot show, or None if it shows none."""
    try:
        document = reader(path)
    except Exception:
        return None
    pages = []
    for number in range(document.pages):
        try:
            shown = number < PAGES
            pages.append(Page(document.draw(number), document.characters(number)) if shown else None)
        except Exception:
            pages.append(None)
    return pages if any(pages) else None


@functools.cache
def ink_of(reader, path):
    """Returns where a mask has ink, for each page. Masks keep their paths, and many documents share one."""
    found = []
    for page in view(reader, path):
        ink = page and near((page.pixels != numpy.median(page.pixels, axis=(0, 1))).any(axis=2))
        if ink is not None and os.environ.get("HOLDFAST_LINES"):
            # Lines with another identifier are a little wider or narrower.
            for edge in (slice(0, len(ink) // 20), slice(-(len(ink) // 20), None)):
                ink[edge] |= ink[edge].any(axis=1)[:, None]
        found.append(ink)
    return found


def missing_character(before, after, entries):
    """Returns a character that is not at its place any more. Those of `entries` may be anywhere on the page."""
    places = collections.Counter()
    for text, x, y in after:
        places[text, round(x), round(y)] += 1
    missing = []
    for text, x, y in before:
        if not text.isspace() and text != "\0":
            near_by = [
                (text, round(x) + across, round(y) + down)
                for across in (0, -1, 1) for down in (0, -1, 1)
            ]
            place = next((place for place in near_by if places[place]), None)
            if place:
                places[place] -= 1
            else:
                missing.append((text, x, y))

    moved = collections.Counter()
    for (text, _, _), count in places.items():
        moved[text] += count
    movable = moved & entries
    for text, x, y in missing:
        if not movable[text]:
            return f"{text!r} at {x:.0f}, {y:.0f}"
        movable[text] -= 1
    return None


def is_empty(page):
    """Returns whether a page is not there, or shows nothing."""
    return page is None or (not page.characters and bool((page.pixels == page.pixels.flat[0]).all()))


def lost(before, after, inks, field, boxes, entries):
    """Describes what of the pages before is not on the pages after.

    In the boxes of form fields the pixels are not compared, because readers draw fields differently from pages.
    """
    if after is None:
        return ["cannot be read"]
    # A reader that believes a wrong number of pages makes up empty ones at the end.
    made_up = before[len(after):]
    if len(before) < len(after) or not all(is_empty(page) for page in made_up):
        return [f"{len(after)} instead of {len(before)} pages"]
    problems = []
    for number, (one, two) in enumerate(zip(before, after), 1):
        if one is None:
            continue
        if two is None or one.pixels.shape != two.pixels.shape:
            problems.append(f"page {number} has another size")
            continue
        changed = functools.reduce(
            numpy.logical_or, (numpy.moveaxis(abs(one.pixels - two.pixels), 2, 0) > LEVELS)
        )
        own = numpy.zeros_like(changed)
        if number == 1 and field:
            height, width = changed.shape
            x0, y0, x1, y1 = field
            own[int(y0 * height):int(y1 * height) + 1, int(x0 * width):int(x1 * width) + 1] = True
            if not (changed & own).any():
                problems.append("the value is invisible")
        if inks:
            ink = inks[number - 1] if number <= len(inks) else None
            if ink is None or ink.shape != changed.shape:
                problems.append(f"page {number} was marked as one of another size")
                continue
            if not (changed & ink & ~own).any():
                problems.append(f"the mark on page {number} is invisible")
            own |= ink
        for page, *box in boxes:
            if page == number:
                own[inside(box, own.shape)] = True
        changed &= ~own
        if changed.any():
            rows, columns = numpy.nonzero(changed)
            problems.append(
                f"page {number}: {int(changed.sum())} pixels differ, from {columns.min()}, {rows.min()}"
                f" to {columns.max()}, {rows.max()}"
            )
        character = missing_character(one.characters, two.characters, entries.get(number, collections.Counter()))
        if character:
            problems.append(f"page {number}: character {character} is missing")
    return problems


def blocks(pixels):
    """Returns the brightness of squares, in which both readers' ways of drawing a letter are alike."""
    side = 16
    height, width = (edge // side * side for edge in pixels.shape[:2])
    grey = sum(pixels[:height, :width, channel] for channel in range(3)) / 3
    rows = numpy.add.reduceat(grey, range(0, height, side), axis=0)
    return numpy.add.reduceat(rows, range(0, width, side), axis=1) / side**2


def agree(one, two):
    """Returns whether two readers show the same."""
    if one is None or two is None or len(one) != len(two):
        return False
    for left, right in zip(one, two):
        if (left is None) != (right is None):
            return False
        if left is None:
            continue
        texts = [
            collections.Counter(text for text, _, _ in page.characters if not text.isspace() and text != "\0")
            for page in (left, right)
        ]
        if left.pixels.shape != right.pixels.shape or texts[0] != texts[1]:
            return False
        if (abs(blocks(left.pixels) - blocks(right.pixels)) > BLOCK_LEVELS).any():
            return False
    return True


def survives(request):
    before = {name: view(reader, request["before"]) for name, reader in READERS.items()}
    problems = {name: [] for name, pages in before.items() if pages}
    try:
        boxes = widgets(request["before"])
    except Exception:
        boxes = []
    entries = entries_of_viewers(request["before"])
    written = []
    for change, path, mask in request["after"]:
        after = {name: view(reader, path) for name, reader in READERS.items()}
        if not any(after.values()):
            return {"verdict": "different", "problems": [f"{change}: no reader shows a page"]}
        written.append(after)
        for name in problems:
            inks = ink_of(READERS[name], mask) if mask else None
            found = lost(before[name], after[name], inks, request["field"], boxes, entries)
            problems[name] += [f"{change}: {name}: {problem}" for problem in found]
    return {
        "verdict": verdict(before, written, problems),
        "problems": sum(problems.values(), []),
    }


def verdict(before, written, problems):
    agreed = agree(*before.values())
    equal = [name for name, found in problems.items() if not found]
    if agreed and len(equal) == len(READERS):
        return "equal"
    if problems and not equal:
        return "different"
    # Readers that agree on the whole may draw a detail differently, such as a typeface that is not found.
    is_detail = all("pixels differ" in problem for found in problems.values() for problem in found)
    if agreed and not is_detail:
        return "different"
    if not all(agree(*after.values()) for after in written):
        return "different" if agreed else "undecided"
    return "one" if problems else "unread"


def blank(request):
    try:
        like = pymupdf.open(request["like"])
        written = pymupdf.open()
        for page in like:
            empty = written.new_page(width=page.rect.width, height=page.rect.height)
            empty.draw_rect(empty.rect, color=None, fill=GREY)
        written.save(request["write"])
    except Exception as error:
        return {"error": str(error)}
    return {"pages": len(written)}


def seal(request):
    # Imported here because only this request needs it and loading takes a second.
    from pyhanko.keys import load_certs_from_pemder
    from pyhanko.pdf_utils.reader import PdfFileReader
    from pyhanko.sign.validation import validate_pdf_signature
    from pyhanko.sign.validation.status import SignatureCoverageLevel
    from pyhanko_certvalidator import ValidationContext

    authorities = list(load_certs_from_pemder([request["authorities"]]))
    context = ValidationContext(trust_roots=authorities[-1:], allow_fetching=False)
    with open(request["path"], "rb") as file:
        signature = PdfFileReader(file).embedded_signatures[-1]
        times = None
        if "times" in request:
            roots = list(load_certs_from_pemder([request["times"]]))
            times = ValidationContext(trust_roots=roots, allow_fetching=False)
        status = validate_pdf_signature(signature, context, ts_validation_context=times)
    answer = {
        "intact": status.intact,
        "valid": status.valid,
        "trusted": status.trusted,
        "whole": status.coverage == SignatureCoverageLevel.ENTIRE_FILE,
        "level": str(signature.sig_object.get("/SubFilter")),
    }
    if times:
        stamp = status.timestamp_validity
        answer["time"] = stamp and {
            "trusted": stamp.valid and stamp.trusted,
            "at": stamp.timestamp.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        }
    return answer


def long_term(request):
    import asyncio
    import datetime
    import logging

    from asn1crypto.crl import CertificateList
    from pyhanko.keys import load_certs_from_pemder
    from pyhanko.pdf_utils.reader import PdfFileReader
    from pyhanko.sign.validation.ades import ades_lta_validation
    from pyhanko.sign.validation.policy_decl import (
        LocalKnowledge,
        PdfSignatureValidationSpec,
        RevinfoOnlineFetchingRule,
        RevocationInfoGatheringSpec,
        SignatureValidationSpec,
    )
    from pyhanko_certvalidator.context import CertValidationPolicySpec
    from pyhanko_certvalidator.policy_decl import (
        REQUIRE_REVINFO,
        AlgorithmUsageConstraint,
        CertRevTrustPolicy,
        DisallowWeakAlgorithmsPolicy,
    )
    from pyhanko_certvalidator.registry import SimpleTrustManager
    from pyhanko_certvalidator.revinfo.archival import CRLContainer

    class Algorithms(DisallowWeakAlgorithmsPolicy):
        """Distrusts a digest algorithm from a year on."""

        def refusal(self, name, moment):
            distrusted, year = request.get("distrusted") or (None, 1)
            end = datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc)
            if name is None or name != distrusted or (moment is not None and moment < end):
                return None
            return AlgorithmUsageConstraint(
                allowed=False, not_allowed_after=end, failure_reason=f"{name} is distrusted")

        def digest_algorithm_allowed(self, algo, moment):
            refusal = self.refusal(algo["algorithm"].native, moment)
            # A refusal counts as false.
            return super().digest_algorithm_allowed(algo, moment) if refusal is None else refusal

        def signature_algorithm_allowed(self, algo, moment, public_key):
            try:
                name = algo.hash_algo
            except ValueError:
                # The digest algorithm is named apart from the signature.
                name = None
            refusal = self.refusal(name, moment)
            if refusal is not None:
                return refusal
            return super().signature_algorithm_allowed(algo, moment, public_key)

    logging.disable(logging.CRITICAL)
    lists = []
    for path in request["lists"]:
        with open(path, "rb") as file:
            lists.append(CRLContainer(CertificateList.load(file.read())))
    policy = CertValidationPolicySpec(
        trust_manager=SimpleTrustManager.build(
            trust_roots=list(load_certs_from_pemder(request["roots"]))),
        revinfo_policy=CertRevTrustPolicy(REQUIRE_REVINFO),
        algorithm_usage_policy=Algorithms(),
    )
    specification = PdfSignatureValidationSpec(SignatureValidationSpec(
        cert_validation_policy=policy,
        revinfo_gathering_policy=RevocationInfoGatheringSpec(RevinfoOnlineFetchingRule.LOCAL_ONLY),
        local_knowledge=LocalKnowledge(known_crls=lists),
    ))
    with open(request["path"], "rb") as file:
        signature = PdfFileReader(file).embedded_signatures[0]
        result = asyncio.run(ades_lta_validation(signature, specification))
        summary = signature.summarise_integrity_info()
    return {
        "verdict": str(result.ades_subindic),
        "why": result.failure_msg,
        "best_time": result.best_signature_time.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "permitted": summary["docmdp_ok"],
    }


DO = {
    "compare": compare, "survives": survives, "blank": blank, "seal": seal,
    "long_term": long_term,
}

for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(DO[request["do"]](request)), flush=True)
