// <holdfast-sign src="…">, <holdfast-vault src="…"> and <holdfast-builder src="…">: a widget in a
// partner's page.
//
// `src` is the `embed_url` of an embed token, or a `builder_url`. The element fires `ready`,
// `completed`, `declined`, `saved` and `error`, with more in the event's `detail`. It is as high as
// the page in it, unless that page fits itself into any height.

const TITLES = { "holdfast-sign": "Sign the document", "holdfast-vault": "Vault", "holdfast-builder": "Fields of the document" };
const TYPES = ["ready", "completed", "declined", "saved", "error"];
/** Height of the element around a page that fits itself into it. */
const DEFAULT_HEIGHT = "40rem";
/** Limit on the height that a page gets, in pixels. */
const LONGEST = 20000;

class HoldfastWidget extends HTMLElement {
  static observedAttributes = ["src"];
  #frame = null;
  #listen = (event) => {
    if (!ORIGINS.includes(event.origin) || event.source !== this.#frame?.contentWindow) return;
    const { source, type, ...detail } = event.data ?? {};
    if (source !== "holdfast") return;
    if (type === "resize") this.#fit(detail.height);
    if (!TYPES.includes(type)) return;
    this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true, composed: true }));
  };

  connectedCallback() {
    window.addEventListener("message", this.#listen);
    this.#show();
  }

  disconnectedCallback() {
    window.removeEventListener("message", this.#listen);
    this.#frame?.remove();
    this.#frame = null;
  }

  attributeChangedCallback() {
    if (this.isConnected) this.#show();
  }

  #show() {
    const src = this.getAttribute("src") ?? "";
    const address = URL.canParse(src) ? new URL(src) : null;
    this.#frame?.remove();
    this.#frame = null;
    if (!address || !ORIGINS.includes(address.origin)) {
      const detail = { code: "wrong_src" };
      queueMicrotask(() => this.dispatchEvent(new CustomEvent("error", { detail, bubbles: true, composed: true })));
      return;
    }
    this.style.display ||= "block";
    const frame = document.createElement("iframe");
    frame.title = this.getAttribute("title") ?? TITLES[this.localName];
    frame.referrerPolicy = "no-referrer";
    frame.style.cssText = "display:block;width:100%;border:0";
    frame.src = src;
    this.#frame = frame;
    this.#fit(null);
    this.append(frame);
  }

  /** Gives the frame the height of its page; without one, that of the element. */
  #fit(height) {
    const isKnown = Number.isFinite(height) && height > 0;
    this.#frame.style.height = isKnown ? `${Math.min(Math.ceil(height), LONGEST)}px` : "100%";
    this.#frame.style.minHeight = isKnown ? "" : this.style.minHeight || DEFAULT_HEIGHT;
  }
}

for (const name of Object.keys(TITLES)) customElements.define(name, class extends HoldfastWidget {});
