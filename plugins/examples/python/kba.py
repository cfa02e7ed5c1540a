# An identity provider: implements the world of holdfast on top of the API of one vendor.
# The vendor, Example Identity, is fictitious: replace it with yours.

FIELDS = [
    ("first_name", "First name", True),
    ("last_name", "Last name", True),
    ("phone", "Mobile phone", True),
    ("date_of_birth", "Date of birth", False),
]

STEPS = {
    "code_sent": types.Step_CodeSent,
    "code_wrong": types.Step_CodeWrong,
    "no_history": types.Step_Unavailable,
    "passed": types.Step_Passed,
    "failed": types.Step_Failed,
    "expired": types.Step_Expired,
}


def is_id(text: str) -> bool:
    """Whether a text can be a part of a path."""
    return re.fullmatch("[A-Za-z0-9_-]+", text) is not None


def wrong_address() -> Err:
    return not_configured("setting base_url: the vendor's API is not there")


def choice(one: Any) -> types.Choice:
    return types.Choice(an(str, an(dict, one).get("id")), an(str, one.get("text")))


def question(one: Any) -> types.Question:
    choices = [choice(offered) for offered in an(list, an(dict, one).get("choices"))]
    return types.Question(an(str, one.get("id")), an(str, one.get("text")), choices)


def step(session: Json) -> Any:
    state = an(str, session.get("state"))
    if state == "questions":
        asked = [question(one) for one in an(list, session.get("questions", []))]
        # A form without questions proves nothing.
        return types.Step_Questions(asked) if asked else types.Step_Unavailable()
    # Only a clear result may open or close the document.
    if state not in STEPS:
        not_understood()
    return STEPS[state]()


def progress(session: Json) -> types.Progress:
    """The state of a call is the id of its session."""
    session_id = an(str, session.get("id"))
    if not is_id(session_id):
        not_understood()
    return types.Progress(session_id, step(session), session_id)


def submit(state: str, what: str, body: Json) -> types.Progress:
    """Sends what the signer entered."""
    if not is_id(state):
        raise Err(types.ProviderError_Rejected("no state of this plugin"))
    session = ask("POST", f"/sessions/{state}/{what}", body)
    # The vendor deletes a session that took too long.
    if session is None:
        return types.Progress(state, types.Step_Expired(), state)
    return progress(session)


class Kba(exports.Kba):
    def required_identity(self) -> list[types.IdentityField]:
        return [types.IdentityField(*field) for field in FIELDS]

    def start(self, identity: list[tuple[str, str]]) -> types.Progress:
        session = ask("POST", "/sessions", {"person": dict(identity)})
        if session is None:
            raise wrong_address()
        return progress(session)

    def submit_code(self, state: str, code: str) -> types.Progress:
        return submit(state, "code", {"code": code})

    def submit_answers(self, state: str, answers: list[tuple[str, str]]) -> types.Progress:
        return submit(state, "answers", {"answers": dict(answers)})


class Probing(exports.Probing):
    def probe(self) -> None:
        account = ask("GET", "/account")
        if account is None:
            raise wrong_address()
        an(str, account.get("id"))
