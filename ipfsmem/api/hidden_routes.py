"""The routes about memories that are hidden on this device."""

from __future__ import annotations

from typing import Final

from ipfsmem.api.calls import Call
from ipfsmem.api.life_bodies import ChangedKeys, Hiddens, HiddenText, HideBody
from ipfsmem.api.routes import Route


def _hidden(call: Call) -> Hiddens:
    return Hiddens(hidden=[HiddenText.of(one) for one in call.memory.hidden.list()])


def _hide(call: Call) -> ChangedKeys:
    given: HideBody = call.body
    return ChangedKeys(keys=call.memory.hidden.add(given.keys))


def _bring_back(call: Call) -> ChangedKeys:
    given: HideBody = call.body
    return ChangedKeys(keys=call.memory.hidden.bring_back(given.keys))


ROUTES: Final = (
    Route(
        "get", "/v1/hidden", "hidden", "List the memories that are hidden on this device", _hidden, Hiddens
    ),
    Route(
        "post",
        "/v1/hidden",
        "hide",
        "Hide memories on this device",
        _hide,
        ChangedKeys,
        right="write",
        body=HideBody,
    ),
    Route(
        "post",
        "/v1/hidden/back",
        "bring_back",
        "Show hidden memories again",
        _bring_back,
        ChangedKeys,
        right="write",
        body=HideBody,
    ),
)
