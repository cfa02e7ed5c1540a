// Messages to the page that embeds this one: what happened, and how high the page is.

const embedders = (document.body.dataset.embedders || "").split(" ").filter(Boolean);
const isEmbedded = window.parent !== window && embedders.length > 0;

/** Sends a message to the embedding page, if the organization allows its origin. */
function announce(type, details = {}) {
  if (!isEmbedded || !type) return;
  for (const origin of embedders) window.parent.postMessage({ source: "holdfast", type, ...details }, origin);
}

/** Reports the page's height now and after each change. The signing form and the builder fit
    themselves into the frame that they get, and have no height of their own. */
function reportHeight() {
  if (!isEmbedded) return;
  document.body.classList.add("embedded");
  if (document.querySelector("main.signing, main.builder")) {
    announce("resize", { height: null });
    return;
  }
  let reported = 0;
  const report = () => {
    const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
    if (height !== reported) announce("resize", { height });
    reported = height;
  };
  new ResizeObserver(report).observe(document.documentElement);
  report();
}

// A page that only leads to another one keeps the height that its frame has.
if (!document.querySelector("main[aria-busy]")) reportHeight();

