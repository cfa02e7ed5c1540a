// Enhances the signing form: navigation from field to field, drawing and uploading a
// signature, saving while the signer types, and messages to an embedding page.
// The form works without this script.

const body = document.body;
const form = document.getElementById("form");

/** Name of the controls that choose the style of typed signatures. */
const STYLE = "signature-style";

/** Writes an ISO date as the signed document will have it. */
function written(date) {
  const [, year, month, day] = date.match(/^(\d{4})-(\d\d)-(\d\d)$/) ?? [];
  const forms = { month_first: `${month}/${day}/${year}`, day_first: `${day}/${month}/${year}`, dotted: `${day}.${month}.${year}` };
  return (year && forms[document.querySelector(".signing").dataset.dates]) || date;
}

/** Controls with the value of a field. A chosen file is sent by a form of its own. */
function controlsOf(field) {
  return [...field.querySelectorAll("[name]")].filter((control) => !["action", STYLE].includes(control.name) && control.type !== "file");
}

const isSignature = (field) => ["signature", "initials"].includes(field.dataset.kind);

announce(body.dataset.happening);
// Unsent entries of a finished form are not needed any more.
if (!form && ["completed", "declined"].includes(body.dataset.happening)) {
  sessionStorage.removeItem(`holdfast ${location.pathname}`);
}
if (form) start(form);
const elsewhere = document.getElementById("drawing");
if (elsewhere) drawHere(elsewhere);
if (form && "unseen" in form.dataset) tellSeen();

/** Tells that the page is shown: programs that fetch links run no script, and a page that is drawn ahead is not visible. */
function tellSeen() {
  if (document.visibilityState !== "visible") {
    document.addEventListener("visibilitychange", tellSeen, { once: true });
    return;
  }
  const seen = new URLSearchParams({ action: "seen" });
  fetch(form.getAttribute("action"), { method: "POST", headers: { accept: "application/json" }, body: seen }).catch(() => {});
}

/** Draws for a form that is open on another device. */
function drawHere(form) {
  const use = form.querySelector("button[type=submit]");
  const pad = drawingPad((value) => {
    form.querySelector("[name=picture]").value = value;
    use.disabled = !value;
  }, form.dataset.field);
  use.disabled = true;
  use.before(pad.element);
  pad.fit();
}

function start(form) {
  body.classList.add("scripted");
  const steps = [...form.querySelectorAll(".step")];
  const fields = steps.filter((step) => step.classList.contains("field"));
  const last = steps.at(-1);
  const panel = document.querySelector(".panel");
  const guide = document.querySelector(".guide");
  const [back, next] = [guide.querySelector(".back"), guide.querySelector(".next")];
  const collapse = panel.querySelector(".collapse");
  const finish = form.querySelector("button[value=finish]");
  const consent = form.querySelector(".consent");
  const tick = consent.querySelector("input");
  const review = form.querySelector(".review");
  const styles = form.querySelector(".styles");
  const looks = "preview" in form.dataset ? null : drawnLooks(form, styles, refresh);
  /** Last signature and initials that the signer gave, by kind of field. */
  const adopted = {};
  let current = 0;
  /** Pages that were on the screen, where every page has to be. */
  let watched = null;
  let started = false;

  for (const field of fields) {
    const kind = field.dataset.kind;
    if ("readonly" in field.dataset) continue;
    if (isSignature(field)) offerWays(field, kind, () => adopted[kind] ?? field.dataset.prefill ?? "");
    if (kind === "checkbox" && !("required" in field.dataset)) offerElection(field);
    if (kind === "attachment") offerUpload(field, follow, refresh);
  }

  /** Value of a field as the form would submit it. */
  function valueOf(field) {
    if (field.dataset.kind === "attachment") return field.querySelector(".attached:not([hidden]) a")?.textContent ?? "";
    const controls = controlsOf(field);
    const chosen = controls.filter((control) =>
      control.type === "radio" || control.type === "checkbox" ? control.checked : control.type !== "hidden" || controls.length === 1);
    const value = chosen.at(-1)?.value ?? "";
    return field.dataset.kind === "checkbox" ? (value === "true" ? "true" : "false") : value.trim();
  }

  const isFilled = (field) => "answered" in field.dataset || !["", "false"].includes(valueOf(field));
  const isMissing = (field) => "required" in field.dataset && !field.hidden && !isFilled(field);
  const isOpen = (step) => step !== last && !step.hidden && !("readonly" in step.dataset) && !isFilled(step);

  /** Updates progress, answers, buttons and the marks on the pages. */
  function refresh() {
    const required = fields.filter((field) => "required" in field.dataset && !field.hidden);
    const done = required.filter(isFilled).length;
    document.getElementById("progress-text").textContent = text("signing-progress", { done, total: required.length });
    document.querySelector("progress").value = done;
    for (const field of fields) {
      const value = valueOf(field);
      if (isSignature(field) && value) adopted[field.dataset.kind] ??= value;
      field.showOffer?.(isFilled(field));
      showAnswer(field, value);
      for (const mark of document.querySelectorAll(`a[data-field="${field.dataset.index}"]`)) {
        mark.classList.toggle("filled", isFilled(field));
        // Of a group of radio buttons, the one of the choice is ticked.
        const { option } = mark.dataset;
        if (option === undefined) write(mark, field.dataset.kind, value);
        else write(mark, "checkbox", option === value ? "true" : "");
      }
    }
    next.textContent = nextLabel();
    body.classList.toggle("at-end", isAtEnd());
    back.classList.toggle("away", current === 0);
  }

  /** Shows what the rules of the document say about the answers so far. */
  function follow({ hidden = [], required = [], computed = {} }) {
    if (!("rules" in form.dataset)) return;
    for (const field of fields) {
      const { title: name, index } = field.dataset;
      field.hidden = hidden.includes(name);
      for (const other of document.querySelectorAll(`a[data-field="${index}"], a[data-target="${index}"], [data-answer="${index}"], dt:has(a[href="#field-${index}"])`)) {
        other.toggleAttribute("hidden", field.hidden);
      }
      field.toggleAttribute("data-required", required.includes(name));
      const word = field.querySelector(".required:not(.fixed)");
      if (word) word.hidden = !required.includes(name);
      for (const control of controlsOf(field)) {
        if (control.type !== "hidden") control.required = required.includes(name);
        if (name in computed) control.value = computed[name];
      }
    }
    refresh();
  }

  /** Whether signing is what is left to do: a wide screen has room for the optional fields beside it. */
  const isAtEnd = () => steps[current] === last || (!narrow() && !fields.some(isMissing));

  /** The signature that is all there is to do, if one tap can give it. */
  function onlySignature() {
    const open = steps.filter(isOpen);
    return !started && open.length === 1 && isMissing(open[0]) && open[0].canAdopt?.() ? open[0] : null;
  }

  function nextLabel() {
    if (onlySignature()) return form.dataset.sign;
    if (!started || isCollapsed()) return fields.some(isFilled) ? text("signing-continue") : text("signing-start");
    const step = steps[current];
    if (isMissing(step) && step.canAdopt?.()) return step.dataset.kind === "initials" ? text("mark-initial") : text("mark-sign");
    if (isOpen(step) && !isMissing(step)) return text("signing-skip");
    return nextStep() === last ? text("signing-check-and-sign") : text("signing-next");
  }

  function showAnswer(field, value) {
    const answer = form.querySelector(`[data-answer="${field.dataset.index}"]`);
    if (!answer) return;
    if (value.startsWith("data:")) {
      answer.replaceChildren(picture(value));
    } else if (field.dataset.kind === "checkbox") {
      const no = isFilled(field) ? text("no") : text("signing-not-answered");
      answer.textContent = value === "true" ? text("yes") : no;
    } else {
      const shown = document.createElement("span");
      shown.className = value ? (isSignature(field) ? "script" : "") : "empty";
      shown.textContent = (field.dataset.kind === "date" ? written(value) : value) || text("signing-not-filled-in");
      answer.replaceChildren(shown);
    }
  }

  /** Draws a value at its place on the page. */
  function write(mark, kind, value) {
    mark.querySelectorAll("text:not(.label), image").forEach((old) => old.remove());
    if (!value || value === "false") return;
    const box = mark.querySelector("rect");
    const at = (name) => Number(box.getAttribute(name));
    const [x, y, width, height] = ["x", "y", "width", "height"].map(at);
    const element = (name, attributes) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      mark.append(made);
      return made;
    };
    if (value.startsWith("data:")) {
      element("image", { href: value, x, y, width, height });
      return;
    }
    const look = looks?.of(mark.dataset.field, kind, value);
    if (look) {
      element("image", { href: look, x, y, width, height, preserveAspectRatio: "none" });
      return;
    }
    // Until the picture is there, and where there is no server to ask.
    if (kind === "signature" || kind === "initials") {
      signAt(element("text", { class: "script", "font-size": 100 }), value, { x, y, width, height });
      return;
    }
    const size = Math.min(height * 0.7, 14);
    const line = element("text", { x: x + 3, y: y + height / 2 + size * 0.35, "font-size": size });
    line.textContent = kind === "checkbox" ? "✓" : kind === "date" ? written(value) : value;
    if (line.getComputedTextLength() > width - 6) {
      line.setAttribute("textLength", Math.max(width - 6, 1));
      line.setAttribute("lengthAdjust", "spacingAndGlyphs");
    }
  }

  /** Sets a typed signature much as the document will have it, until the server's picture of it is there. */
  function signAt(line, name, { x, y, width, height }) {
    const style = styles.querySelector("input:checked");
    const [ascent, descent] = [Number(style.dataset.ascent), Number(style.dataset.descent)];
    line.textContent = name;
    const em = line.getComputedTextLength() / 100 || 1;
    const size = Math.min((height * 0.8) / (ascent + descent), 28, (width * 0.94) / em);
    const place = { x: x + width * 0.03, y: y + height * 0.95 - Math.min(descent * size, height * 0.3), "font-size": size };
    for (const [key, number] of Object.entries(place)) line.setAttribute(key, number);
    // The width is known once the font is loaded.
    const font = `20px "hand ${style.value}"`;
    if (!asked.has(font)) {
      asked.add(font);
      document.fonts.load(font, name).then(refresh, () => {});
    }
  }
  const asked = new Set();

  styles?.addEventListener("change", showStyle);
  function showStyle() {
    document.querySelector(".signing").dataset.hand = styles.querySelector("input:checked").value;
    refresh();
  }

  const narrow = () => !window.matchMedia("(min-width: 60rem)").matches;
  const isCollapsed = () => narrow() && !body.classList.contains("sheet-open");

  /** Next field without a value, optional ones included; then a required one that was passed
      over; then the end. */
  function nextStep() {
    return steps.slice(current + 1).find(isOpen) ?? fields.find((field, index) => index < current && isMissing(field)) ?? last;
  }

  /** Makes a step the current one without scrolling: a button may be pressed at this moment. */
  function mark(step) {
    current = steps.indexOf(step);
    // A click that goes to another step wins over the focus that the same press had set.
    entered = null;
    if (isSignature(step)) step.append(styles);
    offerAll(step);
    for (const other of steps) other.classList.toggle("current", other === step);
    for (const mark of document.querySelectorAll(".sheet a")) {
      mark.classList.toggle("current", mark.dataset.field === step.dataset.index);
    }
    refresh();
  }

  const all = Object.assign(document.createElement("button"), { type: "button", className: "quiet all" });
  const openInitials = () => fields.filter((field) => field.dataset.kind === "initials" && isMissing(field) && field.canAdopt?.());
  all.addEventListener("click", () => {
    for (const field of openInitials()) field.adopt();
    go(nextStep());
  });

  /** Offers to give the initials of all places at once. */
  function offerAll(step) {
    const count = step.dataset.kind === "initials" ? openInitials().length : 0;
    if (count > 1) step.append(all); else all.remove();
    all.textContent = text("signing-initial-all", { count });
  }

  /** Shows a step: its place in the document, and its control. */
  function go(step, focus = true) {
    started = true;
    body.classList.add("sheet-open");
    mark(step);
    if (step === last) review.open = true;
    fit();
    const place = document.querySelector(".sheet a.current");
    if (place?.checkVisibility()) {
      const box = place.getBoundingClientRect();
      const visible = window.innerHeight - (narrow() ? panel.offsetHeight : 0);
      window.scrollTo({ top: window.scrollY + box.top - Math.max(visible, 80) / 2 });
    }
    if (focus) {
      const control = step.querySelector("input:not([type=hidden]), select, textarea, button, summary");
      control?.focus({ preventScroll: true });
    }
    form.scrollTo({ top: narrow() ? 0 : step.offsetTop - form.offsetTop });
  }

  /** Leaves the document alone on the screen, with the bar below it. */
  function showDocument() {
    body.classList.remove("sheet-open");
    refresh();
    fit();
    next.focus({ preventScroll: true });
  }

  /** Fits the panel to the part of the window that a keyboard leaves free. */
  function fit() {
    const view = window.visualViewport;
    const zoomed = view && view.scale > 1.01;
    const height = view && !zoomed ? view.height : window.innerHeight;
    const below = view && !zoomed ? Math.max(window.innerHeight - view.height - view.offsetTop, 0) : 0;
    panel.style.setProperty("--room", `${height}px`);
    panel.style.bottom = narrow() ? `${below}px` : "";
    panel.style.maxHeight = narrow() ? "" : `${window.innerHeight - panel.getBoundingClientRect().top - 16}px`;
  }
  // The tick and the button that signs stand in the bar, which is always visible.
  for (const control of [tick, finish]) control.setAttribute("form", form.id);
  guide.append(consent, finish);
  finish.addEventListener("click", (event) => {
    const missing = fields.find(isMissing);
    const unshown = watched?.unshown();
    if (!missing && !unshown && tick.checked) return;
    event.preventDefault();
    if (missing) {
      showProblem(missing, text("problem-required"), true);
      go(missing);
    } else if (unshown) {
      showDocument();
      unshown.scrollIntoView();
      say(text("problem-page-unshown", { limit: unshown.dataset.page }), true);
    } else {
      showConsentProblem(text("problem-consent"));
      tick.focus();
    }
  });
  tick.addEventListener("change", () => tick.checked && showConsentProblem());
  tick.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());

  /** Shows or removes what is wrong with the consent. */
  function showConsentProblem(why) {
    consent.querySelector(".problem")?.remove();
    consent.classList.toggle("invalid", Boolean(why));
    if (!why) {
      tick.removeAttribute("aria-invalid");
      forgetProblem("#consent");
      return;
    }
    consent.append(Object.assign(document.createElement("p"), { className: "problem", id: "consent-problem", textContent: why }));
    tick.setAttribute("aria-invalid", "true");
    tick.setAttribute("aria-describedby", "consent-problem");
  }

  window.addEventListener("scroll", fit, { passive: true });
  window.addEventListener("resize", () => { fit(); refresh(); });
  window.visualViewport?.addEventListener("resize", fit);

  /** Signs a field with what the signer gave before, or with their name. */
  function adopt(field) {
    field.adopt();
    if (isCollapsed()) mark(field); else go(nextStep());
  }

  function advance() {
    const step = steps[current];
    const only = onlySignature();
    if (only) {
      // The end shows the signature, and how to change it.
      only.adopt();
      return go(last);
    }
    if ((!started || isCollapsed()) && (step === last || isOpen(step))) return go(step);
    if (step !== last && isMissing(step) && step.canAdopt?.()) return adopt(step);
    if (step !== last && isMissing(step)) {
      showProblem(step, text("problem-required"), true);
      return go(step);
    }
    return go(nextStep());
  }
  next.addEventListener("click", async () => {
    // Whether an answer is right, and what comes next, is known once it is saved.
    if ("rules" in form.dataset) await saved?.settle();
    const isWrong = "rules" in form.dataset && steps[current].matches(".invalid") && isFilled(steps[current]);
    if (isWrong && !isCollapsed()) go(steps[current]); else advance();
  });
  back.addEventListener("click", () => go(steps.slice(0, current).findLast((step) => !step.hidden) ?? steps[current]));
  collapse.addEventListener("click", showDocument);
  form.addEventListener("keydown", (event) => {
    // Enter goes on, as the key's label on a phone says. It never signs by accident.
    const control = event.target;
    if (event.key !== "Enter" || event.isComposing || control.tagName !== "INPUT" || control.type === "file") return;
    event.preventDefault();
    if (control.closest(".step") !== last) next.click();
  });
  // The bar grows at the end. While a pointer is down, that would move what it is about to click.
  let pressed = false;
  let entered = null;
  document.addEventListener("pointerdown", () => { pressed = true; }, true);
  for (const end of ["pointerup", "pointercancel"]) {
    document.addEventListener(end, () => setTimeout(() => {
      pressed = false;
      if (entered && steps.indexOf(entered) !== current) mark(entered);
      entered = null;
    }), true);
  }
  form.addEventListener("focusin", (event) => {
    const step = event.target.closest(".step");
    if (!step) return;
    started = true;
    if (pressed) entered = step;
    else if (steps.indexOf(step) !== current) mark(step);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#field-'], a[href='#consent'], a[href='#reason']");
    if (!link) return;
    event.preventDefault();
    const index = link.getAttribute("href").match(/^#field-(\d+)$/)?.[1];
    const field = fields[Number(index)];
    // A tap on a mark signs at once, after the signer has given a signature of this kind.
    if (link.closest(".sheet") && field?.canAdopt?.() && adopted[field.dataset.kind]) return adopt(field);
    go(field ?? last);
    if (link.getAttribute("href") === "#consent") tick.focus();
  });

  form.addEventListener("input", (event) => {
    const field = event.target.closest(".field");
    if (field && isSignature(field) && valueOf(field)) adopted[field.dataset.kind] = valueOf(field);
    // The answer of the next save says whether something else is wrong.
    if (field?.matches(".invalid") && !isMissing(field)) showProblem(field, "", true);
  });
  form.addEventListener("click", (event) => {
    if (event.target.matches(".use")) adopt(event.target.closest(".field"));
  });
  let saved;
  if ("preview" in form.dataset) saved = onlyShow(form, fields, valueOf, follow, refresh);
  else saved = keepSaved(form, fields, valueOf, follow, refresh, showStyle);
  showPictures();
  if (!("preview" in form.dataset)) addThumbnails();
  watched = watchPages(form, () => narrow() && !isCollapsed());
  countPages();
  showText();
  offerReading();
  guide.hidden = false;
  collapse.hidden = false;
  const wrong = form.querySelector(".step.invalid") ?? (form.querySelector(".problems") && last);
  if (wrong) {
    go(wrong, narrow());
    if (!narrow()) document.querySelector(".problems")?.focus();
  } else {
    // The document is read from its beginning; the form opens when the signer starts.
    mark(steps.find(isOpen) ?? last);
  }
  if (review.open && !wrong) go(last, false);
  fit();
}

/** Pictures of entries as the document will have them, which the server draws. */
function drawnLooks(form, styles, refresh) {
  const KEPT = 2000;
  const BACK_OFF = 5000;
  const PAUSE = 250;
  const address = `${form.getAttribute("action")}/look`;
  const pictures = new Map();
  const wanted = new Map();
  let timer = 0;

  /** Picture of an entry; none until it is there. */
  function of(index, kind, value) {
    if (kind === "checkbox" || !value) return null;
    const style = kind === "signature" || kind === "initials" ? styles?.querySelector("input:checked")?.value ?? "" : "";
    const key = JSON.stringify([index, style, value]);
    if (pictures.has(key)) return pictures.get(key);
    // Only what is still on the page after a pause is asked for.
    wanted.set(index, { key, index, style, value });
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
    return null;
  }

  async function ask() {
    const asked = [...wanted.values()];
    wanted.clear();
    for (const { key, index, style, value } of asked) {
      if (pictures.has(key)) continue;
      // A refusal is told when the entry is saved.
      pictures.set(key, null);
      const body = new URLSearchParams({ field: index, value, style });
      const answer = await fetch(address, { method: "POST", body }).catch(() => null);
      if (!answer || [429, 503].includes(answer.status)) {
        setTimeout(() => pictures.delete(key), BACK_OFF);
        continue;
      }
      if (answer.ok) pictures.set(key, URL.createObjectURL(await answer.blob()));
    }
    while (pictures.size > KEPT) {
      const [oldest, picture] = pictures.entries().next().value;
      if (picture) URL.revokeObjectURL(picture);
      pictures.delete(oldest);
    }
    if (asked.length) refresh();
  }
  return { of };
}

/** Visible words of a label. */
function wordsOf(label) {
  const copy = label.cloneNode(true);
  copy.querySelectorAll("[hidden]").forEach((part) => part.remove());
  return copy.textContent.trim();
}

/** Asks Yes or No instead of showing a box that means No when it is passed over. */
function offerElection(field) {
  const box = field.querySelector("input[type=checkbox]");
  const label = box.closest("label");
  const question = Object.assign(document.createElement("p"), { className: "label", id: `${box.id}-question` });
  question.textContent = wordsOf(label);
  const group = document.createElement("div");
  group.className = "ways election";
  group.setAttribute("role", "radiogroup");
  group.setAttribute("aria-labelledby", question.id);
  const choices = [[text("yes"), true], [text("no"), false]].map(([words, yes]) => {
    const choice = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "radio" });
    // Without a name it is not submitted, so the two are kept exclusive here.
    input.addEventListener("change", () => answer(yes));
    choice.append(input, ` ${words}`);
    group.append(choice);
    return { input, yes };
  });

  function show() {
    const isAnswered = "answered" in field.dataset;
    for (const { input, yes } of choices) input.checked = isAnswered && box.checked === yes;
  }
  function answer(yes) {
    box.checked = yes;
    field.dataset.answered = "";
    show();
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.dispatchEvent(new Event("change", { bubbles: true }));
  }
  /** Takes a value from before a reload. */
  field.give = (value) => {
    box.checked = value === "true";
    field.dataset.answered = "";
    show();
  };
  label.hidden = true;
  label.before(question, group);
  if (box.checked) field.dataset.answered = "";
  show();
}

/** Offers typing, drawing and uploading for a signature field, and what `proposal` returns. */
function offerWays(field, kind, proposal) {
  const typed = field.querySelector("input.script");
  const kept = field.querySelector("input[type=hidden]");
  const again = field.querySelector("button[value^='clear:']");
  const name = (typed ?? kept).name;
  const label = field.querySelector("label, .label");
  const holder = kept ?? Object.assign(document.createElement("input"), { type: "hidden" });
  if (!kept) field.append(holder);
  const shown = field.querySelector("img.drawn") ?? picture("");
  const input = typed ?? Object.assign(document.createElement("input"), {
    type: "text", className: "script", maxLength: 200,
  });
  input.placeholder = field.dataset.prefill || input.placeholder;
  const use = Object.assign(document.createElement("button"), { type: "button", className: "use quiet" });
  if (!typed) {
    input.id = `field-${field.dataset.index}-typed`;
    input.setAttribute("aria-labelledby", label.id);
    field.append(input);
  }
  again?.remove();

  /** Takes a typed or a drawn value; only one of the two is submitted. */
  function take(value) {
    const drawn = value.startsWith("data:");
    holder.value = drawn ? value : "";
    if (drawn) holder.setAttribute("name", name); else holder.removeAttribute("name");
    if (drawn) input.removeAttribute("name"); else input.setAttribute("name", name);
    shown.src = drawn ? value : "";
    // A drawing that is visible on the pad is not shown a second time.
    shown.hidden = !drawn || !pad.element.hidden;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  const pad = drawingPad((value) => {
    phone?.stop();
    take(value);
  }, wordsOf(label));
  const phone = offerPhone(field, name, (value) => {
    field.give(value);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });
  if (phone) pad.element.append(phone.element);
  const upload = uploadControl(take, wordsOf(label));
  const parts = { type: input, draw: pad.element, upload };
  const names = { type: text("signing-type"), draw: text("signing-draw"), upload: text("signing-upload") };
  const ways = document.createElement("div");
  ways.className = "ways";
  ways.setAttribute("role", "group");
  ways.setAttribute("aria-label", text("signing-how-to-give", { field: wordsOf(label) }));
  const buttons = Object.keys(parts).map((way) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: names[way] });
    button.dataset.way = way;
    button.addEventListener("click", () => choose(way));
    ways.append(button);
    return button;
  });

  let typed_ = "";

  const chosen = () => buttons.find((button) => button.getAttribute("aria-pressed") === "true")?.dataset.way;

  /** Shows one way; its value is the one that is submitted. */
  function choose(way, focus = true) {
    const before = chosen();
    if (before === "type" && way !== "type") typed_ = input.value;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.way === way));
    for (const [other, part] of Object.entries(parts)) part.hidden = other !== way;
    if (way === before) return;
    phone?.stop();
    input.value = way === "type" ? typed_ : "";
    if (way === "draw") {
      pad.fit();
      if (focus) pad.element.scrollIntoView({ block: "nearest" });
    }
    if (focus) take(way === "draw" ? pad.drawn() : "");
    if (way === "type" && focus) input.focus();
    shown.hidden = !holder.value || way === "draw";
  }

  /** Takes a value from before a reload. */
  field.give = (value) => {
    if (value.startsWith("data:")) {
      show(value);
    } else {
      typed_ = value;
      choose("type", false);
      holder.value = "";
      holder.removeAttribute("name");
      input.setAttribute("name", name);
      input.value = value;
    }
  };

  /** Whether one tap can sign: nothing is entered, and no other way was begun. */
  field.canAdopt = () => {
    return Boolean(proposal()) && !input.value && !holder.value && (chosen() ?? "type") === "type";
  };

  /** Takes the proposed signature. */
  field.adopt = () => {
    field.give(proposal());
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
  };

  /** Offers the proposal for an optional field; for a required one, the guide's button does. */
  field.showOffer = (isFilled) => {
    use.hidden = isFilled || "required" in field.dataset || !field.canAdopt();
    const given = proposal();
    use.textContent = given.startsWith("data:") ? text("signing-use-mine")
      : kind === "initials" ? text("signing-initial-as", { name: given }) : text("signing-sign-as", { name: given });
  };

  /** Shows a saved picture; none of the three ways is chosen. */
  function show(value) {
    holder.value = value;
    holder.setAttribute("name", name);
    input.removeAttribute("name");
    shown.src = value;
    shown.hidden = false;
    for (const part of Object.values(parts)) part.hidden = true;
    for (const button of buttons) button.setAttribute("aria-pressed", "false");
  }

  label.after(use, ways);
  ways.after(pad.element, upload);
  upload.after(shown);
  if (holder.value) {
    show(holder.value);
  } else {
    typed_ = input.value;
    holder.removeAttribute("name");
    shown.hidden = true;
    choose("type", false);
  }
}

/** Shows a QR code for the phone, and takes the drawing that the phone hands in. */
function offerPhone(field, name, take) {
  const PERIOD = 2000;
  const button = field.querySelector("button.phone");
  if (!button) return null;
  const form = document.getElementById("form");
  const address = form.getAttribute("action");
  const element = document.createElement("div");
  const shown = Object.assign(document.createElement("div"), { hidden: true });
  const words = document.createElement("p");
  const link = Object.assign(document.createElement("a"), { target: "_blank", rel: "noreferrer" });
  const code = Object.assign(document.createElement("img"), { className: "qr", alt: text("signing-phone-code") });
  words.setAttribute("role", "status");
  link.append(code);
  shown.append(words, link);
  element.append(button, shown);
  /** Number of the newest code: answers about an earlier one are dropped. */
  let turn = 0;
  let timer = 0;

  function stop() {
    turn += 1;
    clearTimeout(timer);
    shown.hidden = true;
  }

  async function ask(own) {
    const body = new URLSearchParams({ action: button.value });
    const answer = await fetch(address, { method: "POST", headers: { accept: "application/json" }, body }).catch(() => null);
    const isCode = answer?.ok && answer.headers.get("content-type")?.includes("json");
    const offered = isCode ? await answer.json() : null;
    if (own !== turn) return;
    if (!offered) {
      say(text("signing-phone-failed"), true);
      return;
    }
    code.src = offered.code;
    link.href = offered.address;
    words.textContent = text("signing-phone-scan", { minutes: Math.floor(offered.seconds / 60) });
    shown.hidden = false;
    const until = Date.now() + offered.seconds * 1000;
    timer = setTimeout(() => look(own, until), PERIOD);
  }

  async function look(own, until) {
    const answer = await fetch(`${address}/drawing`, { headers: { accept: "application/json" } }).catch(() => null);
    const isState = answer?.ok && answer.headers.get("content-type")?.includes("json");
    const found = isState ? await answer.json().catch(() => ({})) : {};
    if (own !== turn) return;
    // Another tab may have asked for a code of its own, which ends this one.
    if (found.state === "drawn" && found.field === name && found.value) {
      stop();
      take(found.value);
    } else if (["drawn", "ended"].includes(found.state) || Date.now() > until) {
      stop();
      say(text("signing-phone-ended"), true);
    } else {
      timer = setTimeout(() => look(own, until), PERIOD);
    }
  }

  button.addEventListener("click", (event) => {
    // A preview says that nothing is saved.
    if ("preview" in form.dataset) return;
    event.preventDefault();
    stop();
    ask(turn);
  });
  return { element, stop };
}

/** Sends a chosen file at once, and shows its name. */
function offerUpload(field, follow, refresh) {
  const input = field.querySelector("input[type=file]");
  const shown = field.querySelector(".attached");
  field.querySelector(".attach").hidden = true;
  input.hidden = false;
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (!file) return;
    const form = document.getElementById(input.getAttribute("form"));
    say(text("signing-saving"));
    try {
      const answer = await fetch(form.action, { method: "POST", headers: { accept: "application/json" }, body: new FormData(form) });
      const saved = await answer.json();
      const { name, problems } = saved;
      if (!problems) throw new Error(`answered ${answer.status}`);
      showProblem(field, problems[field.dataset.title], true);
      if (name) {
        const link = shown.querySelector("a") ?? document.createElement("a");
        link.dir = "auto";
        link.textContent = name;
        shown.prepend(link);
        link.removeAttribute("href");
        shown.hidden = false;
        follow(saved);
      }
      say(name ? text("signing-saved") : "");
    } catch {
      say(text("attachment-failed"), true);
    }
    input.value = "";
    refresh();
  });
}

function picture(url) {
  return Object.assign(document.createElement("img"), { className: "drawn", src: url, alt: text("signing-your-signature") });
}

/** Creates a drawing area; passes a transparent PNG to `take` after each stroke. */
function drawingPad(take, name) {
  const element = document.createElement("div");
  element.innerHTML = '<div class="pad"><canvas role="img" tabindex="-1"></canvas></div><div class="pad-tools"><span></span><button class="quiet" type="button"></button></div>';
  element.querySelector("span").textContent = text("signing-draw-hint");
  element.querySelector("button").textContent = text("signing-clear");
  const canvas = element.querySelector("canvas");
  canvas.setAttribute("aria-label", text("signing-drawing-area", { field: name }));
  const ink = canvas.getContext("2d");
  let strokes = [];
  let stroke = null;

  function fit() {
    const box = canvas.getBoundingClientRect();
    const scale = Math.max(window.devicePixelRatio || 1, 2);
    canvas.width = box.width * scale;
    canvas.height = box.height * scale;
    draw();
  }

  /** Smooth lines through the middle of each pair of points; a slow pen is thicker. */
  function draw() {
    const scale = canvas.width / canvas.getBoundingClientRect().width || 1;
    ink.setTransform(scale, 0, 0, scale, 0, 0);
    ink.clearRect(0, 0, canvas.width, canvas.height);
    ink.lineCap = ink.lineJoin = "round";
    ink.strokeStyle = ink.fillStyle = "#10203f";
    for (const points of strokes) {
      if (points.length === 1) {
        ink.beginPath();
        ink.arc(points[0].x, points[0].y, 1.6, 0, 7);
        ink.fill();
      }
      for (let index = 1; index < points.length; index += 1) {
        const [before, from, to] = [points[index - 2] ?? points[index - 1], points[index - 1], points[index]];
        const speed = Math.hypot(to.x - from.x, to.y - from.y) / Math.max(to.at - from.at, 1);
        ink.lineWidth = Math.max(1.4, 3.2 - speed);
        ink.beginPath();
        ink.moveTo((before.x + from.x) / 2, (before.y + from.y) / 2);
        ink.quadraticCurveTo(from.x, from.y, (from.x + to.x) / 2, (from.y + to.y) / 2);
        ink.stroke();
      }
    }
  }

  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, at: event.timeStamp };
  };
  window.addEventListener("resize", () => canvas.offsetParent && fit());
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    stroke = [point(event)];
    strokes.push(stroke);
    draw();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!stroke) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const each of events.length ? events : [event]) stroke.push(point(each));
    draw();
  });
  const end = () => {
    if (!stroke) return;
    stroke = null;
    take(trimmed(canvas));
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  element.querySelector("button").addEventListener("click", () => {
    strokes = [];
    draw();
    take("");
  });
  return { element, fit, drawn: () => (strokes.length ? trimmed(canvas) : "") };
}

/** Returns the drawing as a PNG without the empty space around it. */
function trimmed(canvas) {
  const { width, height } = canvas;
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  let [left, top, right, bottom] = [width, height, 0, 0];
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      if (pixels[(y * width + x) * 4 + 3] === 0) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
  }
  if (right < left) return "";
  const made = document.createElement("canvas");
  made.width = right - left + 9;
  made.height = bottom - top + 9;
  made.getContext("2d").drawImage(canvas, 4 - left, 4 - top);
  return made.toDataURL("image/png");
}

/** Creates an upload control that scales a picture of a signature down. */
function uploadControl(take, name) {
  const element = document.createElement("label");
  element.className = "drop";
  element.append(text("signing-choose-picture"));
  const input = Object.assign(document.createElement("input"), { type: "file", accept: "image/png,image/jpeg" });
  input.setAttribute("aria-label", text("signing-picture", { field: name }));
  element.append(document.createElement("br"), input);
  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (!file) return;
    try {
      const image = await createImageBitmap(file);
      const scale = Math.min(1, 900 / image.width, 400 / image.height);
      const canvas = document.createElement("canvas");
      canvas.width = Math.max(1, Math.round(image.width * scale));
      canvas.height = Math.max(1, Math.round(image.height * scale));
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      const png = canvas.toDataURL("image/png");
      take(png.length < 380_000 ? png : canvas.toDataURL("image/jpeg", 0.85));
    } catch {
      say(text("signing-picture-unreadable"), true);
    }
  });
  return element;
}

function say(words, wrong = false) {
  const place = document.querySelector(".saved");
  place.textContent = words;
  place.classList.toggle("offline", wrong);
}

/** Lets the author of a document try its form, without anything being saved or signed. */
function onlyShow(form, fields, valueOf, follow, refresh) {
  const nameOf = (field) => controlsOf(field)[0]?.name;
  const changed = new Set();
  let asked = 0;
  /** Shows what the rules say: the builder around this page asks the server. */
  async function settle() {
    const judge = window.frameElement?.judge;
    if (!judge || !("rules" in form.dataset)) return;
    const turn = ++asked;
    const named = fields.filter(nameOf);
    const judged = await judge(Object.fromEntries(named.map((field) => [nameOf(field), valueOf(field)])));
    if (!judged || turn !== asked) return;
    for (const field of fields) showProblem(field, judged.problems[nameOf(field)], changed.has(field));
    follow(judged);
  }
  form.addEventListener("input", (event) => {
    changed.add(event.target.closest(".field"));
    refresh();
  });
  form.addEventListener("change", settle);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("button[type=submit]")) return;
    event.preventDefault();
    say(text("signing-preview"));
  });
  refresh();
  return { settle };
}

/** Saves changed values, also after a lost connection or a reload. */
function keepSaved(form, fields, valueOf, follow, refresh, showStyle) {
  // The buttons are named `action`, which hides the form's property of that name.
  const address = form.getAttribute("action");
  const key = `holdfast ${address}`;
  const pending = new Map(JSON.parse(sessionStorage.getItem(key) ?? "[]"));
  const nameOf = (field) => controlsOf(field)[0]?.name;
  const FIRST_WAIT = 3000;
  let wait = FIRST_WAIT;
  let timer = 0;
  let sending = null;
  let leaving = false;
  /** Whether a page that may replace this one is on its way. */
  let replaced = false;

  for (const field of fields) {
    const value = pending.get(nameOf(field));
    if (value !== undefined) (field.give ?? ((given) => restore(field, given)))(value);
  }
  const style = [...form.querySelectorAll(`[name=${STYLE}]`)].find((choice) => choice.value === pending.get(STYLE));
  if (style) {
    style.checked = true;
    showStyle();
  }

  function remember() {
    try {
      if (pending.size) sessionStorage.setItem(key, JSON.stringify([...pending]));
      else sessionStorage.removeItem(key);
    } catch {
      // The storage is full or disabled: only saved values survive a reload.
    }
  }

  async function save() {
    clearTimeout(timer);
    if (sending || !pending.size || leaving) return;
    const sent = [...pending];
    say(text("signing-saving"));
    sending = fetch(address, {
      method: "POST",
      headers: { accept: "application/json" },
      body: new URLSearchParams([...sent, ["action", "save"]]),
    });
    try {
      const answer = await sending;
      const contentType = answer.headers.get("content-type") ?? "";
      if (contentType.includes("html") && [200, 404, 409, 410].includes(answer.status)) {
        // The form was signed, closed or expired in the meantime.
        sessionStorage.removeItem(key);
        location.reload();
        return;
      }
      if (!answer.ok || !contentType.includes("json")) throw new Error(`answered ${answer.status}`);
      const saved = await answer.json();
      const { problems } = saved;
      wait = FIRST_WAIT;
      if (replaced) {
        // The next page may be older than this answer: it gets the values from the storage.
        sending = null;
        return;
      }
      for (const [name, value] of sent) if (pending.get(name) === value) pending.delete(name);
      remember();
      for (const field of fields) showProblem(field, problems[nameOf(field)], sent.some(([name]) => name === nameOf(field)));
      follow(saved);
      say(Object.keys(problems).length ? "" : text("signing-saved"));
      sending = null;
      if (pending.size) timer = setTimeout(save, 300);
    } catch {
      sending = null;
      say(text("signing-offline"), true);
      timer = setTimeout(save, wait);
      wait = Math.min(wait * 2, 60000);
    }
  }

  form.addEventListener("input", (event) => {
    const field = event.target.closest(".field");
    refresh();
    if (event.target.name === STYLE) pending.set(STYLE, event.target.value);
    else if (!field || !nameOf(field)) return;
    else pending.set(nameOf(field), valueOf(field));
    remember();
    clearTimeout(timer);
    timer = setTimeout(save, 600);
  });
  form.addEventListener("change", () => setTimeout(save, 0));
  window.addEventListener("online", save);
  window.addEventListener("beforeunload", () => {
    replaced = true;
    // A download leaves this page open.
    setTimeout(() => {
      replaced = false;
      save();
    }, 3000);
  });
  document.addEventListener("visibilitychange", () => document.hidden && save());
  form.addEventListener("submit", (event) => {
    if (!navigator.onLine) {
      event.preventDefault();
      say(text("signing-offline-finish"), true);
      return;
    }
    leaving = true;
    clearTimeout(timer);
    const buttons = (disabled) => [...form.elements].filter((control) => control.type === "submit").forEach((button) => { button.disabled = disabled; });
    // A disabled button would not be submitted, so disabling waits for the submission.
    setTimeout(() => buttons(true));
    // The page is still open: the connection failed, or the signer came back.
    const stay = () => {
      leaving = false;
      buttons(false);
      if (pending.size) save();
    };
    setTimeout(stay, 15000);
    window.addEventListener("pageshow", (event) => event.persisted && stay(), { once: true });
  });
  refresh();
  if (pending.size) save();

  /** Waits until the answers so far are saved, or cannot be. */
  async function settle() {
    while (sending || (pending.size && navigator.onLine)) {
      const before = [...pending].join();
      await save();
      if (!sending && before === [...pending].join()) return;
      if (sending) await new Promise((resume) => setTimeout(resume, 50));
    }
  }
  return { settle };
}

function restore(field, value) {
  for (const control of controlsOf(field)) {
    if (control.type === "radio" || control.type === "checkbox") control.checked = control.value === value;
    else if (control.type !== "hidden") control.value = value;
  }
}

function showProblem(field, why, wasSent) {
  if (!wasSent) return;
  const id = `field-${field.dataset.index}-problem`;
  document.getElementById(id)?.remove();
  field.classList.toggle("invalid", Boolean(why));
  const control = controlsOf(field).find((candidate) => candidate.type !== "hidden");
  if (!why) {
    control?.removeAttribute("aria-invalid");
    forgetProblem(`#field-${field.dataset.index}`);
    return;
  }
  field.append(Object.assign(document.createElement("p"), { className: "problem", id, textContent: why }));
  control?.setAttribute("aria-invalid", "true");
  control?.setAttribute("aria-describedby", id);
}

/** Removes a problem from the list above the fields. */
function forgetProblem(link) {
  const list = document.querySelector(".problems");
  list?.querySelector(`li:has(a[href="${link}"])`)?.remove();
  if (list && !list.querySelector("li")) list.remove();
}

/** Asks again for the picture of a page that did not load: the server may be busy for a moment. */
document.addEventListener("error", ({ target }) => {
  if (!target.matches?.("figure[data-page] img")) return;
  const tries = Number(target.dataset.tries ?? 0) + 1;
  target.dataset.tries = tries;
  if (tries === 5) say(text("builder-page-not-shown"), true);
  else if (tries < 5) setTimeout(() => { target.srcset = target.getAttribute("srcset"); }, 1500 * tries);
}, true);

/** Shows the picture of a page when it comes near. */
function showPictures() {
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      target.srcset = target.dataset.srcset;
      target.src = target.dataset.src;
    }
  }, { rootMargin: "50%" });
  for (const image of document.querySelectorAll("img[data-src]")) near.observe(image);
}

/** Adds small pictures to the list of the pages when they come near in it. */
function addThumbnails() {
  const WIDTH = 96;
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      target.src = target.dataset.small;
    }
  }, { rootMargin: "100px" });
  for (const link of document.querySelectorAll(".thumbs a")) {
    const page = document.querySelector(`${link.getAttribute("href")} img`);
    const height = Math.round(WIDTH * page.getAttribute("height") / page.getAttribute("width"));
    // The words beside it name the page.
    const image = Object.assign(document.createElement("img"), { alt: "", width: WIDTH, height });
    image.dataset.small = page.dataset.src ?? page.getAttribute("src");
    link.prepend(image);
    near.observe(image);
  }
}

/** Tells the server which pages were on the screen, if every page has to be. `isCovered` is whether the form hides them. */
function watchPages(form, isCovered) {
  const control = form.querySelector("[name=displayed-pages]");
  if (!control) return null;
  const LOOK = 500;
  const figures = [...document.querySelectorAll("figure[data-page]")];
  const numberOf = (figure) => Number(figure.dataset.page);
  // The 0 says that this script watches, also before the first page.
  const displayed = new Set([0, ...control.dataset.before.split(",").filter(Boolean).map(Number)]);
  const inView = new Set();
  control.value = [...displayed].join();

  const observer = new IntersectionObserver((entries) => {
    for (const { target, intersectionRatio, intersectionRect } of entries) {
      // A page that is larger than the window is on the screen when it fills half of it.
      const isShown = intersectionRatio >= .5 || intersectionRect.height >= window.innerHeight / 2;
      if (isShown) inView.add(target); else inView.delete(target);
    }
  }, { threshold: Array.from({ length: 21 }, (_, step) => step / 20) });
  for (const figure of figures) observer.observe(figure);

  const unshown = () => figures.find((figure) => !displayed.has(numberOf(figure)));
  // Again and again, because pictures and texts arrive after their page.
  const timer = setInterval(() => {
    if (document.hidden || isCovered()) return;
    const isReadable = (figure) => figure.querySelector(".text") || figure.querySelector("img").naturalWidth > 0;
    const fresh = [...inView].filter((figure) => !displayed.has(numberOf(figure)) && isReadable(figure));
    if (!fresh.length) return;
    for (const figure of fresh) displayed.add(numberOf(figure));
    control.value = [...displayed].join();
    // The form sends the same list at the end, so a lost report delays only the recorded time.
    const report = new URLSearchParams({ action: "displayed", [control.name]: control.value });
    fetch(form.getAttribute("action"), { method: "POST", headers: { accept: "application/json" }, body: report }).catch(() => {});
    if (!unshown()) clearInterval(timer);
  }, LOOK);
  return { unshown };
}

/** Says which page of a document of several is on the screen. */
function countPages() {
  const pages = [...document.querySelectorAll("figure[data-page]")];
  if (pages.length < 2) return;
  const counter = Object.assign(document.createElement("p"), { className: "counter" });
  counter.setAttribute("aria-hidden", "true");
  counter.append(document.createElement("span"));
  document.querySelector("section.document").prepend(counter);
  // The page at the middle of the window.
  const middle = new IntersectionObserver((entries) => {
    const at = entries.find(({ isIntersecting }) => isIntersecting);
    if (at) counter.firstChild.textContent = at.target.querySelector("img").alt;
  }, { rootMargin: "-50% 0px" });
  for (const page of pages) middle.observe(page);
}

/** Offers the text of the pages in a size that fits the screen, instead of their pictures. */
function offerReading() {
  const button = document.querySelector(".reading-view");
  if (!button) return;
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      read(target);
    }
  }, { rootMargin: "100%" });
  async function read(figure) {
    const link = figure.querySelector("figcaption a");
    const answer = link && await fetch(link.getAttribute("href")).catch(() => null);
    const shown = document.createElement("p");
    shown.className = "text";
    shown.dir = "auto";
    shown.textContent = !link ? text("signing-no-text") : answer?.ok ? await answer.text() : text("signing-text-failed");
    figure.prepend(shown);
  }
  button.hidden = false;
  button.addEventListener("click", () => {
    const reading = body.classList.toggle("reading");
    button.setAttribute("aria-pressed", String(reading));
    if (!reading) return;
    for (const figure of document.querySelectorAll("figure[data-page]:not(:has(.text))")) near.observe(figure);
    // The text about electronic records stands between the button and the document.
    document.querySelector("section.document")?.scrollIntoView();
  });
}

/** Adds the text layer of a page when it comes near, for screen readers and selection. */
function showText() {
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      lay(target);
    }
  }, { rootMargin: "300px" });
  for (const figure of document.querySelectorAll("figure[data-page]")) {
    if (figure.querySelector("figcaption a")) seen.observe(figure);
  }

  async function lay(figure) {
    const answer = await fetch(figure.querySelector("figcaption a").getAttribute("href").replace(".txt", ".json")).catch(() => null);
    if (!answer?.ok) return;
    const sheet = figure.querySelector(".sheet");
    const layer = Object.assign(document.createElement("div"), { className: "layer" });
    const [width, height] = [sheet.clientWidth, sheet.clientHeight];
    for (const line of await answer.json()) {
      const span = document.createElement("span");
      span.textContent = `${line.text}\n`;
      span.style.left = `${line.x * 100}%`;
      span.style.top = `${line.y * 100}%`;
      span.style.fontSize = `${line.h * height}px`;
      layer.append(span);
      const natural = span.getBoundingClientRect().width || line.w * width;
      span.style.transform = `scaleX(${(line.w * width) / natural})`;
    }
    sheet.querySelector("img").after(layer);
  }
}
