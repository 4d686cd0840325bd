"""The quick subset: `pytest -m quick` takes less than a minute on two cores and covers every package.

It consists of the files below, without tests that are marked `slow` and those in slow_tests.txt, which
were measured (`python -m tests.support.slow_tests`). tests/unit/test_suite.py checks that all of these
exist and that no package is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

#: Folders (with a slash at the end) and files below tests/.
PATHS: Final = (
    "unit/adapters/test_langgraph_store.py",
    "unit/agents/",
    "unit/api/",
    "unit/bundle/",
    "unit/causal/",
    "unit/compat/",
    "unit/content/",
    "unit/exchange/test_importing.py",
    "unit/facts/",
    "unit/graph/",
    "unit/http/",
    "unit/device/",
    "unit/dream/",
    "unit/plugins/",
    "unit/memories/test_forgetting.py",
    "unit/memories/test_in_and_out.py",
    "unit/memories/test_modes.py",
    "unit/memories/test_recall.py",
    "unit/memories/test_scope_faces.py",
    "unit/memories/test_scopes.py",
    "unit/memories/test_shown_only.py",
    "unit/ring/",
    "unit/mcp/",
    "unit/tools/",
    "unit/wallet/",
    "unit/seal/",
    "unit/sessions/",
    "unit/files/test_adopting.py",
    "unit/files/test_attach_full_disk.py",
    "unit/files/test_pack.py",
    "unit/files/test_repositories.py",
    "unit/files/test_working_copy.py",
    "unit/testing/",
    "unit/test_docs.py",
    "unit/test_floors.py",
    "unit/test_operations.py",
    "unit/vault/test_others_bundles.py",
    "unit/test_public_face.py",
    "unit/test_security_claims.py",
    "unit/test_suite.py",
    "unit/vault/test_walletless.py",
    "unit/sync/test_autosync.py",
    "unit/published/test_ipns_record.py",
    "unit/sync/test_put_again.py",
    "unit/sync/test_several.py",
    "unit/providers/test_filebase.py",
    "unit/providers/test_http_policy.py",
    "unit/providers/test_peer.py",
    "unit/providers/test_pinning_service.py",
    "unit/providers/test_routing.py",
    "unit/providers/test_ucan.py",
    "cli/test_cli_app.py",
    "cli/test_cli_conflicts.py",
    "cli/test_cli_check.py",
    "cli/test_cli_keys.py",
    "cli/test_cli_list.py",
    "cli/test_cli_read.py",
    "cli/test_cli_recover.py",
    "cli/test_cli_sync.py",
    "cli/test_cli_write.py",
    "faults/test_copies.py",
    "faults/test_directory_heals.py",
    "property/test_causal_join.py",
    "property/test_dag_cbor_laws.py",
    "traces/test_refused_heads.py",
)


SLOW_FILE: Final = Path(__file__).with_name("slow_tests.txt")
#: Functions whose tests are excluded.
SLOW = frozenset(SLOW_FILE.read_text("utf-8").splitlines())


def function_of(nodeid: str) -> str:
    """Return the file and the function of a test, without parameters and the folder tests/."""
    return nodeid.partition("[")[0].removeprefix("tests/")


def is_quick(nodeid: str) -> bool:
    """Return whether the test belongs to the subset; `nodeid` as pytest names it, from the root of the
    checkout."""
    name = function_of(nodeid)
    return name.startswith(PATHS) and name not in SLOW
