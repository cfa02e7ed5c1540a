// <holdfast-sign src="…"> and <holdfast-vault src="…">: a widget in a partner's page.
//
// `src` is the `embed_url` of an embed token. The element fires `ready`, `completed`,
// `declined` and `error`; what is known of them is in the event's `detail`.

class HoldfastWidget extends HTMLElement {
  static observedAttributes = ["src"];
  #frame = null;
  #listen = (event) => {
    if (!ORIGINS.includes(event.origin) || event.source !== this.#frame?.contentWindow) return;
    const { source, type, ...detail } = event.data ?? {};
    if (source !== "holdfast" || !["ready", "completed", "declined", "error"].includes(type)) return;
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
    this.style.minHeight ||= "40rem";
    const frame = document.createElement("iframe");
    frame.title = this.getAttribute("title") ?? (this.localName === "holdfast-vault" ? "Vault" : "Sign the document");
    frame.referrerPolicy = "no-referrer";
    frame.style.cssText = "width:100%;height:100%;min-height:inherit;border:0";
    frame.src = src;
    this.#frame = frame;
    this.append(frame);
  }
}

customElements.define("holdfast-sign", class extends HoldfastWidget {});
customElements.define("holdfast-vault", class extends HoldfastWidget {});
