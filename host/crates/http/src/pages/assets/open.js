// Proof of work of an open link: while the visitor types, the browser looks for a number whose digest behind the challenge
// begins with enough zero bits. Without a number, the server sends the link by mail, and lets fewer documents be made.

/** Digests that are computed before the page gets a turn. */
const CHUNK = 256;

const form = document.querySelector("form[data-working]");
const challenge = form?.elements.namedItem("challenge");
const proof = form?.elements.namedItem("proof");

// Browsers have no WebCrypto on pages without TLS.
if (proof && globalThis.crypto?.subtle) work();

function work() {
  proof.value = "";
  const found = find(challenge.value).then((number) => {
    proof.value = String(number);
  });

  form.addEventListener("submit", async (event) => {
    if (proof.value) return;
    event.preventDefault();
    const [button, status] = [form.querySelector("button[type=submit]"), form.querySelector("[role=status]")];
    button.disabled = true;
    status.textContent = text("open-checking");
    await found.catch(() => {});
    // A browser that keeps the page shows it again on the way back.
    button.disabled = false;
    status.textContent = "";
    form.submit();
  });
}

/** Returns the first number that meets a challenge. */
async function find(challenge) {
  const difficulty = Number(challenge.split(".")[1]);
  const encoder = new TextEncoder();
  const digest = (number) => crypto.subtle.digest("SHA-256", encoder.encode(`${challenge}.${number}`));
  for (let first = 0; ; first += CHUNK) {
    const numbers = Array.from({ length: CHUNK }, (_, at) => first + at);
    const digests = await Promise.all(numbers.map(digest));
    const at = digests.findIndex((bytes) => zeroBits(new Uint8Array(bytes)) >= difficulty);
    if (at >= 0) return first + at;
    // A task of its own, so that the page reacts to its reader meanwhile.
    await new Promise((resolve) => setTimeout(resolve));
  }
}

function zeroBits(bytes) {
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return zeros * 8 + Math.clz32(bytes[zeros]) - 24;
}
