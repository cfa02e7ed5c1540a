// Takes the token out of the URL's fragment and sends it as a form.

window.addEventListener("hashchange", () => location.reload());
const form = document.querySelector("form");
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) history.replaceState(null, "", location.pathname);

if (form && token) {
  form.elements.token.value = token;
  form.submit();
} else {
  // Whose page this is, is not known without a token: nothing is told but that.
  window.parent.postMessage({ source: "holdfast", type: "error", code: "token_missing" }, "*");
  const title = document.querySelector("h1");
  if (form && title) {
    title.textContent = text("embed-expired-title");
    document.querySelector("[role=status]").textContent = text("embed-expired");
    document.querySelector("main").removeAttribute("aria-busy");
  } else if (document.body.dataset.happening) {
    window.parent.postMessage({ source: "holdfast", type: "error", code: "token_refused" }, "*");
  }
}
