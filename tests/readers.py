"""Inspects PDFs with MuPDF, PDFium and pyHanko, for the tests.

Reads one JSON request a line, writes one JSON answer a line. Requests:

  {"do": "compare", "before": path, "after": path, "first": n,
   "mask": path or null, "ignore": [[page, x0, y0, x1, y1], ...]}
      -> {"problems": [text, ...]}
      Both readers draw each page p of `before` and page first + p of
      `after`. The pages have to be equal except where `mask` (a document with
      the same pages in grey) has ink and in the `ignore` rectangles (fractions).

  {"do": "blank", "like": path, "write": path}
      -> {"pages": n}, or {"error": text}
      Writes a document of grey upright pages with the displayed sizes of the
      pages of `like`.

  {"do": "seal", "path": path, "authorities": path of PEM certificates,
   "times": the same for time stamps, or left out}
      -> {"intact", "valid", "trusted", "whole": bool, "level": text}
      pyHanko's report on the last signature. With `times` also
      {"time": {"trusted": bool, "at": text}}, or null without a time stamp.
"""

import json
import sys

import numpy
import pymupdf
import pypdfium2

pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)

# Tolerance: writers round numbers, which changes the anti-aliasing of edges a little.
LEVELS = 24
# Number of pages to compare in each document.
PAGES = 4
# On grey, both white and black ink are visible.
GREY = (0.5, 0.5, 0.5)


class MuPdf:
    def __init__(self, path):
        self.document = pymupdf.open(path)
        self.pages = len(self.document)

    def draw(self, number):
        picture = self.document[number].get_pixmap(alpha=False)
        pixels = numpy.frombuffer(picture.samples, numpy.uint8)
        return pixels.reshape(picture.height, picture.width, 3).astype(int)


class Pdfium:
    def __init__(self, path):
        self.document = pypdfium2.PdfDocument(path)
        # PDFium draws form fields only after this call.
        self.document.init_forms()
        self.pages = len(self.document)

    def draw(self, number):
        return self.document[number].render(scale=1).to_numpy()[:, :, :3].astype(int)


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


def near(ink):
    """Returns the ink and the pixels around it."""
    grown = ink.copy()
    for axis in (0, 1):
        for step in (-2, -1, 1, 2):
            grown |= numpy.roll(ink, step, axis)
    return grown


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
                for number, x0, y0, x1, y1 in ignored:
                    if number == page + 1:
                        rows = slice(max(0, int(y0 * height) - 2), int(y1 * height) + 3)
                        columns = slice(max(0, int(x0 * width) - 2), int(x1 * width) + 3)
                        changed[rows, columns] = False
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


DO = {"compare": compare, "blank": blank, "seal": seal}

for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(DO[request["do"]](request)), flush=True)
