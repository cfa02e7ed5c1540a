// Takes the token out of the URL's fragment and sends it as a form.

window.addEventListener("hashchange", () => location.reload());
const form = document.querySelector("form");
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) history.replaceState(null, "", location.pathname);

/** Shows the colour of the organization that the token names, until its page is there. */
function showBrand() {
  try {
    const claims = JSON.parse(atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")));
    const org = claims.orgId ?? claims.org;
    if (!/^org_\w+$/.test(org)) return;
    const style = { rel: "stylesheet", href: `/assets/brand/${org}/brand.css` };
    document.head.append(Object.assign(document.createElement("link"), style));
  } catch {
    // It is no token of ours, as the answer will say.
  }
}

if (form && token) {
  showBrand();
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
