"""The description of the endpoints, made from the declarations of the verbs."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from ragdocs import __version__
from ragdocs.serve.http.api import verbs
from ragdocs.serve.surface import Verb
from ragdocs.serve.surface.checking import arguments_model

REFERENCE = "#/components/schemas/{model}"
ERROR = {
    "type": "object",
    "properties": {
        "error": {"type": "string"},
        "hint": {"type": "string"},
        "conflict": {"type": "object"},
    },
    "required": ["error", "hint"],
}
FAILURES = {
    "400": "an argument is wrong",
    "401": "a token is needed",
    "403": "the role does not allow it",
    "404": "there is no such thing",
    "408": "the call took too long",
    "409": "it exists already, or somebody changed it meanwhile",
    "413": "the request is too large",
    "429": "too many requests",
    "503": "not available now",
}


def description(server: str = "/") -> dict[str, Any]:
    """Return the OpenAPI description of all endpoints."""
    schemas: dict[str, Any] = {"Error": ERROR}
    paths = {}
    for verb in verbs():
        paths[f"/api/{verb.name}"] = _path(verb, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "ragdocs", "version": __version__},
        "servers": [{"url": server}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _path(verb: Verb, schemas: dict[str, Any]) -> dict[str, Any]:
    arguments = _moved(arguments_model(verb).model_json_schema(ref_template=REFERENCE), schemas)
    result = _moved(TypeAdapter(verb.result).json_schema(ref_template=REFERENCE), schemas)
    responses: dict[str, Any] = {
        "200": {"description": "the answer", "content": {"application/json": {"schema": result}}}
    }
    for status, reason in FAILURES.items():
        schema = {"$ref": REFERENCE.format(model="Error")}
        responses[status] = {
            "description": reason,
            "content": {"application/json": {"schema": schema}},
        }
    operation = {
        "operationId": verb.name,
        "summary": verb.title,
        "description": verb.explanation,
        "tags": [verb.toolset],
        "responses": responses,
    }
    body = {"required": True, "content": {"application/json": {"schema": arguments}}}
    path: dict[str, Any] = {"post": {**operation, "requestBody": body}}
    if verb.effect == "read":
        query = _parameters(arguments)
        get = {**operation, "operationId": f"{verb.name}_by_address", "parameters": query}
        path["get"] = get
    return path


def _parameters(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Return arguments as parameters of an address; tables can only be sent in a body."""
    parameters = []
    required = arguments.get("required", [])
    for name, schema in arguments["properties"].items():
        if schema.get("type") == "object":
            continue
        parameters.append(
            {
                "name": name,
                "in": "query",
                "required": name in required,
                "description": schema.get("description", ""),
                "schema": schema,
            }
        )
    return parameters


def _moved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Move the definitions of a schema to those of the whole description."""
    schemas.update(schema.pop("$defs", {}))
    return schema
