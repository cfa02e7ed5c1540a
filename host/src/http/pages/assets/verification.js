// Compares a file with the fingerprints on the page. The file stays in the browser.

const verdict = document.querySelector(".verdict");

document.getElementById("file").addEventListener("change", async ({ target }) => {
  const file = target.files[0];
  if (!file) return;
  verdict.className = "verdict";
  verdict.textContent = "Comparing…";
  const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer()).catch(() => null);
  if (!digest) {
    say(false, "This browser cannot compare files. Compare the fingerprints below with a program such as sha256sum.");
    return;
  }
  const hash = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const match = document.querySelector(`[data-sha256="${hash}"]`);
  if (match) say(true, `Yes: your file is ${match.dataset.name}, unchanged.`);
  else say(false, "No: your file is another one, or it was changed. A file that was printed and scanned, or saved again by a program, counts as changed.");
});

function say(same, text) {
  verdict.className = `verdict ${same ? "same" : "other"}`;
  verdict.textContent = text;
}
