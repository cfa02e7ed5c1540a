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

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential) continue;
  form.hidden = false;
  form.nextElementSibling.hidden = true;
  form.addEventListener("submit", async event => {
    event.preventDefault();
    const problem = form.querySelector(".problem");
    problem.hidden = true;
    try {
      form.elements.passkey.value = JSON.stringify(await answer(form));
      form.submit();
    } catch {
      problem.hidden = false;
    }
  });
}
