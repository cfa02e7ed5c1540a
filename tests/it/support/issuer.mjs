// A conforming OpenID Connect issuer. Reads its client and people from the environment (JSON) and prints its address.
//
// The login page asks for the address of a person and, with a checkbox, for a second factor.
import http from "node:http";

const { default: Provider } = await import(`${process.env.MODULES}/oidc-provider/lib/index.js`);
const { client, people } = JSON.parse(process.env.SETTINGS);
const FACTOR = "urn:oak:two-factors";

const server = http.createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [client],
    acrValues: [FACTOR],
    claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"], acr: null, auth_time: null },
    scopes: ["openid", "email", "groups"],
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: true } },
    interactions: { url: (_, interaction) => `/login/${interaction.uid}` },
    pkce: { required: () => true, methods: ["S256"] },
    findAccount: (_, id) => people[id] && { accountId: id, claims: () => ({ sub: id, email_verified: true, ...people[id] }) },
    // Clients of an organization's own issuer need no consent of each person.
    loadExistingGrant: async ctx => {
      const { accountId } = ctx.oidc.session;
      const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId });
      grant.addOIDCScope("openid email groups");
      await grant.save();
      return grant;
    },
  });
  const answer = provider.callback();
  server.on("request", async (request, response) => {
    if (!request.url.startsWith("/login/")) return answer(request, response);
    if (request.method === "GET") {
      response.setHeader("content-type", "text/html; charset=utf-8");
      response.end(`<!doctype html><html lang="en"><title>Oak Login</title><main><h1>Oak Login</h1>
        <form method="post"><label>Address <input id="login" name="login"></label>
        <label><input id="factor" type="checkbox" name="factor"> Second factor</label>
        <button>Log in</button></form></main></html>`);
      return;
    }
    let body = "";
    for await (const part of request) body += part;
    const form = new URLSearchParams(body);
    const login = { accountId: form.get("login"), remember: false };
    if (form.get("factor")) login.acr = FACTOR;
    await provider.interactionFinished(request, response, { login }, { mergeWithLastSubmission: false });
  });
  console.log(issuer);
});
