"""Calls every operation of the API once, at a real server: HOLDFAST_URL, HOLDFAST_API_KEY, HOLDFAST_TOKEN, HOLDFAST_ORG
and HOLDFAST_EMBED_TOKEN. An operation may refuse, as the objects of most examples do not exist, but only in the ways that
the document names, and for another reason than its path, method, parameters or credential."""

import io
import os
import re
import sys
import unittest
from pathlib import Path
from typing import Any

import httpx
from holdfast import Holdfast, HoldfastError, Page, ReceivedFile
from holdfast._operations import OPERATIONS

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
from generate import snake  # noqa: E402

DOCUMENT = httpx.get(os.environ["HOLDFAST_URL"] + "/api/v2/openapi.json").json()
DESCRIBED = [
    (path, method, operation) for path, item in DOCUMENT["paths"].items() for method, operation in item.items()
]
# Changes of the organization come last: they could make later calls fail.
DESCRIBED.sort(key=lambda one: one[0] == "/organization")
KNOWN = {
    "slot": "rules.compliance", "role": "Buyer", "sha256": "0" * 64, "instance": "embedded", "token": "t",
    "email": "kim@elm.example",
}  # fmt: skip


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    named = schema.get("$ref")
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][named.rsplit("/", 1)[1]] if named else schema
    return found


def value(parameter: dict[str, Any]) -> str:
    """Returns a value that a parameter allows."""
    schema = resolved(parameter["schema"])
    prefix = re.match(r"\^\(?(\w+?_)", schema.get("pattern", ""))
    unknown = f"{prefix.group(1) if prefix else 'env_'}01jdk7m3e8f4x9s2w5v6b0c1dc"
    choices = resolved(schema["anyOf"][0] if "anyOf" in schema else schema)
    first = (choices.get("enum") or [one.get("const") for one in choices.get("oneOf", [])] or [unknown])[0]
    return KNOWN.get(parameter["name"], first)


class OperationsTest(unittest.TestCase):
    client = Holdfast(embed_token=os.environ["HOLDFAST_EMBED_TOKEN"], retries=0, timeout=20)

    def test_there_is_a_method_for_every_operation(self) -> None:
        named = sorted(snake(operation["operationId"]) for *_, operation in DESCRIBED)
        self.assertEqual(sorted(OPERATIONS), named)
        for name in named:
            self.assertTrue(callable(getattr(self.client, name)), name)

    def test_every_operation_reaches_its_path(self) -> None:
        for path, method, operation in DESCRIBED:
            name = snake(operation["operationId"])
            with self.subTest(f"{name} reaches {method} {path}"):
                self.call(name, operation)

    def call(self, name: str, operation: dict[str, Any]) -> None:
        inputs = {
            snake(one["name"]): value(one)
            for one in operation.get("parameters", [])
            if one["in"] == "path" or (one["in"] == "query" and one.get("required"))
        }
        content = operation.get("requestBody", {}).get("content", {})
        if form := content.get("multipart/form-data"):
            inputs |= form["example"] | {"file": ("contract.pdf", io.BytesIO(b"%PDF-1.7"))}
        elif content:
            inputs["body"] = content["application/json"]["example"]
        try:
            answer = getattr(self.client, name)(**inputs)
        except HoldfastError as error:
            told = f"{error.status}: {error}"
            # Callbacks of providers are signed by those.
            credential = [401] if operation["security"] else []
            self.assertIn(str(error.status), operation["responses"], told)
            self.assertNotIn(error.status, [400, 405, *credential], told)
            self.assertNotEqual(error.message, "Not found")
        else:
            if isinstance(answer, ReceivedFile):
                with answer:
                    self.assertTrue(OPERATIONS[name].file)
            elif OPERATIONS[name].list:
                self.assertIsInstance(answer, Page)
            else:
                self.assertIsNotNone(answer)


if __name__ == "__main__":
    unittest.main()
