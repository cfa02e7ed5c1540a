"""A mail server for the tests: aiosmtpd, which saves accepted mails as files.

Its one argument is a JSON object:

  folder    each mail is saved here as NNN.eml, with details of its delivery in NNN.json
  port      to listen on at 127.0.0.1; 0 for any
  tls       "none", "starttls" (required before any other command) or "implicit"
  certificate, key   PEM files, for TLS
  user, password     required login; absent: no login needed
  busy      number of mails that are refused temporarily (451) before the first is accepted
  nobody    an address that is refused permanently (550)
  largest   size of the largest accepted mail in bytes (552)

It prints the port it listens on, and ends when its standard input is closed.
"""

import asyncio
import json
import os
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


class Handler:
    def __init__(self, settings):
        self.settings = settings
        self.busy = settings.get("busy", 0)

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address == self.settings.get("nobody"):
            return "550 5.1.1 nobody has this address"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        if self.busy > 0:
            self.busy -= 1
            return "451 4.3.2 come back later"
        if len(envelope.original_content) > self.settings.get("largest", 1 << 40):
            return "552 5.3.4 too large"
        folder = self.settings["folder"]
        number = sum(name.endswith(".eml") for name in os.listdir(folder))
        how = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "encrypted": session.ssl is not None or self.settings["tls"] == "implicit",
            "user": (session.auth_data.login.decode() if session.auth_data else None),
        }
        write(folder, f"{number:03}.json", json.dumps(how).encode())
        write(folder, f"{number:03}.eml", envelope.original_content)
        return "250 OK"


def write(folder, name, content):
    """Writes atomically, because the test polls the folder meanwhile."""
    temporary = os.path.join(folder, f".{name}")
    with open(temporary, "wb") as file:
        file.write(content)
    os.rename(temporary, os.path.join(folder, name))


def authenticator(settings):
    def authenticate(server, session, envelope, mechanism, data):
        expected = LoginPassword(settings["user"].encode(), settings["password"].encode())
        return AuthResult(success=data == expected, handled=False, auth_data=data)

    return authenticate


def protocol(settings, handler, context):
    login = "user" in settings
    starttls = settings["tls"] == "starttls"
    return SMTP(
        handler,
        hostname="mail.example",
        tls_context=context if starttls else None,
        require_starttls=starttls,
        authenticator=authenticator(settings) if login else None,
        auth_required=login,
        auth_require_tls=starttls,
    )


async def serve(settings):
    context = None
    if settings["tls"] != "none":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings["certificate"], settings["key"])
    handler = Handler(settings)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: protocol(settings, handler, context),
        "127.0.0.1",
        settings["port"],
        ssl=context if settings["tls"] == "implicit" else None,
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    os._exit(0)


asyncio.run(serve(json.loads(sys.argv[1])))
