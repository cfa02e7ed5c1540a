// Takes the token out of the URL's fragment and sends it as a form.

window.addEventListener("hashchange", () => location.reload());
const form = document.querySelector("form");
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) history.replaceState(null, "", location.pathname);

if (form && token) {
  form.elements.token.value = token;
  form.submit();
} else if (form) {
  announce("error", { code: "token_missing" });
  document.querySelector("h1").textContent = text("embed-expired-title");
  document.querySelector("[role=status]").textContent = text("embed-expired");
  document.querySelector("main").removeAttribute("aria-busy");
  reportHeight();
} else {
  announce("error", { code: "token_refused" });
}
