"""The graph is derived from texts, follows them, is changed by writing them, and excludes pending texts
and other scopes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipfsmem.errors import ChangedError, NotFoundError, UsageError
from ipfsmem.memory import Memory
from ipfsmem.tools import EVERYDAY, GRAPH, PEERS, toolset
from tests.support.hints import hinted
from tests.support.meanwhile import meanwhile
from tests.support.tools_lab import Model, others


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.load("x", mode="none", home=tmp_path) as opened:
        yield opened


def joined(memory: Memory) -> set[tuple[str, str, str]]:
    return {(one.begin, one.type, one.end) for one in memory.graph.relations()}


def test_entities_are_memories_with_their_texts(memory: Memory) -> None:
    memory.graph.add("Ada Lovelace", "person", ["born 1815"])
    memory.graph.add("Acme", "company")
    assert memory.graph.relate("ada lovelace", "works at", "acme")
    assert not memory.graph.relate("Ada Lovelace", "Works At", "Acme"), "once is enough"
    memory.write("note", "See [[Acme]], and [[nobody]].")
    assert joined(memory) == {("ada_lovelace", "works_at", "acme"), ("note", "links_to", "acme")}
    path = memory.graph.path("note", "Ada Lovelace")
    assert path is not None and [one.type for one in path] == ["links_to", "works_at"]
    assert [one.key for one in memory.graph.query("ada_lovelace", "works at")] == ["acme"]
    assert [one.key for one in memory.graph.search("born lovelace")] == ["ada_lovelace"]
    assert {hit.key for hit in memory.recall("lovelace").hits} == {"ada_lovelace"}
    memory.write("note", "Nothing.")
    memory.forget("acme")
    assert joined(memory) == set() and not memory.facts.list()


def test_deleted_observation_can_be_restored_and_prose_is_unchanged(memory: Memory) -> None:
    memory.graph.add("Bob", "person", ["likes tea", "is tall"])
    memory.graph.add("Acme")
    memory.graph.relate("bob", "works at", "acme")
    assert memory.graph.unobserve("Bob", ["is tall", "never said"]).observations == ("is tall",)
    assert memory.graph.unrelate("bob", "works_at", "acme") and not memory.graph.unrelate(
        "bob", "works_at", "acme"
    )
    assert memory.graph.delete("Bob") and not memory.graph.delete("Bob") and memory.read("bob") is None
    memory.facts.restore("bob")
    assert [one.observations for one in memory.graph.search("bob")] == [("likes tea",)] and joined(
        memory
    ) == set()
    memory.write("story", "# A story\n\nOnce there was [[Bob]].\n\n- one thing")
    memory.graph.relate("story", "told by", "bob")
    memory.graph.observe("story", ["another thing"])
    text = memory.read("story")
    assert text is not None and text.file.body.startswith(
        "# A story\n\nOnce there was [[Bob]].\n\n- one thing\n\n"
    )
    assert ("story", "told_by", "bob") in joined(memory)
    for wrong in (lambda: memory.graph.unobserve("story", ["one thing"]), lambda: memory.graph.unrelate("story", "links_to", "bob")):  # fmt: skip
        with pytest.raises(UsageError, match="is not an entity of the graph tools"):
            wrong()


def test_graph_omits_other_scopes_pending_and_hidden_texts(memory: Memory) -> None:
    memory.graph.add("Acme")
    memory.scope("work").graph.add("Secret plan", "plan")
    memory.scope("work").write("note", "[[acme]] and [[secret_plan]]")
    others(memory, "evil", "[[acme]]")
    assert joined(memory) == set() and [one.key for one in memory.graph.list()] == ["acme"]
    assert joined(memory.scope("work")) == {("note", "links_to", "secret_plan")}
    memory.write("mine", "[[acme]]")
    memory.hidden.add(["mine"])
    assert joined(memory) == set()
    memory.hidden.bring_back()
    assert joined(memory) == {("mine", "links_to", "acme")}


def test_entity_of_a_redirected_scope_has_the_token_of_the_shown_text(memory: Memory) -> None:
    """Its caller deletes nothing else."""
    memory.scope("sub").graph.add("Ada", "person", ["likes tea"])
    top = memory.scope("top")
    top.graph.add("Ada", "person", ["likes coffee"])
    memory.scopes.redirect("sub", "top")
    first = top.graph.get("Ada")
    assert first is not None and first.observations == ("likes coffee",) and first.seen
    top.hidden.add(["ada"])
    shown = top.graph.get("Ada")
    assert shown is not None and shown.observations == ("likes tea",) and shown.seen == ""
    for seen in (shown.seen, None):
        with pytest.raises(ChangedError):
            top.graph.delete("Ada", seen=seen)
    assert [one.key for one in top.hidden.list()] == ["ada"]


def test_invalid_graph_calls_are_refused(memory: Memory) -> None:
    memory.graph.add("Acme")
    for call in (lambda: memory.graph.around("acme", 99), lambda: memory.graph.list(limit=0), lambda: memory.graph.search(" "), lambda: memory.graph.add("a\nb"), lambda: memory.graph.add("x", observations=[" "])):  # fmt: skip
        with pytest.raises(UsageError):
            call()
    for call in (lambda: memory.graph.path("acme", "nobody"), lambda: memory.graph.relate("acme", "x", "nobody"), lambda: memory.graph.observe("nobody", ["x"])):  # fmt: skip
        with pytest.raises(NotFoundError):
            call()
    with pytest.raises(UsageError, match="format must be graphml, mermaid or html"):
        memory.graph.drawn(format="pdf")  # type: ignore[arg-type]
    assert "Acme" in memory.graph.drawn(format="mermaid").text
    assert [one.key for one in memory.graph.list()] == ["acme"]


def test_reference_server_operations_are_supported(memory: Memory) -> None:
    model = Model(memory, names=["graph"])
    assert tuple(model.tools) == GRAPH and not set(GRAPH) & {*EVERYDAY, *PEERS}
    model("create_entities", entities=[{"name": "Ada", "entityType": "person", "observations": ["born 1815"]}, {"name": "Acme", "entityType": "company", "observations": []}])  # fmt: skip
    work = {"from": "Ada", "relationType": "works_at", "to": "Acme"}
    assert model("create_relations", relations=[work]).structured == {"changed": 1, "relations": [work]}
    assert model("add_observations", observations=[{"entityName": "Ada", "contents": ["likes tea", "born 1815"]}]).structured == {"changed": 1, "results": [{"entityName": "Ada", "addedObservations": ["likes tea"]}]}  # fmt: skip
    graph = model("read_graph").structured
    assert [one["name"] for one in graph["entities"]] == ["Acme", "Ada"]
    assert graph["relations"] == [work]
    assert model("open_nodes", names=["Ada"]).structured["entities"][0]["observations"] == [
        "born 1815",
        "likes tea",
    ]
    assert len(model("search_nodes", query="tea").structured["entities"]) == 1
    assert model("delete_observations", deletions=[{"entityName": "Ada", "observations": ["likes tea"]}]).structured["changed"] == 1  # fmt: skip
    assert model("delete_relations", relations=[work]).structured["changed"] == 1
    assert model("delete_entities", entityNames=["Ada", "nobody"]).structured["changed"] == 1
    assert [one["key"] for one in model("read_graph").structured["entities"]] == ["acme"]
    for tool, wrong in (("create_entities", {"entities": [{"name": 1}]}), ("create_relations", {"relations": [{"from": "Acme"}]}), ("add_observations", {"observations": [{"entityName": "Acme", "contents": {"x": 1}}]}), ("create_relations", {"relations": [{**work, "to": "nobody"}]})):  # fmt: skip
        model.refused(tool, **wrong)
    said = model.refused("create_relations", relations=[{**work, "to": "nobody"}])
    hinted("Create it: create_entities.", said)
    model("create_entities", entities=[{"name": "nobody", "entityType": "person"}])
    assert model("add_observations", observations=[{"entityName": "nobody", "contents": ["x"]}]).structured["changed"] == 1  # fmt: skip


def test_open_finds_entities_beyond_first_thousand_and_shared_names_by_key(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    for number in range(1_100):
        text = f"---\nname: Entity {number}\ntags: [entity]\n---\n\n- number {number}\n"
        (folder / f"e{number:04}.md").write_text(text)
    for key in ("z1", "z2"):
        text = "---\nname: Bo\ntags: [entity]\n---\n\n- is one\n\nRelations:\n\n- knows: [[e1099]]\n"
        (folder / f"{key}.md").write_text(text)
    with Memory.load("x", "none") as memory:
        memory.bundles.import_(tmp_path)
        model = Model(memory, names=["graph"])
        found = model("open_nodes", names=["Entity 1099"]).structured
        assert [one["key"] for one in found["entities"]] == ["e1099"]
        assert [(one["from"], one["to"]) for one in found["relations"]] == [
            ("Bo", "Entity 1099"),
            ("z2", "Entity 1099"),
        ]
        assert [one["key"] for one in model("open_nodes", names=["Bo"]).structured["entities"]] == [
            "z1",
            "z2",
        ]
        many = model("search_nodes", query="number").structured
        assert len(many["entities"]) == 200 and many["more"]


def test_graph_tools_accept_the_calls_of_librefang(memory: Memory) -> None:
    model = Model(memory, names=["graph"])
    model("knowledge_add_entity", name="Ada", entity_type="person", properties={"born": 1815})
    model("knowledge_add_entity", name="Acme", entity_type="organization")
    assert model("knowledge_add_relation", source="Ada", relation="works_at", target="Acme").structured == {
        "changed": 1
    }
    found = model("knowledge_query", target="Acme", max_depth=1).structured
    assert {one["key"] for one in found["entities"]} == {"ada", "acme"} and len(found["relations"]) == 1
    assert {one["name"] for one in model("knowledge_query", source="ada", relation="works_at").structured["entities"]} == {"Ada", "Acme"}  # fmt: skip
    assert {tool.name for tool in toolset(memory, ["graph"], read_only=True)} == {"read_graph", "search_nodes", "open_nodes", "knowledge_query"}  # fmt: skip


def test_procedures_and_episodes_are_saved_by_their_tools(memory: Memory) -> None:
    model = Model(memory)
    said = model("learn_procedure", content="Run the tests first", category="Work Style")
    assert (
        said.text.startswith("Learned procedure (id=procedure_")
        and said.structured["category"] == "work_style"
    )
    assert model("learn_procedure", content="run the tests first").structured["action"] == "kept"
    assert model("record_episode", content="The deploy failed").text.startswith(
        "Recorded episode (id=episode_"
    )
    model("save_memory", fact="prefers tabs", category="preference")
    assert {one.kind for one in memory.facts.list()} == {"fact", "procedure", "episode"}
    model.refused("record_episode", content=" - ")


def test_recall_includes_relations_on_request(memory: Memory) -> None:
    memory.graph.add("Ada", "person", ["likes green tea"])
    memory.graph.add("Acme", "company")
    memory.graph.relate("Ada", "works at", "Acme")
    memory.write("note", "[[Ada]] was here.")
    memory.scope("work").write("tea", "Green tea of the office, see [[ada]].")
    (hit,) = memory.recall("green tea", include_relations=True).hits
    assert hit.joined == (("ada", "works_at", "acme"), ("note", "links_to", "ada"))
    assert memory.recall("green tea").hits[0].joined is None
    stacked = {
        one.key: one.joined for one in memory.stack("work").recall("green tea", include_relations=True).hits
    }
    assert stacked == {"ada": hit.joined, "tea": ()}, "each in the graph of its scope"
    (tool,) = toolset(memory, ["recall"])
    assert (
        "> ada works_at acme\n> note links_to ada\n</memory-relations>"
        in tool.call(query="green tea", include_relations=True).text
    )
    assert "works_at" not in tool.call(query="green tea").text.replace("- works_at: [[acme]]", "")
    memory.write("many", "\n".join(f"- knows [[m{n}]]" for n in range(50)))
    for number in range(50):
        memory.write(f"m{number}", f"Other {number}.")
    (many,) = [one for one in memory.recall("knows", include_relations=True).hits if one.key == "many"]
    assert len(many.joined) == 20


def test_text_written_by_another_process_meanwhile_is_kept(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = memory.graph
    graph.add("Bob", "person", ["likes tea"])
    graph.add("Acme")
    meanwhile(monkeypatch, "write", lambda: graph.observe("Bob", ["is tall"]))
    assert graph.relate("bob", "works at", "acme")
    meanwhile(monkeypatch, "write", lambda: graph.observe("Bob", ["is kind"]))
    assert graph.unrelate("bob", "works at", "acme")
    meanwhile(monkeypatch, "write", lambda: graph.relate("bob", "knows", "acme"))
    assert graph.unobserve("Bob", ["is kind"])
    meanwhile(monkeypatch, "write", lambda: graph.relate("bob", "owns", "acme"))
    assert graph.relate("bob", "owns", "acme")
    bob = graph.get("Bob")
    assert bob is not None and bob.observations == ("likes tea", "is tall")
    assert joined(memory) == {("bob", "knows", "acme"), ("bob", "owns", "acme")}


def test_refused_delete_of_an_entity_keeps_the_relations_to_it(memory: Memory) -> None:
    for name in ("Ada", "Bob"):
        memory.graph.add(name, "person")
    memory.graph.relate("bob", "knows", "ada")
    memory.graph.relate("ada", "knows", "ada")
    seen = shown.seen if (shown := memory.graph.get("ada")) else ""
    memory.graph.observe("ada", ["likes tea"])
    with pytest.raises(ChangedError):
        memory.graph.delete("ada", seen=seen, relations=True)
    assert joined(memory) == {("bob", "knows", "ada"), ("ada", "knows", "ada")}
    seen = shown.seen if (shown := memory.graph.get("ada")) else ""
    assert memory.graph.delete("ada", seen=seen, relations=True)
    assert joined(memory) == set() and memory.read("ada") is None and not list(memory.conflicts())
    bob = memory.read("bob")
    assert bob is not None and "ada" not in bob.file.body


def test_text_written_while_its_entity_is_deleted_remains(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.graph.add("Bob", "person", ["likes tea"])
    meanwhile(monkeypatch, "forget", lambda: memory.graph.observe("Bob", ["is tall"]))
    assert memory.graph.delete("Bob")
    (left,) = memory.conflicts()
    assert left.forgotten and [one.reading is not None and "is tall" in one.reading.file.body for one in left.copies] == [True]  # fmt: skip
