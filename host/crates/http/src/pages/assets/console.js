// Passkeys: a form with data-passkey asks the device, writes its answer into the field `passkey`, and is sent then.
const bytes = text => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), one => one.charCodeAt(0));
const text = buffer => btoa(String.fromCharCode(...new Uint8Array(buffer)))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const options = ({ challenge, site, known = "" }) => ({
  challenge: bytes(challenge), timeout: 300000, userVerification: "required",
  rpId: site,
  allowCredentials: known.split(" ").filter(Boolean).map(id => ({ type: "public-key", id: bytes(id) })),
});

const created = ({ challenge, site, user, name, known = "" }) => ({
  challenge: bytes(challenge), timeout: 300000, attestation: "none",
  rp: { id: site, name: site },
  user: { id: new TextEncoder().encode(user), name, displayName: name },
  // Ed25519, P-256, and RSA for devices that have no other.
  pubKeyCredParams: [-8, -7, -257].map(alg => ({ type: "public-key", alg })),
  authenticatorSelection: { residentKey: "required", userVerification: "required" },
  excludeCredentials: known.split(" ").filter(Boolean).map(id => ({ type: "public-key", id: bytes(id) })),
});

async function answer({ dataset }) {
  if (dataset.passkey === "create") {
    const { id, response } = await navigator.credentials.create({ publicKey: created(dataset) });
    return {
      credential_id: id, authenticator_data: text(response.getAuthenticatorData()),
      client_data: text(response.clientDataJSON), public_key: text(response.getPublicKey()),
    };
  }
  const { id, response } = await navigator.credentials.get({ publicKey: options(dataset) });
  return {
    credential_id: id, authenticator_data: text(response.authenticatorData),
    client_data: text(response.clientDataJSON), signature: text(response.signature),
  };
}

// Whether the device asks its user for a passkey.
let asking = false;

// Connects what a page has in its main part; again when a live page was replaced.
function prepare() {
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    if (!window.PublicKeyCredential) continue;
    form.hidden = false;
    form.nextElementSibling.hidden = true;
    form.addEventListener("submit", async event => {
      event.preventDefault();
      const problem = form.querySelector(".problem");
      problem.hidden = true;
      asking = true;
      try {
        form.elements.passkey.value = JSON.stringify(await answer(form));
        form.submit();
      } catch {
        problem.hidden = false;
        asking = false;
      }
    });
  }

  // A chosen picture is sent as base64 in a hidden field.
  for (const input of document.querySelectorAll("input[type=file][data-into]")) {
    input.addEventListener("change", async () => {
      const into = document.getElementById(input.dataset.into);
      const file = input.files[0];
      into.value = file ? text(await file.arrayBuffer()).replaceAll("-", "+").replaceAll("_", "/") : "";
      into.value += "=".repeat((4 - into.value.length % 4) % 4);
    });
  }

  // One box chooses all rows.
  for (const all of document.querySelectorAll("input[data-all]")) {
    all.closest("label").hidden = false;
    all.addEventListener("change", () => {
      for (const one of all.closest("form").querySelectorAll("input[name^='id-']")) one.checked = all.checked;
    });
  }

  // Copies the value of a field.
  for (const button of document.querySelectorAll("button[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", () => navigator.clipboard.writeText(document.getElementById(button.dataset.copy).value));
  }
}
prepare();

// Preview of a brand: white text on dark colours, black on bright ones (WCAG 2.2, relative luminance).
const preview = document.querySelector("[data-preview]");
if (preview) {
  const [name, color] = ["brand_name", "color"].map(id => document.getElementById(id));
  const usual = preview.querySelector("[data-name]").textContent;
  const channel = value => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const paint = () => {
    const [red, green, blue] = [1, 3, 5].map(at => channel(parseInt(color.value.slice(at, at + 2), 16) / 255));
    const bright = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    const set = (part, attribute, value) =>
      preview.querySelectorAll(`[data-${part}]`).forEach(one => one.setAttribute(attribute, value));
    set("paint", "fill", color.value);
    set("on", "fill", 1.05 / (bright + 0.05) >= 4.5 ? "#ffffff" : "#000000");
    preview.querySelectorAll("[data-name]").forEach(one => { one.textContent = name.value || usual; });
  };
  for (const input of [name, color]) input.addEventListener("input", paint);
}

// Live pages read themselves again after a change, unless someone is filling in a form or has a part open. Only the
// visible page listens: over HTTP/1.1 a browser opens six connections to a server, and each listening page takes one.
const live = document.querySelector("main[data-live]");
if (live && window.EventSource) {
  let seen, source;
  const filled = one => {
    if (one.type === "checkbox" || one.type === "radio") return one.checked !== one.defaultChecked;
    if (one.type === "file") return one.files.length > 0;
    if (one.tagName !== "SELECT") return one.value !== one.defaultValue;
    const first = Math.max(0, [...one.options].findIndex(option => option.defaultSelected));
    return one.selectedIndex > -1 && one.selectedIndex !== first;
  };
  const busy = () => asking || live.querySelector("details[open]") || document.activeElement?.closest("main input, main select, main textarea")
    || [...live.querySelectorAll("input, select, textarea")].some(filled);
  const changed = async ({ data }) => {
    const first = seen === undefined || seen === data;
    seen = data;
    if (first || busy()) return;
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("main");
    if (!fresh || busy()) return;
    const at = live.contains(document.activeElement) && document.activeElement.getAttribute("href");
    live.replaceChildren(...fresh.childNodes);
    prepare();
    // The keyboard stays where it was.
    if (at) live.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus({ preventScroll: true });
  };
  const listen = () => {
    source?.close();
    if (document.hidden) return;
    source = new EventSource(live.dataset.live);
    source.addEventListener("changed", changed);
  };
  document.addEventListener("visibilitychange", listen);
  window.addEventListener("pagehide", () => source?.close());
  window.addEventListener("pageshow", listen);
}

// Progress of a batch.
const batch = document.querySelector("[data-progress]");
if (batch && window.EventSource) {
  const source = new EventSource(batch.dataset.progress);
  const show = ({ counts }) => {
    for (const one of batch.querySelectorAll("[data-count]")) one.textContent = counts[one.dataset.count];
    batch.querySelector("progress").value = counts.sent + counts.failed + counts.skipped + counts.cancelled;
  };
  source.addEventListener("progress", event => show(JSON.parse(event.data)));
  source.addEventListener("end", event => { show(JSON.parse(event.data)); source.close(); location.reload(); });
}

// On a phone, the navigation scrolls sideways: the present place is in sight. The page itself does not move.
const here = document.querySelector(".top.console nav a[aria-current]");
const menu = here?.closest("nav");
if (menu) menu.scrollLeft = here.offsetLeft - (menu.clientWidth - here.offsetWidth) / 2;

// A refused form begins at its problems.
document.querySelector(".problems")?.focus();
