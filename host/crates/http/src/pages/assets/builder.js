// The field builder: fields are placed on the pages of a template by dragging with a mouse or a
// finger, by pressing, or by keyboard, and saved as a whole. They snap to each other and never lie on
// each other.

const { token } = document.querySelector(".builder").dataset;
const byId = (id) => document.getElementById(id);
const status = document.querySelector(".saved");
const pagesSection = document.querySelector(".pages");
const inspector = document.querySelector(".inspector form");
const SIZES = {
  signature: [0.3, 0.045], initials: [0.1, 0.04], text: [0.25, 0.025], date: [0.16, 0.025],
  number: [0.14, 0.025], checkbox: [0.025, 0.019], select: [0.2, 0.025], radio: [0.2, 0.025], attachment: [0.2, 0.025],
};
const STEP = 0.005;
/** Distance in pixels at which a field snaps to an edge, and at which a press becomes a drag. */
const REACH = 6;
/** Margin of a page, in points. */
const MARGIN = 36;

let template = null;
let fields = [];
let roles = [];
/** The field and the place of it that are selected. */
let selected = null;
let saved = "";
const history_ = [];

function say(text, wrong = false) {
  status.textContent = text;
  status.classList.toggle("offline", wrong);
}

/** Warnings of the newest answer. */
let warnings = [];

async function ask(method, path, body, type) {
  const headers = { authorization: `Bearer ${token}` };
  if (type) headers["content-type"] = type;
  const answer = await fetch(path, { method, headers, body });
  if (answer.ok && answer.headers.get("content-type")?.includes("html")) return answer.text();
  const said = answer.headers.get("content-type")?.includes("json") ? await answer.json() : {};
  warnings = said.warnings ?? [];
  if (answer.ok) return said.data;
  const error = new Error(refusal(answer.status, said.error, path));
  error.details = Array.isArray(said.details) ? said.details : [];
  throw error;
}

/** The API says in English, and more precisely, what these words say in every language. */
const SPEAKS_ENGLISH = document.documentElement.lang === "en";

/** Words for an answer that is an error. */
function refusal(code, said, path) {
  if (code === 401) return text("builder-ended");
  if (!said || code >= 500) return text("builder-no-answer");
  if (SPEAKS_ENGLISH) return said;
  if (code === 409) return text("builder-problem-changed");
  return path === "/builder/document" ? text("builder-problem-file") : text("builder-problem-fields");
}

/** Words for the problem of one field. */
function problemText({ code, message }) {
  if (SPEAKS_ENGLISH) return message;
  switch (code) {
    case "too_small": return text("builder-problem-needed");
    case "too_big": return text("builder-problem-too-large");
    case "page_out_of_range": return text("builder-problem-page");
    case "outside_page": return text("builder-problem-outside");
    case "conflicting_type": return text("builder-problem-type");
    case "unsupported_rule": return text("builder-problem-rule");
    case "invalid_pattern": return text("builder-problem-pattern");
    case "invalid_condition": return text("builder-problem-condition");
    case "invalid_formula": return text("builder-problem-formula");
    case "unknown_field": return text("builder-problem-unknown-field");
    case "circular_rule": return text("builder-problem-circular");
    default: return text("builder-problem-kind");
  }
}

/** What is shown is what the server has. */
function take(shown) {
  template = shown;
  fields = shown.fields.map((field) => ({ options: [], ...field }));
  roles = shown.roles.length ? [...shown.roles] : ["Signer"];
  saved = JSON.stringify(fields);
  history_.length = 0;
  selected = null;
  byId("upload").hidden = shown.pages.length > 0;
  drawPages();
  drawRoles();
  refresh();
}

/** Label of a kind of field. */
function labelOf(kind) {
  return document.querySelector(`[data-kind=${kind}]`).textContent;
}

function pageName(number) {
  return text("signing-page", { number, count: template.pages.length });
}

function drawPages() {
  pictures.clear();
  pagesSection.querySelectorAll("figure").forEach((figure) => figure.remove());
  template.pages.forEach((size, index) => {
    const number = index + 1;
    const figure = document.createElement("figure");
    figure.dataset.page = number;
    const sheet = Object.assign(document.createElement("div"), { className: "sheet" });
    sheet.style.aspectRatio = `${size.width} / ${size.height}`;
    const caption = document.createElement("figcaption");
    caption.textContent = pageName(number);
    figure.append(sheet, caption);
    pagesSection.append(figure);
    near.observe(figure);
  });
}

/** Addresses of the pictures that were fetched, by page. */
const pictures = new Map();

function pictureOf(page) {
  if (!pictures.has(page)) {
    const picture = fetch(`/builder/pages/${page}.png`, { headers: { authorization: `Bearer ${token}` } })
      .then((answer) => (answer.ok ? answer.blob() : Promise.reject(new Error(text("builder-page-not-shown")))))
      .then((blob) => URL.createObjectURL(blob));
    picture.catch(() => pictures.delete(page));
    pictures.set(page, picture);
  }
  return pictures.get(page);
}

/** A page's picture is fetched once it comes near, here and in the preview. */
const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    pictureOf(target.dataset.page).then((address) => {
      const sheet = target.querySelector(".sheet");
      const image = sheet.querySelector("img") ?? Object.assign(new Image(), { alt: pageName(target.dataset.page) });
      image.src = address;
      sheet.prepend(image);
    }).catch(() => say(text("builder-page-not-shown"), true));
  }
}, { rootMargin: "600px" });

function drawRoles() {
  for (const select of [byId("role"), byId("field-role")]) {
    const chosen = select.value;
    select.replaceChildren(...roles.map((role) => new Option(role, role)));
    if (roles.includes(chosen)) select.value = chosen;
  }
}

/** Boxes, inspector and buttons, as the fields are now. */
function refresh(focus = false) {
  for (const box of document.querySelectorAll(".box")) box.remove();
  fields.forEach((field, index) => field.areas.forEach((area, place) => drawBox(field, index, area, place)));
  inspect();
  byId("undo").disabled = history_.length === 0;
  byId("save").disabled = saving || JSON.stringify(fields) === saved;
  byId("show-preview").disabled = fields.length === 0;
  if (focus && selected) document.querySelector(".box[aria-pressed=true]")?.focus();
}

function drawBox(field, index, area, place) {
  const sheet = document.querySelector(`figure[data-page="${area.page}"] .sheet`);
  if (!sheet) return;
  const box = Object.assign(document.createElement("button"), { type: "button" });
  box.className = `box role-${Math.max(roles.indexOf(field.role), 0) % 5}${field.required ? " required-field" : ""}`;
  box.textContent = field.name;
  box.dataset.index = index;
  box.dataset.place = place;
  const isSelected = selected?.index === index && selected.place === place;
  box.setAttribute("aria-pressed", String(isSelected));
  box.setAttribute("aria-label", text("builder-box", { kind: labelOf(field.type), name: field.name, role: field.role, page: area.page }));
  position(box, area);
  if (isSelected) box.append(Object.assign(document.createElement("span"), { className: "grip" }));
  box.addEventListener("pointerdown", (event) => drag(event, box, field, index, area, place));
  box.addEventListener("focus", () => select(index, place));
  box.addEventListener("keydown", (event) => byKeyboard(event, index, place));
  sheet.append(box);
}

function position(box, area) {
  for (const [style, value] of [["left", area.x], ["top", area.y], ["width", area.w], ["height", area.h]]) {
    box.style[style] = `${value * 100}%`;
  }
}

function select(index, place) {
  if (selected?.index === index && selected.place === place) return;
  selected = { index, place };
  refresh(true);
}

/** Remembers how it was, for `Undo`. */
function change(work) {
  history_.push(JSON.stringify(fields));
  if (history_.length > 100) history_.shift();
  work();
}

/** Areas of all fields on the page of an area, without itself. */
function neighboursOf(area) {
  const areas = fields.flatMap((field) => field.areas);
  return areas.filter((other) => other !== area && other.page === area.page);
}

/** Where a field snaps to on a page that is shown in `sheet`, a rectangle of the window. */
function edgesOf(page, sheet) {
  const size = template.pages[page - 1];
  return {
    margin: { x: MARGIN / size.width, y: MARGIN / size.height },
    reach: { x: REACH / sheet.width, y: REACH / sheet.height },
  };
}

/** Shows the lines that a field snaps to while it is moved. */
function showLines(sheet, lines) {
  sheet.querySelectorAll(".line").forEach((line) => line.remove());
  for (const [axis, at] of Object.entries(lines)) {
    const line = Object.assign(document.createElement("div"), { className: `line ${axis}` });
    line.style[axis === "x" ? "left" : "top"] = `${at * 100}%`;
    sheet.append(line);
  }
}

function drag(event, box, field, index, area, place) {
  if (event.button > 0) return;
  event.preventDefault();
  // What stands in the inspector is taken before another field is shown there.
  if (!box.contains(document.activeElement)) document.activeElement?.blur();
  if (!box.isConnected) box = document.querySelector(`.box[data-index="${index}"][data-place="${place}"]`);
  const resizing = event.target.classList.contains("grip");
  const before = JSON.stringify(fields);
  const start = { ...area, left: event.clientX, top: event.clientY };
  const page = box.closest(".sheet");
  const sheet = page.getBoundingClientRect();
  const neighbours = neighboursOf(area);
  let moved = false;
  box.setPointerCapture(event.pointerId);
  const move = (now) => {
    moved ||= Math.hypot(now.clientX - start.left, now.clientY - start.top) > REACH / 2;
    if (!moved) return;
    const [right, down] = [(now.clientX - start.left) / sheet.width, (now.clientY - start.top) / sheet.height];
    if (resizing) Object.assign(area, { w: start.w + right, h: start.h + down });
    else Object.assign(area, { x: start.x + right, y: start.y + down });
    within(area);
    // With Alt, it does not snap.
    if (!now.altKey) showLines(page, snap(area, neighbours, { ...edgesOf(area.page, sheet), resizing }));
    position(box, area);
  };
  const end = () => {
    box.removeEventListener("pointermove", move);
    showLines(page, {});
    const { x, y, w, h } = start;
    if (moved) Object.assign(area, freePlace(area, neighbours) ?? { x, y, w, h });
    if (JSON.stringify(fields) !== before) history_.push(before);
    selected = { index, place };
    refresh(true);
  };
  box.addEventListener("pointermove", move);
  box.addEventListener("pointerup", end, { once: true });
  box.addEventListener("pointercancel", end, { once: true });
}

function byKeyboard(event, index, place) {
  const area = fields[index].areas[place];
  const steps = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
  if (event.key in steps) {
    event.preventDefault();
    const [right, down] = steps[event.key];
    const wanted = event.shiftKey ? { ...area, w: area.w + right, h: area.h + down } : { ...area, x: area.x + right, y: area.y + down };
    const neighbours = neighboursOf(area);
    const free = event.shiftKey ? freePlace(within(wanted), neighbours) : past(within(wanted), neighbours, [right, down]);
    if (free) change(() => Object.assign(area, within(free)));
    refresh(true);
  } else if (event.key === "Delete" || event.key === "Backspace") {
    event.preventDefault();
    remove();
  }
}

function remove() {
  if (!selected) return;
  const { index, place } = selected;
  change(() => {
    fields[index].areas.splice(place, 1);
    if (fields[index].areas.length === 0) fields.splice(index, 1);
  });
  selected = null;
  refresh();
  byId("save").focus();
}

function add(kind, figure, x, y) {
  const [w, h] = SIZES[kind];
  const page = Number(figure.dataset.page);
  const taken = new Set(fields.map((field) => field.name));
  const label = labelOf(kind);
  let name = label;
  for (let number = 2; taken.has(name); number += 1) name = `${label} ${number}`;
  const wanted = within({ page, x: x - w / 2, y: y - h / 2, w, h });
  const neighbours = neighboursOf(wanted);
  snap(wanted, neighbours, edgesOf(page, figure.querySelector(".sheet").getBoundingClientRect()));
  const area = freePlace(wanted, neighbours);
  if (!area) {
    say(text("builder-no-room"), true);
    return;
  }
  const options = kind === "select" || kind === "radio" ? [1, 2].map((number) => text("builder-option", { number })) : [];
  change(() => fields.push({ name, type: kind, role: byId("role").value, required: kind !== "checkbox", options, areas: [area] }));
  selected = { index: fields.length - 1, place: 0 };
  refresh(true);
}

/** Drags a new field out of the palette. */
function dragNew(event, button) {
  if (event.button > 0 || !template?.pages.length) return;
  const { kind } = button.dataset;
  const sheetAt = (now) => document.elementFromPoint(now.clientX, now.clientY)?.closest("figure .sheet");
  let ghost = null;
  button.setPointerCapture(event.pointerId);
  const move = (now) => {
    if (!ghost) {
      if (Math.hypot(now.clientX - event.clientX, now.clientY - event.clientY) < REACH) return;
      ghost = Object.assign(document.createElement("div"), { className: "ghost", textContent: button.textContent });
      const sheet = document.querySelector("figure .sheet").getBoundingClientRect();
      Object.assign(ghost.style, { width: `${SIZES[kind][0] * sheet.width}px`, height: `${SIZES[kind][1] * sheet.height}px` });
      document.body.append(ghost);
      button.dataset.dragged = "";
    }
    ghost.style.transform = `translate(${now.clientX}px, ${now.clientY}px) translate(-50%, -50%)`;
  };
  const end = (now) => {
    button.removeEventListener("pointermove", move);
    button.removeEventListener("pointerup", end);
    button.removeEventListener("pointercancel", end);
    ghost?.remove();
    const sheet = ghost && now.type === "pointerup" && sheetAt(now);
    // The press that follows a drag adds nothing.
    setTimeout(() => delete button.dataset.dragged);
    if (!sheet) return;
    const box = sheet.getBoundingClientRect();
    add(kind, sheet.closest("figure"), (now.clientX - box.left) / box.width, (now.clientY - box.top) / box.height);
  };
  button.addEventListener("pointermove", move);
  button.addEventListener("pointerup", end);
  button.addEventListener("pointercancel", end);
}

/** The page of which most can be seen, and the middle of what can be seen of it. */
function pageInView() {
  let best = null;
  for (const figure of document.querySelectorAll("figure[data-page]")) {
    const box = figure.querySelector(".sheet").getBoundingClientRect();
    const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, window.innerHeight)];
    if (!best || bottom - top > best.seen) {
      best = { figure, seen: bottom - top, y: ((top + bottom) / 2 - box.top) / box.height };
    }
  }
  return best;
}

for (const button of document.querySelectorAll("[data-kind]")) {
  button.addEventListener("pointerdown", (event) => dragNew(event, button));
  button.addEventListener("click", () => {
    const view = "dragged" in button.dataset ? null : pageInView();
    if (view) add(button.dataset.kind, view.figure, 0.5, view.y);
  });
}

const chosen = document.querySelector(".chosen");

/** Opens or closes the sheet with the properties of a field, on a narrow screen. */
function showEditor(isOpen) {
  document.body.classList.toggle("editing", isOpen);
  byId("edit").setAttribute("aria-expanded", String(isOpen));
}
byId("edit").addEventListener("click", () => showEditor(!document.body.classList.contains("editing")));
byId("leave").addEventListener("click", () => {
  selected = null;
  refresh();
});

/** Controls of the rules about the answer to a field. */
const rules = [...document.querySelectorAll("[data-rule]")];

/** The inspector shows the selected field. */
function inspect() {
  const field = selected && fields[selected.index];
  inspector.hidden = !field;
  chosen.hidden = !field;
  document.body.classList.toggle("choosing", Boolean(field));
  if (!field) return showEditor(false);
  chosen.querySelector("strong").textContent = field.name;
  byId("field-name").value = field.name;
  byId("field-role").value = field.role;
  byId("field-required").checked = field.required;
  byId("field-readonly").checked = Boolean(field.readonly);
  byId("field-default").value = field.default_value ?? "";
  byId("field-options").value = (field.options ?? []).join("\n");
  const signed = ["signature", "initials", "attachment"].includes(field.type);
  inspector.querySelector(".default").hidden = signed;
  byId("field-readonly").closest("label").hidden = signed;
  inspector.querySelector(".options").hidden = !["select", "radio"].includes(field.type);
  for (const control of rules) control.value = field[control.dataset.rule] ?? "";
  inspector.querySelector(".rules").open = rules.some((control) => control.value);
  for (const group of inspector.querySelectorAll("[data-kinds]")) {
    const { kinds } = group.dataset;
    group.hidden = kinds !== "" && !kinds.split(" ").includes(field.type);
  }
  inspector.querySelector(".problem").textContent = field.problem ?? "";
  if (field.problem) showEditor(true);
}

function edit(id, write) {
  byId(id).addEventListener("change", (event) => {
    const field = selected && fields[selected.index];
    if (!field) return;
    change(() => {
      delete field.problem;
      write(field, event.target);
    });
    refresh();
  });
}
edit("field-name", (field, control) => { field.name = control.value.trim(); });
edit("field-role", (field, control) => { field.role = control.value; });
edit("field-required", (field, control) => { field.required = control.checked; });
edit("field-readonly", (field, control) => { field.readonly = control.checked; });
edit("field-default", (field, control) => {
  if (control.value) field.default_value = control.value;
  else delete field.default_value;
});
edit("field-options", (field, control) => { field.options = control.value.split("\n").map((line) => line.trim()).filter(Boolean); });

for (const { id, dataset: { rule } } of rules) {
  edit(id, (field, control) => {
    if (control.value.trim()) field[rule] = control.value.trim();
    else delete field[rule];
  });
}

byId("remove").addEventListener("click", remove);
byId("undo").addEventListener("click", () => {
  const before = history_.pop();
  if (before === undefined) return;
  fields = JSON.parse(before);
  selected = null;
  refresh();
});
const roleForm = byId("role-form");

function askForRole(isOpen) {
  roleForm.hidden = !isOpen;
  byId("new-role").setAttribute("aria-expanded", String(isOpen));
  roleForm.reset();
  roleForm.querySelector(".problem").textContent = "";
  (isOpen ? byId("role-name") : byId("new-role")).focus();
}
byId("new-role").addEventListener("click", () => askForRole(roleForm.hidden));
byId("no-role").addEventListener("click", () => askForRole(false));
roleForm.addEventListener("submit", (event) => {
  event.preventDefault();
  const name = byId("role-name").value.trim();
  const isKnown = roles.some((role) => role.toLowerCase() === name.toLowerCase());
  if (!name || isKnown) {
    roleForm.querySelector(".problem").textContent = name ? text("builder-role-exists") : text("builder-role-missing");
    return;
  }
  roles.push(name);
  drawRoles();
  byId("role").value = name;
  askForRole(false);
});

/** The fields as the server takes them. */
function toSend() {
  return fields.map(({ problem, ...field }) => field);
}

/** Shows why the server refused the fields. */
function showProblems(error) {
  say(error.message, true);
  for (const detail of error.details ?? []) {
    const { path } = detail;
    const index = Number(path[1]);
    const field = path[0] === "fields" ? fields[index] : null;
    if (!field) continue;
    field.problem = problemText(detail);
    selected = { index, place: 0 };
  }
}

let saving = false;

byId("save").addEventListener("click", async () => {
  say(text("signing-saving"));
  saving = true;
  refresh();
  const before = JSON.stringify(fields);
  try {
    const body = JSON.stringify({ revision: template.revision, fields: toSend() });
    const shown = await ask("PUT", "/builder/template", body, "application/json");
    // What was changed meanwhile stays, and is saved next.
    template.revision = shown.revision;
    saved = before;
    say(text("signing-saved"));
    announce("saved", { template_id: template.template_id });
  } catch (error) {
    showProblems(error);
  }
  saving = false;
  refresh();
});

byId("upload").addEventListener("change", async (event) => {
  const file = event.target.files?.[0];
  if (!file) return;
  say(text("builder-uploading"));
  const body = new FormData();
  body.append("file", file);
  try {
    take(await ask("POST", "/builder/document", body));
    const count = fields.length;
    const warned = SPEAKS_ENGLISH ? warnings.map(({ message }) => message).join(" ") : text("builder-warned");
    const imported = count ? text("builder-imported", { count }) : "";
    say(warnings.length ? `${warned} ${imported}`.trim() : imported, warnings.length > 0);
  } catch (error) {
    say(error.message, true);
  }
});

window.addEventListener("beforeunload", (event) => {
  if (template && JSON.stringify(fields) !== saved) event.preventDefault();
});

const preview = byId("preview");
const previewRole = byId("preview-role");
const previewFrame = preview.querySelector("iframe");

/** Shows the form of a role as its signer will see it. Nothing is saved. */
async function showPreview(role) {
  const used = [...new Set(fields.map((field) => field.role))];
  previewRole.replaceChildren(...used.map((name) => new Option(name, name)));
  previewRole.value = used.includes(role) ? role : used[0];
  // What the rules say about entries that the author tries.
  previewFrame.judge = (values) => {
    const body = JSON.stringify({ fields: toSend(), role: previewRole.value, values });
    return ask("POST", "/builder/preview", body, "application/json").catch(() => null);
  };
  try {
    const body = JSON.stringify({ fields: toSend(), role: previewRole.value });
    previewFrame.srcdoc = await ask("POST", "/builder/preview", body, "application/json");
    if (!preview.open) preview.showModal();
  } catch (error) {
    preview.close();
    showProblems(error);
    refresh();
  }
}
previewFrame.addEventListener("load", () => {
  for (const figure of previewFrame.contentDocument.querySelectorAll("figure[data-page]")) near.observe(figure);
});
byId("show-preview").addEventListener("click", () => showPreview(fields[selected?.index]?.role ?? byId("role").value));
previewRole.addEventListener("change", () => showPreview(previewRole.value));
byId("no-preview").addEventListener("click", () => preview.close());

ask("GET", "/builder/template").then((shown) => {
  take(shown);
  announce("ready");
}, (error) => {
  say(error.message, true);
  announce("error", { code: "not_loaded" });
});
