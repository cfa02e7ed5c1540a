// Compares a file with the fingerprints on the page. The file stays in the browser.

const verdict = document.querySelector(".verdict");

document.getElementById("file").addEventListener("change", async ({ target }) => {
  const file = target.files[0];
  if (!file) return;
  verdict.className = "verdict";
  verdict.textContent = text("verify-comparing");
  const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer()).catch(() => null);
  if (!digest) {
    say(false, text("verify-unsupported"));
    return;
  }
  const hash = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const match = document.querySelector(`[data-sha256="${hash}"]`);
  if (match) say(true, text("verify-same", { name: match.dataset.name }));
  else say(false, text("verify-other"));
});

function say(same, words) {
  verdict.className = `verdict ${same ? "same" : "other"}`;
  verdict.textContent = words;
}
