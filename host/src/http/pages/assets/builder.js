// The field builder: fields are placed on the pages of a template by dragging, by
// pressing, or by keyboard, and saved as a whole.

const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? sessionStorage.getItem("holdfast builder") ?? "";
sessionStorage.setItem("holdfast builder", token);
history.replaceState(null, "", location.pathname);
window.addEventListener("hashchange", () => location.reload());

const byId = (id) => document.getElementById(id);
const status = document.querySelector(".saved");
const pagesSection = document.querySelector(".pages");
const inspector = document.querySelector(".inspector form");
const SIZES = {
  signature: [0.3, 0.045], initials: [0.1, 0.04], text: [0.25, 0.025], date: [0.16, 0.025],
  number: [0.14, 0.025], checkbox: [0.025, 0.019], select: [0.2, 0.025], radio: [0.2, 0.025],
};
const STEP = 0.005;

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

async function ask(method, path, body, type) {
  const headers = { authorization: `Bearer ${token}` };
  if (type) headers["content-type"] = type;
  const answer = await fetch(path, { method, headers, body });
  const said = answer.headers.get("content-type")?.includes("json") ? await answer.json() : {};
  if (answer.ok) return said.data;
  const error = new Error(answer.status === 401 ? "This session has ended. Open the builder again." : said.error ?? "No answer");
  error.details = Array.isArray(said.details) ? said.details : [];
  throw error;
}

/** What is shown is what the server has. */
function take(shown) {
  template = shown;
  fields = shown.fields.map((field) => ({ options: [], ...field }));
  roles = shown.roles.length ? [...shown.roles] : ["Signer"];
  saved = JSON.stringify(fields);
  history_.length = 0;
  selected = null;
  document.title = `Fields of ${shown.name}`;
  document.querySelector("h1").textContent = shown.name;
  byId("upload").hidden = shown.pages.length > 0;
  drawPages();
  drawRoles();
  refresh();
}

function drawPages() {
  pagesSection.querySelectorAll("figure").forEach((figure) => figure.remove());
  template.pages.forEach((size, index) => {
    const number = index + 1;
    const figure = document.createElement("figure");
    figure.dataset.page = number;
    const sheet = Object.assign(document.createElement("div"), { className: "sheet" });
    sheet.style.aspectRatio = `${size.width} / ${size.height}`;
    const caption = document.createElement("figcaption");
    caption.textContent = `Page ${number} of ${template.pages.length}`;
    figure.append(sheet, caption);
    pagesSection.append(figure);
    near.observe(figure);
    acceptDrops(figure, sheet);
  });
}

/** A page's picture is fetched once it comes near. */
const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    fetch(`/builder/pages/${target.dataset.page}.png`, { headers: { authorization: `Bearer ${token}` } })
      .then((answer) => (answer.ok ? answer.blob() : Promise.reject(new Error("No picture"))))
      .then((picture) => {
        const image = new Image();
        image.alt = `Page ${target.dataset.page}`;
        image.src = URL.createObjectURL(picture);
        target.querySelector(".sheet").prepend(image);
      })
      .catch(() => say("A page could not be shown.", true));
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
  box.setAttribute("aria-label", `${field.type} ${field.name}, for ${field.role}, page ${area.page}`);
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

/** Keeps an area on its page, and a number short. */
function within(area) {
  const round = (value) => Math.round(value * 1e5) / 1e5;
  area.w = round(Math.min(Math.max(area.w, 0.01), 1));
  area.h = round(Math.min(Math.max(area.h, 0.008), 1));
  area.x = round(Math.min(Math.max(area.x, 0), 1 - area.w));
  area.y = round(Math.min(Math.max(area.y, 0), 1 - area.h));
  return area;
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
  const sheet = box.closest(".sheet").getBoundingClientRect();
  box.setPointerCapture(event.pointerId);
  const move = (now) => {
    const [right, down] = [(now.clientX - start.left) / sheet.width, (now.clientY - start.top) / sheet.height];
    if (resizing) Object.assign(area, { w: start.w + right, h: start.h + down });
    else Object.assign(area, { x: start.x + right, y: start.y + down });
    position(box, within(area));
  };
  const end = () => {
    box.removeEventListener("pointermove", move);
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
    change(() => {
      if (event.shiftKey) Object.assign(area, { w: area.w + right, h: area.h + down });
      else Object.assign(area, { x: area.x + right, y: area.y + down });
      within(area);
    });
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

function add(kind, page, x, y) {
  const [w, h] = SIZES[kind];
  const taken = new Set(fields.map((field) => field.name));
  const label = document.querySelector(`[data-kind=${kind}]`).textContent;
  let name = label;
  for (let number = 2; taken.has(name); number += 1) name = `${label} ${number}`;
  const area = within({ page, x: x - w / 2, y: y - h / 2, w, h });
  const options = kind === "select" || kind === "radio" ? ["Option 1", "Option 2"] : [];
  change(() => fields.push({ name, type: kind, role: byId("role").value, required: kind !== "checkbox", options, areas: [area] }));
  selected = { index: fields.length - 1, place: 0 };
  refresh(true);
}

function acceptDrops(figure, sheet) {
  sheet.addEventListener("dragover", (event) => event.preventDefault());
  sheet.addEventListener("drop", (event) => {
    event.preventDefault();
    const kind = event.dataTransfer.getData("text/plain");
    if (!(kind in SIZES)) return;
    const box = sheet.getBoundingClientRect();
    add(kind, Number(figure.dataset.page), (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  });
}

/** The page of which most can be seen, and the middle of what can be seen of it. */
function pageInView() {
  let best = null;
  for (const figure of document.querySelectorAll("figure[data-page]")) {
    const box = figure.querySelector(".sheet").getBoundingClientRect();
    const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, window.innerHeight)];
    if (!best || bottom - top > best.seen) {
      best = { page: Number(figure.dataset.page), seen: bottom - top, y: ((top + bottom) / 2 - box.top) / box.height };
    }
  }
  return best;
}

for (const button of document.querySelectorAll("[data-kind]")) {
  button.addEventListener("dragstart", (event) => event.dataTransfer.setData("text/plain", button.dataset.kind));
  button.addEventListener("click", () => {
    const view = pageInView();
    if (view) add(button.dataset.kind, view.page, 0.5, view.y);
  });
}

/** The inspector shows the selected field. */
function inspect() {
  const field = selected && fields[selected.index];
  inspector.hidden = !field;
  if (!field) return;
  byId("field-name").value = field.name;
  byId("field-role").value = field.role;
  byId("field-required").checked = field.required;
  byId("field-readonly").checked = Boolean(field.readonly);
  byId("field-default").value = field.default_value ?? "";
  byId("field-options").value = (field.options ?? []).join("\n");
  const signed = field.type === "signature" || field.type === "initials";
  inspector.querySelector(".default").hidden = signed;
  byId("field-readonly").closest("label").hidden = signed;
  inspector.querySelector(".options").hidden = !["select", "radio"].includes(field.type);
  inspector.querySelector(".problem").textContent = field.problem ?? "";
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

byId("remove").addEventListener("click", remove);
byId("undo").addEventListener("click", () => {
  const before = history_.pop();
  if (before === undefined) return;
  fields = JSON.parse(before);
  selected = null;
  refresh();
});
byId("new-role").addEventListener("click", () => {
  const name = window.prompt("Name of the role, for example Seller")?.trim();
  if (!name || roles.includes(name)) return;
  roles.push(name);
  drawRoles();
  byId("role").value = name;
});

let saving = false;

byId("save").addEventListener("click", async () => {
  say("Saving…");
  saving = true;
  refresh();
  const before = JSON.stringify(fields);
  const sent = fields.map(({ problem, ...field }) => field);
  try {
    const body = JSON.stringify({ revision: template.revision, fields: sent });
    const shown = await ask("PUT", "/builder/template", body, "application/json");
    // What was changed meanwhile stays, and is saved next.
    template.revision = shown.revision;
    saved = before;
    say("Saved");
  } catch (error) {
    say(error.message, true);
    for (const { path, message } of error.details ?? []) {
      const index = Number(path[1]);
      const field = path[0] === "fields" ? fields[index] : null;
      if (!field) continue;
      field.problem = message;
      selected = { index, place: 0 };
    }
  }
  saving = false;
  refresh();
});

byId("upload").addEventListener("change", async (event) => {
  const file = event.target.files?.[0];
  if (!file) return;
  say("Uploading…");
  const body = new FormData();
  body.append("file", file);
  try {
    take(await ask("POST", "/builder/document", body));
    say("");
  } catch (error) {
    say(error.message, true);
  }
});

window.addEventListener("beforeunload", (event) => {
  if (template && JSON.stringify(fields) !== saved) event.preventDefault();
});

ask("GET", "/builder/template").then(take, (error) => say(error.message, true));
