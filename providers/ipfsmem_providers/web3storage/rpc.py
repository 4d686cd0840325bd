"""UCAN invocations over HTTP at a w3up service: batches, receipts, and failures as our errors.

The service answers HTTP 200 even on failure; the failure is in the receipt. Here it becomes
ProviderUnavailable (it may work later) or ProviderRefused.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from ipfsmem.content.cid import CID
from ipfsmem.errors import IpfsmemError, ProviderError, ProviderRefused, ProviderUnavailable
from ipfsmem.provider.contract import Block
from ipfsmem_providers.http.body import CAR_TYPE
from ipfsmem_providers.http.client import Http
from ipfsmem_providers.http.errors import short
from ipfsmem_providers.web3storage import ucan
from ipfsmem_providers.web3storage.ucan import Ability, AgentMessage, Proof, Receipt, Signer

#: Seconds for which an invocation is valid: enough for a clock that is a little wrong.
_VALID: Final = 300
#: Invocations in one request.
BATCH: Final = 50
_ANSWER_MAX: Final = 16 * 1024 * 1024
#: Waits for a receipt, in seconds: a minute and a half in all.
_POLLS: Final = (0.05, 0.1, 0.2, 0.5, 1, 2, 4, 8, 15, 20, 20, 20)
_GONE: Final = frozenset(
    (
        "RecordNotFound",
        "UploadNotFound",
        "EntryNotFound",
        "BlobNotFound",
        "BlobItemNotFound",
        "StoreItemNotFound",
    )
)
_LATER: Final = frozenset(
    (
        "ServiceUnavailable", "HandlerExecutionError", "AllocatedMemoryHadNotBeenWrittenTo", "CandidateUnavailable",
        "StorageOperationFailed", "StoreOperationFailed", "PublishFailure", "WriteError", "RangeNotSatisfiable",
        "AwaitError", "NetworkError", "TimeoutError", "IndexNotFound", "ShardNotFound",
    )
)  # fmt: skip
_WRITES_OFF: Final = "The service accepts no writes now, but may still serve reads. If it has ended, as the hosted ones did in 2026, move the vault to another provider: ipfsmem vault move."
_HINTS: Final = {
    "Unauthorized": "The service does not accept this key and delegation for this space. Make a new delegation "
    "(space/blob/*, space/index/*, upload/*) for the key's DID and put it into W3UP_PROOF.",
    "InsufficientStorage": "The space has no storage left, or no account pays for it. Give it a provider or a larger "
    "plan, or publish elsewhere too.",
    "BlobSizeOutsideOfSupportedRange": "The service accepts only smaller blobs: set W3UP_SHARD_BYTES.",
    "HandlerNotFound": "This service does not store blobs for spaces, or is an older one. Name one that does: "
    "web3storage:<its URL>.",
}


class InvocationResult(msgspec.Struct, frozen=True):
    """The result of one invocation, and the message that it came in."""

    cid: CID
    receipt: Receipt
    message: AgentMessage


class Service:
    """A service, the key that acts, the space that it acts on, and the delegation that allows it."""

    def __init__(
        self, http: Http, url: str, did: str, signer: Signer, space: str, proof: Proof | None, receipts: str
    ) -> None:
        """`url`: for invocations. `did`: of the service. `receipts`: the URL to which a task's CID is appended."""
        self._http = http
        self._url = url
        self._receipts = receipts
        self.did = did
        self.signer = signer
        self.space = space
        self.proof = proof
        self._nonce: Callable[[], str] = lambda: secrets.token_urlsafe(12)

    @property
    def name(self) -> str:
        """Return the short name for errors."""
        return self._http.service

    def redact(self, text: str) -> str:
        """Return a text without the secrets of this service."""
        return self._http.redact(text)

    def now(self) -> float:
        """Return seconds of a monotonic clock."""
        return self._http.timing.now()

    async def invoke(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]], *, what: str, allow: Collection[str] = ()
    ) -> list[InvocationResult]:
        """Run actions on the space; `calls` are pairs of (ability, details). Returns their results in order.

        Transient failures are retried. Raises the first failure whose name is not in `allow`; "gone" in
        `allow` covers every way to report that something is missing.
        """
        self._check_proof(what)
        answers = await self._run(calls, what)
        attempts = self._http.attempts_inside()
        while later := [i for i, answer in enumerate(answers) if _passing(answer.receipt, allow)]:
            if not await self._http.may_again(attempts):
                break
            for i, answer in zip(later, await self._run([calls[i] for i in later], what), strict=True):
                answers[i] = answer
        else:
            attempts.answered()
        for (can, _), answer in zip(calls, answers, strict=True):
            if answer.receipt.error is not None and not allowed(answer.receipt, allow):
                raise self.failure(can, answer.receipt.error, what)
        return answers

    async def _run(self, calls: Sequence[tuple[str, Mapping[str, Any]]], what: str) -> list[InvocationResult]:
        answers: list[InvocationResult] = []
        for start in range(0, len(calls), BATCH):
            tokens = [
                self._issue(Ability(can, self.space, details))
                for can, details in calls[start : start + BATCH]
            ]
            blocks = [*(self.proof.blocks if self.proof else ()), *tokens]
            answers += await self._send(tokens, blocks, what)
        return answers

    async def conclude(self, receipts: Sequence[Block], what: str) -> None:
        """Send the service receipts of tasks that were done elsewhere, signed by other keys."""
        tokens = []
        for receipt in receipts:
            ability = Ability("ucan/conclude", self.signer.did, {"receipt": receipt[0]})
            tokens.append(self._issue(ability, own=True, facts=[{"0": receipt[0]}]))
        for answer in await self._send(tokens, [*receipts, *tokens], what):
            if answer.receipt.error is not None:
                raise self.failure("ucan/conclude", answer.receipt.error, what)

    async def receipt(self, task: CID, *, what: str, wait: bool) -> InvocationResult | None:
        """Return the result of a task; None without a receipt. `wait`: wait for it, or raise ProviderUnavailable."""
        for pause in (*_POLLS, None) if wait else (None,):
            answer = await self._http.request(
                "GET", f"{self._receipts}{task}", allow={404}, max_bytes=_ANSWER_MAX, what=what
            )
            if answer.status != 404:
                message = self._read(answer.body)
                result = message.receipts.get(task)
                if result is not None:
                    return InvocationResult(task, result, message)
            if pause is not None:
                await self._http.timing.sleep(pause)
        if wait:
            raise self._http.unavailable(f"{self._http.service} returned no receipt in time to {what}")
        return None

    def failure(self, can: str, error: Any, what: str) -> ProviderError:
        """Return the error in a receipt as ours."""
        name, text = error_words(error)
        reason = short(f"{name}{f': {text}' if text else ''}", self._http.redact)
        message = f"{self._http.service} refused {can} to {what}: {reason}"
        if name == "ServiceUnavailable":
            return ProviderUnavailable(message, hint=_WRITES_OFF)
        if _is_later(error):
            return ProviderUnavailable(message)
        return ProviderRefused(message, hint=_HINTS.get(name))

    def _check_proof(self, what: str) -> None:
        """Refuse here when the delegation has expired: the service would only answer Unauthorized."""
        expires = self.proof.token.expires if self.proof else None
        if expires is not None and expires <= self._http.timing.wall():
            raise ProviderRefused(
                f"the delegation for {self.space} has expired, so {self._http.service} was not asked to {what}",
                hint=_HINTS["Unauthorized"],
            )

    def _issue(self, ability: Ability, own: bool = False, facts: Sequence[Mapping[str, Any]] = ()) -> Block:
        proofs = [self.proof.token.cid] if self.proof and not own else []
        return ucan.issue(
            self.signer,
            self.did,
            [ability],
            expires=int(self._http.timing.wall()) + _VALID,
            nonce=self._nonce(),
            proofs=proofs,
            facts=facts,
        )

    async def _send(
        self, tokens: Sequence[Block], blocks: Sequence[Block], what: str
    ) -> list[InvocationResult]:
        cids = [cid for cid, _ in tokens]
        # Idempotent: the service repeats the receipt of a known invocation.
        answer = await self._http.request(
            "POST",
            self._url,
            body=ucan.request(cids, blocks),
            headers={"Content-Type": CAR_TYPE, "Accept": CAR_TYPE},
            idempotent=True,
            max_bytes=_ANSWER_MAX,
            what=what,
        )
        message = self._read(answer.body)
        answers = []
        for cid in cids:
            receipt = message.receipts.get(cid)
            if receipt is None:
                raise self._http.unavailable(f"{self._http.service} returned no receipt to {what}")
            answers.append(InvocationResult(cid, receipt, message))
        return answers

    def _read(self, body: bytes) -> AgentMessage:
        try:
            return AgentMessage(body)
        except IpfsmemError as error:
            problem = f"{self._http.service} returned an invalid message: {error}"
        raise self._http.unavailable(problem)


def allowed(receipt: Receipt, names: Collection[str]) -> bool:
    """Return whether a receipt's error is one of `names`, "gone" among them."""
    name, _ = error_words(receipt.error)
    return name in names or ("gone" in names and name in _GONE)


def _is_later(error: Any) -> bool:
    """Return whether the same call may work later."""
    return error_words(error)[0] in _LATER or (isinstance(error, dict) and error.get("name") in _LATER)


def _passing(receipt: Receipt, allow: Collection[str]) -> bool:
    """Return whether the same call may work in a moment. A service that accepts no writes will not soon."""
    error = receipt.error
    if error is None or allowed(receipt, allow) or error_words(error)[0] == "ServiceUnavailable":
        return False
    return _is_later(error)


def error_words(error: Any) -> tuple[str, str]:
    """Return name and text of a receipt's error, or of its innermost cause."""
    if not isinstance(error, dict):
        return "Error", str(error)
    cause = error.get("cause")
    if error.get("name") == "Unauthorized" or not isinstance(cause, dict) or not cause.get("name"):
        name, text = error.get("name"), error.get("message")
        return str(name or "Error"), str(text or "")
    return error_words(cause)
