// An identity provider: implements the world of holdfast on top of the API of one vendor.
// The vendor, Example Identity, is fictitious: replace it with yours.

// Whether a text can be a part of a path.
const isId = (text) => /^[A-Za-z0-9_-]+$/.test(text);

const wrongAddress = () => notConfigured("setting base_url: the vendor's API is not there");

const FIELDS = [
  { name: "first_name", label: "First name", required: true },
  { name: "last_name", label: "Last name", required: true },
  { name: "phone", label: "Mobile phone", required: true },
  { name: "date_of_birth", label: "Date of birth", required: false },
];

const STEPS = {
  code_sent: "code-sent",
  code_wrong: "code-wrong",
  no_history: "unavailable",
  passed: "passed",
  failed: "failed",
  expired: "expired",
};

function list(value) {
  if (!Array.isArray(value)) throw notUnderstood();
  return value;
}

const choice = ({ id, text }) => ({ id: is("string", id), text: is("string", text) });

function question(asked) {
  const { id, text, choices } = object(asked);
  return { id: is("string", id), text: is("string", text), choices: list(choices).map(object).map(choice) };
}

function step({ state, questions }) {
  if (state === "questions") {
    const asked = list(questions ?? []).map(question);
    // A form without questions proves nothing.
    return asked.length === 0 ? { tag: "unavailable" } : { tag: "questions", val: asked };
  }
  // Only a clear result may open or close the document.
  if (!Object.hasOwn(STEPS, is("string", state))) throw notUnderstood();
  return { tag: STEPS[state] };
}

// The state of a call is the id of its session.
function progress(answer) {
  const session = object(answer);
  const id = is("string", session.id);
  if (!isId(id)) throw notUnderstood();
  return { sessionId: id, step: step(session), state: id };
}

// Sends what the signer entered.
async function submit(state, what, body) {
  if (!isId(state)) throw { tag: "rejected", val: "no state of this plugin" };
  const session = await ask("POST", `/sessions/${state}/${what}`, body);
  // The vendor deletes a session that took too long.
  if (session === undefined) return { sessionId: state, step: { tag: "expired" }, state };
  return progress(session);
}

export const kba = {
  requiredIdentity: () => FIELDS,

  async start(identity) {
    const session = await ask("POST", "/sessions", { person: Object.fromEntries(identity) });
    if (session === undefined) throw wrongAddress();
    return progress(session);
  },

  submitCode: (state, code) => submit(state, "code", { code }),

  submitAnswers: (state, answers) => submit(state, "answers", { answers: Object.fromEntries(answers) }),
};

export const probing = {
  async probe() {
    const account = await ask("GET", "/account");
    if (account === undefined) throw wrongAddress();
    is("string", object(account).id);
  },
};
