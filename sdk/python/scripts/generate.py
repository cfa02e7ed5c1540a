"""Makes types.py and _operations.py from the OpenAPI document: the types with datamodel-code-generator, and a method for
each operation. Argument: the document, docs/openapi.json by default."""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "src" / "holdfast"
HEADER = "# Generated from the OpenAPI document; changes are lost.\n"
METHODS = ("get", "post", "put", "patch", "delete")


def snake(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return words + "_" if keyword.iskeyword(words) else words


def typed(schema: dict[str, Any]) -> str:
    """Returns the type of a schema, as the methods name it."""
    if named := schema.get("$ref"):
        return "_types." + named.rsplit("/", 1)[1]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next(one for one in kind if one != "null")
    if kind == "array":
        return f"list[{typed(schema.get('items', {}))}]"
    plain = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Any]"}
    return plain.get(str(kind), "Any")


def parameters(operation: dict[str, Any], place: str) -> list[dict[str, Any]]:
    return [one for one in operation.get("parameters", []) if one["in"] == place]


def method_of(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> tuple[str, str]:
    """Returns the row of an operation, and its method."""
    name = snake(operation["operationId"])
    headers = {one["name"] for one in parameters(operation, "header")}
    query = parameters(operation, "query")
    keyed = "Idempotency-Key" in headers
    done = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    answer = done.get("content", {}).get("application/json", {}).get("schema", {}).get("properties", {})
    is_list, is_file = "meta" in answer, "data" not in answer
    if is_file:
        output = "ReceivedFile"
    elif is_list:
        output = f"Page[{typed(answer['data']['items'])}]"
    else:
        output = typed(answer["data"])

    content = operation.get("requestBody", {}).get("content", {})
    positional, named, sent = [], [], {"body": "None", "form": "None"}
    for one in parameters(operation, "path"):
        positional.append(f"{snake(one['name'])}: str")
    if "application/json" in content:
        schema = content["application/json"]["schema"]
        described = schemas.get(schema.get("$ref", "").rsplit("/", 1)[-1], schema)
        optional = not described.get("required") and described.get("type") == "object"
        either = "multipart/form-data" in content
        positional.append(f"body: {typed(schema)}" + (" | None = None" if optional or either else ""))
        sent["body"] = "body if body is not None else {}" if optional and not either else "body"
    if "multipart/form-data" in content:
        schema = content["multipart/form-data"]["schema"]
        described = schemas.get(schema.get("$ref", "").rsplit("/", 1)[-1], schema)
        required = set(described.get("required", [])) if "application/json" not in content else set()
        members = []
        for member, shape in described["properties"].items():
            kind = "FileInput" if member == "file" else typed(shape)
            name_of = snake(member)
            named.append(f"{name_of}: {kind}" if member in required else f"{name_of}: {kind} | None = None")
            members.append(f'"{member}": {name_of}')
        form = "{" + ", ".join(members) + "}"
        sent["form"] = f"None if body is not None else {form}" if "application/json" in content else form
    for one in query:
        name_of = snake(one["name"])
        kind = typed(one["schema"])
        named.append(f"{name_of}: {kind}" if one.get("required") else f"{name_of}: {kind} | None = None")
    if keyed:
        named.append("idempotency_key: str | None = None")
    # Parameters with a default come last.
    positional.sort(key=lambda one: "=" in one)
    named.sort(key=lambda one: "=" in one)
    signature = ["self", *positional, *(["*", *named] if named else [])]
    in_path = ", ".join(f'"{one["name"]}": {snake(one["name"])}' for one in parameters(operation, "path"))
    in_query = ", ".join(f'"{one["name"]}": {snake(one["name"])}' for one in query)
    security = next(iter((operation.get("security") or [{}])[0]), None)
    row = (
        f'    "{name}": Operation({method.upper()!r}, {path!r}, {method == "get" or keyed}, {security!r}, '
        f"org={'X-Org-Id' in headers}, list={is_list}, file={is_file}, "
        f"cursor={any(one['name'] == 'starting_after' for one in query)}, "
        f"limit={any(one['name'] == 'limit' for one in query)}),"
    )
    text = f'''
    @_named("{name}")
    def {name}({", ".join(signature)}) -> {output}:
        """{operation["description"]}"""
        answer: {output} = self._call(
            OPERATIONS["{name}"], {{{in_path}}}, {{{in_query}}}, {sent["body"]}, {sent["form"]}{", idempotency_key" if keyed else ""}
        )
        return answer
'''
    return row, text


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent.parent.parent / "docs" / "openapi.json"
    document = json.loads(source.read_text())
    schemas = document["components"]["schemas"]
    arguments = [
        "--input-file-type", "openapi", "--openapi-scopes", "schemas", "--output-model-type", "typing.TypedDict",
        "--target-python-version", "3.11", "--enum-field-as-literal", "all", "--use-schema-description",
        "--use-field-description", "--disable-timestamp", "--formatters", "builtin",
    ]  # fmt: skip
    target = PACKAGE / "types.py"
    command = [sys.executable, "-W", "ignore", "-m", "datamodel_code_generator", *arguments]
    subprocess.run([*command, "--input", str(source), "--output", str(target)], check=True)
    events = ",\n".join(f'    "{name}"' for name in document["webhooks"])
    target.write_text(
        f"{HEADER}{target.read_text()}\n\n"
        f"WebhookEventType: TypeAlias = Literal[\n{events},\n]\n\n\n"
        "class WebhookEvent(TypedDict):\n"
        '    """An event, as this service posts it."""\n\n'
        "    event_type: WebhookEventType\n    event_id: str\n    org_id: str\n"
        "    envelope_id: str | None\n    timestamp: str\n    data: dict[str, Any]\n"
    )
    made = [
        method_of(path, method, item[method], schemas)
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    ]
    rows, methods = "\n".join(row for row, _ in made), "".join(text for _, text in made)
    (PACKAGE / "_operations.py").write_text(
        f'''{HEADER}"""A method for each operation of the API."""

from __future__ import annotations

from typing import Any, Callable, TypeVar

from . import types as _types
from ._transport import FileInput, Operation, Page, ReceivedFile, Transport

OPERATIONS: dict[str, Operation] = {{
{rows}
}}

F = TypeVar("F", bound=Callable[..., Any])


def _named(name: str) -> Callable[[F], F]:
    def keep(method: F) -> F:
        setattr(method, "operation", OPERATIONS[name])
        return method

    return keep


class Operations(Transport):
    """Methods of the client."""
{methods}'''
    )


if __name__ == "__main__":
    main()
