"""What `/openapi.json` says of the API is true: requests made from it are answered as it says."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from mailout.adapters.sqlite import SqliteStore
from mailout.kinds.single_mails.companies import Scope, add_token, new_token
from tests.gateway.conftest import Open

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
OPERATIONS = [
    ("/v1/email/send", "POST"),
    ("/v1/email/send-batch", "POST"),
    ("/v1/email/{outboxId}", "GET"),
    ("/v1/recipients/{externalId}", "PUT"),
    ("/v1/recipients/{externalId}", "GET"),
    ("/v1/recipients/{externalId}", "DELETE"),
]


@pytest.fixture
def described(open_gateway: Open, store: SqliteStore) -> tuple[schemathesis.BaseSchema, str, str]:
    text, token = new_token("acme", tuple(Scope), None)
    add_token(store, token)
    client = open_gateway(unsubscribe_base_url="https://x.y/unsubscribe")
    document = client.get("/openapi.json").json()
    return schemathesis.openapi.from_dict(document), str(client.base_url), text


def test_no_reference_points_nowhere(open_gateway: Open) -> None:
    document = open_gateway().get("/openapi.json").json()
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document)):
        found = document
        for name in reference.split("/"):
            found = found[name]


def test_the_api_says_which_token_it_wants(open_gateway: Open) -> None:
    document = open_gateway().get("/openapi.json").json()
    schemes = document["components"]["securitySchemes"]
    for path, method in OPERATIONS:
        [needed] = document["paths"][path][method.lower()]["security"]
        [name] = needed
        assert (schemes[name]["type"], schemes[name]["scheme"]) == ("http", "bearer")
        assert "tokens create" in schemes[name]["description"]
    [ours] = document["paths"]["/mail/progress/poll/"]["get"]["security"][0]
    assert "API_TOKEN" in schemes[ours]["description"]


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_the_description_is_true(
    described: tuple[schemathesis.BaseSchema, str, str], path: str, method: str
) -> None:
    schema, address, token = described

    @seed(7)
    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path][method].as_strategy())
    def run(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(
            base_url=address,
            headers={"Authorization": f"Bearer {token}", "X-Request-Id": "test"},
            checks=CHECKS,
        )

    run()
