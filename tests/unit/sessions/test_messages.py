"""One message in four forms has the same role, text, calls and answers. The forms are those of the real packages."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ipfsmem.sessions.messages import Message, read_message, without_system
from tests.support.extras import need_extra

CALLED = Message("assistant", "Let me look.", ("look",), ("c1",))


def test_openai_chat_messages_are_read() -> None:
    types = need_extra("openai-agents", "openai.types.chat")
    message = types.ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        }
    )
    assert read_message(message.model_dump(exclude_none=True)) == CALLED
    assert read_message({"role": "tool", "tool_call_id": "c1", "content": "42"}) == Message(
        "tool", "42", answers=("c1",)
    )
    assert read_message({"role": "developer", "content": "Be kind."}).role == "system"


def test_plain_message_without_a_role_is_from_the_user() -> None:
    assert read_message({"speaker": " Ana ", "text": "Hello."}) == Message("user", "Hello.", speaker="Ana")
    assert read_message({"name": "Bob", "content": "Hello."}) == Message("user", "Hello.", speaker="Bob")
    assert read_message({"role": "assistant", "speaker": "Eve", "text": "Hi."}) == Message(
        "assistant", "Hi.", speaker="Eve"
    )
    assert read_message({"role": "user", "content": "", "text": "Hi."}) == Message("user", "")
    for item in (
        {"role": "narrator", "text": "x"},
        {"role": None, "text": "x"},
        {"speaker": "Ana"},
        {"text": 1},
    ):
        assert read_message(item) == Message("", "")


def test_openai_response_items_are_read() -> None:
    types = need_extra("openai-agents", "openai.types.responses")
    call = types.ResponseFunctionToolCall(
        arguments="{}", call_id="c1", name="look", type="function_call"
    ).model_dump(exclude_none=True)
    said = types.ResponseOutputMessage.model_validate(
        {
            "id": "m1",
            "role": "assistant",
            "status": "completed",
            "type": "message",
            "content": [{"type": "output_text", "text": "At pier 7.", "annotations": []}],
        }
    ).model_dump(exclude_none=True)
    assert read_message(call) == Message("assistant", "", ("look",), ("c1",))
    assert read_message({"type": "function_call_output", "call_id": "c1", "output": "42"}) == Message(
        "tool", "42", answers=("c1",)
    )
    assert read_message(said) == Message("assistant", "At pier 7.")
    assert read_message({"type": "web_search_call", "id": "w", "status": "completed"}).tools == (
        "web_search",
    )


def test_anthropic_messages_are_read() -> None:
    types = need_extra("anthropic", "anthropic.types")
    message = types.Message.model_validate(
        {
            "id": "m",
            "model": "x",
            "role": "assistant",
            "type": "message",
            "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
            ],
        }
    )
    item = {"role": message.role, "content": [block.model_dump() for block in message.content]}
    assert read_message(item) == CALLED
    answer = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "42"}]}
        ],
    }
    assert read_message(answer) == Message("user", "42", answers=("c1",))
    assert not read_message(answer).is_request


def test_pydantic_ai_messages_are_read() -> None:
    messages = need_extra("pydantic-ai", "pydantic_ai.messages")
    history = [
        messages.ModelRequest(
            parts=[messages.SystemPromptPart("Be kind."), messages.UserPromptPart("Where is the boat?")],
            instructions="Short.",
        ),
        messages.ModelResponse(
            parts=[messages.TextPart("Let me look."), messages.ToolCallPart("look", "{}", "c1")]
        ),
        messages.ModelRequest(parts=[messages.ToolReturnPart("look", "42", "c1")]),
        messages.ModelRequest(parts=[messages.SystemPromptPart("Only this.")]),
    ]
    request, called, answer, system = messages.ModelMessagesTypeAdapter.dump_python(history, mode="json")
    assert read_message(request) == Message("user", "Where is the boat?") and read_message(request).is_request
    assert read_message(called) == CALLED
    assert read_message(answer) == Message("tool", "42", answers=("c1",))
    kept = without_system(request)
    assert kept is not None and "instructions" not in kept
    assert [part["part_kind"] for part in kept["parts"]] == ["user-prompt"]
    assert without_system(system) is None and without_system(answer) is not None
    messages.ModelMessagesTypeAdapter.validate_python([kept])


def test_plain_messages_are_read() -> None:
    assert read_message({"role": "human", "content": ["Where", {"text": "is it?"}]}).text == "Where\nis it?"
    assert without_system({"role": "system", "content": "x"}) is None
    assert without_system({"role": "user", "content": "x"}) == {"role": "user", "content": "x"}
    assert read_message({"turn": 3}) == Message("", "")


NAMES = st.sampled_from(
    [
        "role",
        "content",
        "kind",
        "type",
        "parts",
        "text",
        "tool_calls",
        "id",
        "name",
        "part_kind",
        "output",
        "function",
    ]
)
NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(NAMES, inside, max_size=4),
    max_leaves=20,
)
VALUES = NESTED | st.sampled_from(
    ["user", "tool", "request", "response", "tool_result", "function_call", "tool-return"]
)


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_any_item_is_read_without_an_error(item: dict[str, Any]) -> None:
    message = read_message(item)
    assert isinstance(message.text, str) and all(
        isinstance(one, str) for one in message.tools + message.answers
    )
    kept = without_system(item)
    assert kept is None or kept.keys() <= item.keys() | {"parts"}


def test_half_a_surrogate_pair_is_read_as_the_replacement_character() -> None:
    for text, read in (
        ("cut \ud83d", "cut \ufffd"),
        ("\ude00 cut", "\ufffd cut"),
        ("both \ud83d\ude00", "both \U0001f600"),
        ("näh \U0001f600", "näh \U0001f600"),
    ):
        assert read_message({"role": "user", "content": text}).text == read
        assert read_message({"role": "assistant", "content": [{"type": "text", "text": text}]}).text == read


def test_deeply_nested_message_has_no_text() -> None:
    deep: Any = "end"
    for _ in range(5_000):
        deep = {"content": deep}
    assert read_message({"role": "user", "content": deep}).role == "user"


def test_half_a_surrogate_pair_in_a_name_is_replaced() -> None:
    message = read_message({"role": "user", "name": " Bob \ud83d", "content": "hello"})
    assert (message.speaker, message.text) == ("Bob \ufffd", "hello")
